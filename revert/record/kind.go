package record

// Kind identifies the content of a record.
type Kind string

// The kinds of record. A kind is never reused for another meaning.
const (
	KindSession       Kind = "session"        // a session was opened
	KindDelegated     Kind = "delegated"      // a session delegated part of its grant to another
	KindRevoked       Kind = "revoked"        // a person revoked a grant
	KindRemembered    Kind = "remembered"     // an approval also covers later calls
	KindLabelled      Kind = "labelled"       // the policy gave the session labels
	KindHeard         Kind = "heard"          // a person said something
	KindBegun         Kind = "begun"          // a transaction began
	KindPrompted      Kind = "prompted"       // the first words of the prompt that the transaction belongs to
	KindAdopted       Kind = "adopted"        // an abandoned transaction got a new owner
	KindInvalid       Kind = "invalid"        // the runtime refused a call before the policy decided
	KindDenied        Kind = "denied"         // a call was denied; its code did not start
	KindAsked         Kind = "asked"          // a call waits for approval
	KindAnswered      Kind = "answered"       // an approver approved or rejected an asked call, or a commit
	KindApproved      Kind = "approved"       // a running call got an approval
	KindHeld          Kind = "held"           // a call waits until its transaction commits
	KindDropped       Kind = "dropped"        // a held call will not be released
	KindStarted       Kind = "started"        // a call may have effects from now on
	KindChanged       Kind = "changed"        // one effect is about to happen
	KindPostVersions  Kind = "post_versions"  // versions that changes really left, of a call without a result
	KindRevertNote    Kind = "revert_note"    // the tool stored a note for its own Revert
	KindState         Kind = "state"          // new state of a stateful tool for a session
	KindDone          Kind = "done"           // the call's code returned a result
	KindFailed        Kind = "failed"         // the call ended, proven to have no effect
	KindUnknown       Kind = "unknown"        // the call ended and its effect cannot be determined
	KindDecided       Kind = "decided"        // a person resolved an in-doubt call
	KindVerified      Kind = "verified"       // a probe looked for the effect
	KindSavepoint     Kind = "savepoint"      // a name for this point of the transaction
	KindNested        Kind = "nested"         // a transaction began inside this one
	KindNestEnded     Kind = "nest_ended"     // the nested transaction joined the enclosing one, or was reverted
	KindRevertedTo    Kind = "reverted_to"    // everything after a savepoint was reverted
	KindReverting     Kind = "reverting"      // the revert of a call begins
	KindReverted      Kind = "reverted"       // the result of reverting a call
	KindCommitDecided Kind = "commit_decided" // the policy decided about the commit of the transaction
	KindCommitting    Kind = "committing"     // the transaction begins to release its held calls, then commits
	KindCommitted     Kind = "committed"      // the transaction ended; its effects stay
	KindAborting      Kind = "aborting"       // the revert of the transaction began
	KindAborted       Kind = "aborted"        // the transaction ended, reverted as far as listed
	KindErased        Kind = "erased"         // the bodies of a call's records were destroyed
	KindRevertedBy    Kind = "reverted_by"    // another transaction reverts, or redoes, an ended one
	KindFeedback      Kind = "feedback"       // a person's feedback on a call
	KindAccepted      Kind = "accepted"       // a person accepted an incomplete journal
)

// Kinds lists every kind.
func Kinds() []Kind {
	return []Kind{
		KindSession, KindDelegated, KindRevoked, KindRemembered, KindLabelled, KindHeard, KindBegun, KindPrompted, KindAdopted,
		KindInvalid, KindDenied, KindAsked, KindAnswered, KindHeld, KindDropped, KindStarted, KindApproved,
		KindChanged, KindPostVersions, KindRevertNote, KindState, KindDone, KindFailed, KindUnknown, KindDecided, KindVerified,
		KindSavepoint, KindNested, KindNestEnded, KindRevertedTo, KindReverting, KindReverted, KindCommitDecided, KindCommitting,
		KindCommitted, KindAborting, KindAborted, KindErased, KindRevertedBy, KindFeedback, KindAccepted,
	}
}

// Erasable reports whether erasing a call destroys the bodies of such records.
// Records that bind a session or a transaction, such as labels, always stay.
func (k Kind) Erasable() bool {
	switch k {
	case KindPrompted, KindInvalid, KindDenied, KindAsked, KindAnswered, KindHeld, KindDropped, KindStarted, KindApproved,
		KindChanged, KindPostVersions, KindRevertNote, KindState, KindDone, KindFailed, KindUnknown, KindDecided, KindVerified,
		KindReverting, KindReverted, KindCommitDecided, KindFeedback:
		return true
	default:
		return false
	}
}
