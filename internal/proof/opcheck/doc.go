// Package opcheck judges what happened in a run of several agents: whether bytes of
// somebody else were lost, an operation had its effect twice or unannounced, ended
// transactions stand in a circle, something is there that was said to be undone or is
// gone that was said to be done, somebody wrote who was no owner any more, or a journal
// did not recover.
//
// It knows nothing of how remit works. Whoever runs a world writes down, in the order in
// which it happened, what was done and what was said, as [Event]s; [Check] says what of
// the promises they break. Contents are told apart by their text, so every write of a run
// has one of its own.
package opcheck
