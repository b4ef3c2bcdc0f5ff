// Package agent runs tools for agents.
//
// A Runtime holds tools, a policy, a journal and roots. It opens a Session for
// a principal, a Session begins transactions, and a Txn invokes tools. The
// runtime authorizes each call before it runs, restricts it to what was
// granted, verifies it after it ran, and journals it before it returns the
// result. A caller can revert a call alone or with its transaction, also after
// the process died.
//
// By default a Runtime evaluates the workspace policy and keeps its journal in
// memory. Nothing then survives the process, and the log says so.
package agent
