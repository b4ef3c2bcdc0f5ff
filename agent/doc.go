// Package agent runs tools for agents.
//
// A Runtime holds tools, a policy, a journal and roots. It opens a Session for a
// principal, a Session begins transactions, and a Txn invokes tools: each call is
// asked for before it runs, reaches only what was granted, is verified after it
// ran, is on the journal before anybody sees its result, and can be taken back,
// alone or with its transaction, also after the process died.
//
// Without further options a Runtime asks the workspace policy and keeps its
// journal in memory: nothing then survives the process, and the log says so.
package agent
