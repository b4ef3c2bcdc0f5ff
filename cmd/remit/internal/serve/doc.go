// Package serve has the verbs that serve tools over MCP: serve, gateway, and
// token for their clients.
package serve
