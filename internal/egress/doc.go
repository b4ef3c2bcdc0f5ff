// Package egress is an HTTP proxy for the programs of one call. It forwards
// CONNECT and plain HTTP, and decrypts nothing.
//
// The proxy reaches a host only through a function of its caller, which
// decides the host and opens the connection. It takes the host from the target
// of CONNECT or from the absolute URL of a plain request, never from a Host
// header. It reads each plain request and writes it anew, on a connection of
// its own, so that no byte after a request reaches the host of another one.
package egress
