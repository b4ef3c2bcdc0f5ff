// Package learn writes a policy from recorded calls. The policy allows what
// went well, asks a person about everything else, and has tests from the calls.
//
// It is a template that a person reviews. Nothing applies it by itself.
//
// The learner is a greedy cover that a person can follow: it tries the widest
// rule first, and skips what a rule covers. It learns only from calls that are
// done, verified and committed. It never learns from a call that a person had
// to approve, that named a secret, or that was decided after the session had
// read untrusted content.
package learn
