// Package gateway adds policy and undo to MCP servers. It mirrors their tools
// as tools of a runtime, which authorizes and journals each call, and reverts
// it as far as an entry says how.
//
// A Gateway serves nothing itself. [Open] makes it from a configuration, and
// [Gateway.Start] starts the servers. The host program passes the tools to
// agent.New, and the Gateway to package mcp as Options.Mirror. Package mcp
// serves the tools under the names server__tool. Clients get the responses of a
// server unchanged.
//
// # Entries
//
// The annotations of a server are hints and grant nothing. An entry of the
// configuration says which accesses a call needs, which effect class it has,
// how to verify it, and how to revert it: by another tool of the same server
// (compensate), or from a snapshot of files or folders (snapshot). A tool
// without an entry is undeclared: it counts as irreversible, and the workspace
// policy denies it. A server in the sandbox needs no entries for undo: it works
// on copies of its roots, and the runtime decides, records and applies its
// changes like those of a program.
//
// # Pins
//
// The gateway pins the digest of each definition at the first start with its
// server. A definition that is new or changed since is in quarantine: the gateway does
// not list it, and a client that calls it is told that the tool is unknown, until an
// operator has seen the difference and accepted it. If a server changes its identity, all its
// definitions are in quarantine.
package gateway
