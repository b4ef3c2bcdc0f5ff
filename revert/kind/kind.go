package kind

// Kind names what a record says.
type Kind string

// The kinds of record. A kind is never reused for another meaning.
const (
	Session    Kind = "session"     // a session was opened
	Handed     Kind = "handed"      // a session handed some of its grant on to another
	Revoked    Kind = "revoked"     // a grant was taken away
	Remembered Kind = "remembered"  // an approval was given for calls to come, too
	Labelled   Kind = "labelled"    // the policy gave the session labels
	Given      Kind = "given"       // whoever is behind the session named URLs
	Begun      Kind = "begun"       // a transaction began
	Adopted    Kind = "adopted"     // a transaction whose owner was gone got a new one
	Invalid    Kind = "invalid"     // a call was refused before policy
	Denied     Kind = "denied"      // a call was denied; its code was never entered
	Asked      Kind = "asked"       // a call waits until somebody approves it
	Answered   Kind = "answered"    // somebody approved or refused an asked call
	Approved   Kind = "approved"    // a running call got an approval
	Held       Kind = "held"        // a call waits until its transaction commits
	Dropped    Kind = "dropped"     // a held call will not be released
	Started    Kind = "started"     // a call may have effects from now on
	Changed    Kind = "changed"     // one effect is about to happen
	Landed     Kind = "landed"      // versions that changes really left, of a call without a result
	Noted      Kind = "noted"       // the tool noted something for its own undo
	State      Kind = "state"       // what a stateful tool holds for a session from here on
	Done       Kind = "done"        // the call's code returned a result
	Failed     Kind = "failed"      // the call ended, proven to have no effect left
	Unknown    Kind = "unknown"     // the call ended and its effect cannot be told
	Decided    Kind = "decided"     // a person said what became of a call of unknown outcome
	Verified   Kind = "verified"    // somebody looked whether the effect is there
	Savepoint  Kind = "savepoint"   // a name for this point of the transaction
	Nested     Kind = "nested"      // a transaction began inside this one
	NestEnded  Kind = "nest_ended"  // it joined what it is in, or was taken back
	RevertedTo Kind = "reverted_to" // everything after a savepoint was taken back
	Reverting  Kind = "reverting"   // a call is about to be taken back
	Reverted   Kind = "reverted"    // what taking a call back came to
	Committing Kind = "committing"  // the transaction is to commit: its held calls are released from now on
	Committed  Kind = "committed"   // the transaction ended, its effects stay
	Aborting   Kind = "aborting"    // the transaction is being taken back
	Aborted    Kind = "aborted"     // the transaction ended, taken back as far as listed
	Erased     Kind = "erased"      // the bodies of a call's records were destroyed
	UndoneBy   Kind = "undone_by"   // an ended transaction is being taken back, or brought back, by another
	Feedback   Kind = "feedback"    // somebody said what they think of a call
	Accepted   Kind = "accepted"    // a person went on with a journal that was incomplete
)

// All lists every kind.
func All() []Kind {
	return []Kind{
		Session, Handed, Revoked, Remembered, Labelled, Given, Begun, Adopted, Invalid, Denied, Asked, Answered, Held, Dropped, Started, Approved, Changed,
		Landed, Noted, State, Done, Failed, Unknown, Decided, Verified, Savepoint, Nested, NestEnded, RevertedTo,
		Reverting, Reverted, Committing, Committed, Aborting, Aborted, Erased, UndoneBy, Feedback, Accepted,
	}
}

// Erasable reports whether the bodies of such records go when their call is
// erased. What binds a session or a transaction, such as labels, never does.
func (k Kind) Erasable() bool {
	switch k {
	case Invalid, Denied, Asked, Answered, Held, Dropped, Started, Approved, Changed, Landed, Noted,
		State, Done, Failed, Unknown, Decided, Verified, Reverting, Reverted, Feedback:
		return true
	default:
		return false
	}
}
