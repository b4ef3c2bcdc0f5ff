// Package upstream connects to servers, starts them again after failures, reads
// what they declare, and sends them calls. An [Upstream] is one server, whether
// it runs or not; a [Conn] is one connection to it.
package upstream
