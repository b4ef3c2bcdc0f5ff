// Package wiretest holds what tool/wire writes and reads against the official SDKs of the providers: their types, and their
// clients, which talk to a server on this machine. It is a module of its own, so that no SDK is a dependency of remit.
//
// The tests decode the output of the adapter into the SDK's own types and send it with the SDK's own client. The server must
// receive the same JSON. The SDK loses a member that it does not know, and rejects a value that it does not accept.
package wiretest
