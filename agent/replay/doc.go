// Package replay decides recorded calls again under another policy, and
// reports what would change. It needs only the journal: each decision has the
// facts that the policy saw. What the journal does not have, such as a redacted
// argument, is reported if the policy reads it, and never guessed.
package replay
