// Package connect leads the own tools and the MCP servers of a client to remit,
// and back.
//
// Hooks in the client's settings, or a plugin, start remit before and after each
// call of an own tool. Files that are missing are created, and removed again.
//
// A client's configuration lists its servers in one or more tables. Connecting
// moves the servers of each table to a configuration of the gateway, and leaves
// one server that starts the gateway. Disconnecting restores the file byte for
// byte if it is unchanged since. Otherwise it removes only what connecting
// added, and reports what it found.
//
// Files are edited in place: everything except the moved servers keeps its
// bytes, comments and order. Every edit is parsed again and compared before it
// is written. A swap writes it and detects a client that wrote meanwhile. A
// server stays in the file if the gateway would change its behavior, and the
// report says why.
//
// [Environment.State] holds a record of each change, beside a backup of the
// file. Both can contain secrets, as the file does, and only the user can read
// them.
package connect
