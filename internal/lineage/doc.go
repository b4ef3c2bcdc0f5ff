// Package lineage determines whether a process descends from another one, or
// from the agent that started that one.
//
// A call that waits for approval has its Asker on record: the process that
// asked and those above it that act for the agent, such as the client that
// started a server. A process that wants to approve reads its own Chain, and
// Asker.Bars returns why it must not.
//
// The kernel reports the parents of living processes. A process can detach from
// its parents; if it did so after the call asked, its age and its control group
// identify it. Malicious code that runs as the same user can get around this;
// the threat model says how.
package lineage
