// Package config reads and writes the configuration of a gateway: the servers,
// in the format of MCP clients, and the entries of their tools.
//
// [Parse] reports each fault with line and column. [AddEntries] and
// [Server.Confine] draft what an operator has not written yet. [OAuth] and
// [LoginError] describe the login at a server by URL. [Objects] lists the members
// of the file. Package gateway opens a gateway from a [Config].
package config
