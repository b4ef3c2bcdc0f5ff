// Package ctxperm defines the authority of a running tool: a ToolContext, and
// the Permits that it gives.
//
// A tool that touches resources receives a ToolContext beside its context and
// passes it to a handle, such as ctxperm/files. The handle authorizes each
// access and gets a Permit. The Permit proves that the access was authorized.
// It also makes each change durable before the effect. Code outside remit can
// create neither: operations refuse zero values, and both expire when their
// call ends.
package ctxperm
