// Package database holds the tools for SQL databases: sql_query and sql_execute.
// They act through ctxperm/database alone; agent.Driver gives the runtime its
// databases.
package database
