// Package wiretest holds what tool/wire writes and reads against the official SDKs of the providers: their types, and their
// clients, which talk to a server on this machine. It is a module of its own, so that no SDK is a dependency of remit.
//
// Whatever the adapter writes goes into the SDK's own types and is sent by the SDK's own client. What arrives has to be the same
// JSON: a member that the SDK does not know would be lost, and a value that it does not take refused.
package wiretest
