// Package upstream opens the gateway of the MCP servers that a configuration
// lists, and finds their logins.
package upstream
