// Package connect leads the MCP servers of a client through the gateway, and back.
//
// A client's configuration names its servers in one or more tables. Connecting takes
// the servers out of each table, writes them into a configuration of the gateway, and
// leaves one server there that starts it. Disconnecting puts the file back byte for
// byte where nobody has changed it since; else it takes back only what connecting put
// in, and says what it found.
//
// Files are edited in place: what is not a server that moves keeps its bytes, its
// comments and its order. Every edit is read again and compared before it is written,
// and is written by a swap that notices a client which wrote meanwhile. What cannot be
// led through the gateway without changing what it does stays where it is, and the
// report says why.
//
// What connecting did to a file is kept beside a backup of it in [Environment.State]. Both
// may hold secrets, as the file does, and are the user's alone.
package connect
