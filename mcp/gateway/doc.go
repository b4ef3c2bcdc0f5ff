// Package gateway puts remit in front of other people's MCP servers: their tools become tools of a runtime, so that
// each call of one is asked for, on the journal, and taken back, as far as somebody has said how.
//
// A Gateway serves nothing itself. [Open] starts the servers of a configuration and mirrors their tools; they are given to
// agent.New, and package mcp, whose Options.Mirror the Gateway is, serves them to clients under the names that the clients
// know, server__tool. What a server answers comes back as it wrote it.
//
// # What is known of a tool
//
// What a server says of its own tools is a hint and never a right. An entry of the configuration says what a call needs,
// which effect class it has, how to look whether it worked, and how to take it back: by another tool of the same server
// (compensate), or from what files or whole folders held before (snapshot). A tool without an entry is undeclared: it counts as one
// without a way back, and the workspace policy denies it. A server that runs in the sandbox needs no entries for its
// undo: it works on copies of its roots, and what a call leaves in them is decided, recorded and applied like what a
// program leaves.
//
// # What may change
//
// The definition of each tool is pinned by its digest when it is first seen. One that is new or has changed since is
// quarantined: it is not listed, and a call is denied, until somebody has seen the difference and accepted it. So is
// everything of a server that says it is another one than before.
package gateway
