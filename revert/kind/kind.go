package kind

// Kind identifies the content of a record.
type Kind string

// The kinds of record. A kind is never reused for another meaning.
const (
	Session    Kind = "session"     // a session was opened
	Handed     Kind = "handed"      // a session delegated part of its grant to another
	Revoked    Kind = "revoked"     // a person revoked a grant
	Remembered Kind = "remembered"  // an approval also covers later calls
	Labelled   Kind = "labelled"    // the policy gave the session labels
	Given      Kind = "given"       // the user named URLs
	Begun      Kind = "begun"       // a transaction began
	Adopted    Kind = "adopted"     // an abandoned transaction got a new owner
	Invalid    Kind = "invalid"     // the runtime refused a call before the policy decided
	Denied     Kind = "denied"      // a call was denied; its code did not start
	Asked      Kind = "asked"       // a call waits for approval
	Answered   Kind = "answered"    // an approver approved or rejected an asked call
	Approved   Kind = "approved"    // a running call got an approval
	Held       Kind = "held"        // a call waits until its transaction commits
	Dropped    Kind = "dropped"     // a held call will not be released
	Started    Kind = "started"     // a call may have effects from now on
	Changed    Kind = "changed"     // one effect is about to happen
	Landed     Kind = "landed"      // versions that changes really left, of a call without a result
	Noted      Kind = "noted"       // the tool stored a note for its own Revert
	State      Kind = "state"       // new state of a stateful tool for a session
	Done       Kind = "done"        // the call's code returned a result
	Failed     Kind = "failed"      // the call ended, proven to have no effect
	Unknown    Kind = "unknown"     // the call ended and its effect cannot be determined
	Decided    Kind = "decided"     // a person resolved an in-doubt call
	Verified   Kind = "verified"    // a probe looked for the effect
	Savepoint  Kind = "savepoint"   // a name for this point of the transaction
	Nested     Kind = "nested"      // a transaction began inside this one
	NestEnded  Kind = "nest_ended"  // the nested transaction joined the enclosing one, or was reverted
	RevertedTo Kind = "reverted_to" // everything after a savepoint was reverted
	Reverting  Kind = "reverting"   // the revert of a call begins
	Reverted   Kind = "reverted"    // the result of reverting a call
	Committing Kind = "committing"  // the transaction begins to release its held calls, then commits
	Committed  Kind = "committed"   // the transaction ended; its effects stay
	Aborting   Kind = "aborting"    // the revert of the transaction began
	Aborted    Kind = "aborted"     // the transaction ended, reverted as far as listed
	Erased     Kind = "erased"      // the bodies of a call's records were destroyed
	UndoneBy   Kind = "undone_by"   // another transaction reverts, or redoes, an ended one
	Feedback   Kind = "feedback"    // a person's feedback on a call
	Accepted   Kind = "accepted"    // a person accepted an incomplete journal
)

// All lists every kind.
func All() []Kind {
	return []Kind{
		Session, Handed, Revoked, Remembered, Labelled, Given, Begun, Adopted, Invalid, Denied, Asked, Answered, Held, Dropped, Started, Approved, Changed,
		Landed, Noted, State, Done, Failed, Unknown, Decided, Verified, Savepoint, Nested, NestEnded, RevertedTo,
		Reverting, Reverted, Committing, Committed, Aborting, Aborted, Erased, UndoneBy, Feedback, Accepted,
	}
}

// Erasable reports whether erasing a call destroys the bodies of such records.
// Records that bind a session or a transaction, such as labels, always stay.
func (k Kind) Erasable() bool {
	switch k {
	case Invalid, Denied, Asked, Answered, Held, Dropped, Started, Approved, Changed, Landed, Noted,
		State, Done, Failed, Unknown, Decided, Verified, Reverting, Reverted, Feedback:
		return true
	default:
		return false
	}
}
