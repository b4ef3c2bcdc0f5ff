package opcheck

// Kind is the kind of an event.
type Kind uint8

// The kinds of events, with the fields that they have.
const (
	// Transactions and their owners.
	Announced Kind = iota + 1 // a record announces an operation: Txn, Call, Key
	Wrote                     // a record of a transaction was accepted: Txn, Owner
	Took                      // a transaction has an owner from now on: Txn, Owner
	Touched                   // a transaction is about to change or restore a resource: Txn, Resource
	Ended                     // a transaction ended: Txn, State

	// The world.
	Left      // a call left a content at a resource: Txn, Call, Resource, Content
	Theirs    // an outside actor left a content at a resource: Resource, Content
	Dropped   // the actor removed it, or a power failure did: Content
	Acted     // an operation had its effect in a service: Key
	Withdrawn // the effect was reverted there: Key
	Seen      // the content of a resource was read: Resource, Content; no content: it is absent
	Kept      // at the end, a content is present or can be restored: Content

	// Reports.
	Done           // a call is done: Txn, Call
	EffectReverted // the effect of a call on a resource is reverted: Txn, Call, Resource; no resource: all of them, in services too
	RedoStarted    // a redo of a transaction begins: Txn
	Taking         // a record says that the revert of an ended transaction begins: Txn
	EffectUnknown  // the effect of a call is unknown where its transaction touched something: Txn

	// Crashes.
	Recovered // the journal's first N records recovered: N; Text is the error, if any
)

var names = [...]string{
	"", "announced", "wrote", "took", "touched", "ended", "left", "theirs", "dropped", "acted", "withdrawn", "seen", "kept",
	"done", "undone", "brought", "taking", "doubted", "recovered",
}

// String returns the name of the kind.
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
	Reverted        // nothing of it is left
	Partial         // reverted, and something is left
)

// Event is one event. The kind decides which fields are used.
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

// Violation is a promise that a history violates.
type Violation struct {
	Promise string // one of the promises below
	Text    string // description for people
}

// The promises.
const (
	ForeignBytes  = "foreign bytes are not lost"
	Once          = "an operation has its effect once"
	Announcing    = "no effect comes before its record"
	Acyclic       = "ended transactions stand in no circle"
	ClaimReverted = "what is said to be undone is gone"
	ClaimDone     = "what is said to be done is there"
	Owners        = "only its owner writes to a transaction"
	Prefixes      = "every prefix of the journal recovers"
)
