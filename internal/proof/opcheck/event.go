package opcheck

// Kind is what an event is.
type Kind uint8

// The kinds of events, with the fields that they have.
const (
	// Of transactions and their owners.
	Announced Kind = iota + 1 // a record announces an operation: Txn, Call, Key
	Wrote                     // a record of a transaction was accepted: Txn, Owner
	Took                      // a transaction has an owner from now on: Txn, Owner
	Touched                   // a transaction is about to change a resource, or to put it back: Txn, Resource
	Ended                     // a transaction ended: Txn, State

	// Of the world.
	Left      // a call left a content at a resource: Txn, Call, Resource, Content
	Theirs    // somebody outside left a content at a resource: Resource, Content
	Dropped   // and gave it up, or a power cut took it: Content
	Acted     // an operation had its effect in a service: Key
	Withdrawn // and was taken back there: Key
	Seen      // what is at a resource was looked at: Resource, Content; no content: nothing is there
	Kept      // at the end, a content is in the world or can be brought back: Content

	// Of what was said.
	Done    // a call is done: Txn, Call
	Undone  // what a call did at a resource is taken back: Txn, Call, Resource; no resource: all of it, in services too
	Brought // bringing back what was undone of a transaction begins: Txn
	Taking  // a record says that taking an ended transaction back begins: Txn
	Doubted // nobody can tell what a call did where its transaction touched something: Txn

	// Of crashes.
	Recovered // the journal's first N records recovered: N; Text says what went wrong, if anything
)

var names = [...]string{
	"", "announced", "wrote", "took", "touched", "ended", "left", "theirs", "dropped", "acted", "withdrawn", "seen", "kept",
	"done", "undone", "brought", "taking", "doubted", "recovered",
}

// String names the kind.
func (k Kind) String() string {
	if int(k) < len(names) {
		return names[k]
	}
	return "?"
}

// State is how a transaction ended.
type State uint8

// The states of an end.
const (
	Committed State = iota + 1
	Reverted        // and nothing of it is left
	Partial         // taken back, and something is left
)

// Event is one thing that happened. What a field is for depends on the kind.
type Event struct {
	Kind     Kind
	State    State
	N        int
	Txn      string
	Call     string
	Key      string
	Owner    string
	Resource string
	Content  string
	Text     string
}

// Violation is a promise that a history breaks.
type Violation struct {
	Promise string // one of those below
	Text    string // what happened, for people
}

// The promises.
const (
	ForeignBytes = "foreign bytes are not lost"
	Once         = "an operation has its effect once"
	Announcing   = "no effect comes before its record"
	Acyclic      = "ended transactions stand in no circle"
	ClaimUndone  = "what is said to be undone is gone"
	ClaimDone    = "what is said to be done is there"
	Owners       = "only its owner writes to a transaction"
	Prefixes     = "every prefix of the journal recovers"
)
