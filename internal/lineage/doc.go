// Package lineage tells whether a process descends from another one, or from what started that one.
//
// A call that waits for approval has its Asker on record: the process that asked and those above it that act for the agent, such as the
// client that started a server. A process that is to approve reads its own Chain, and Asker.Bars says why it must not.
//
// Parents are what the kernel says of living processes. A process can cut itself loose from its parents; one that did so after the call
// was asked is recognised by its age and its control group. Code that runs as the same user and sets out to deceive can get around this;
// the threat model says how.
package lineage
