// Package ctxperm is what a running tool holds: a ToolContext, and the Permits
// that it gives.
//
// A tool that is to touch anything receives a ToolContext beside its context and
// passes it to a handle, such as ctxperm/files. The handle authorizes each access
// and gets a Permit, proof that the access was decided, which carries the
// recorder that makes each change durable before its effect. Neither can be made
// outside remit: zero values are refused, and both reach nothing once their call
// has ended.
package ctxperm
