// Package database implements the tools for SQL databases: sql_query and
// sql_execute. They act through ctxperm/database alone. The runtime needs its
// driver.
package database
