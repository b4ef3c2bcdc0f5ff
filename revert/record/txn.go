package record

// Begun begins a transaction.
type Begun struct {
	Owner  string   `json:"owner"`
	Undoes string   `json:"undoes,omitempty"` // the ended transaction that this one takes back
	Also   []string `json:"also,omitempty"`   // further ended transactions, of which calls that lie on those are taken back
	Redoes string   `json:"redoes,omitempty"` // the reverted transaction whose effects this one brings back
	Only   string   `json:"only,omitempty"`   // with redoes: what this undo transaction took back, and no other
	Roots  []Root   `json:"roots,omitempty"`  // with undoes, redoes: the folders where that was done, as far as a person named others than the recorded ones
}

// Adopted gives an unfinished transaction a new owner.
type Adopted struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Savepoint names this point of a transaction.
type Savepoint struct {
	Name string `json:"name"`
}

// Nested begins a transaction inside another, for the calls that name it.
type Nested struct {
	ID      string `json:"id"`
	In      string `json:"in,omitempty"` // the nested transaction that it is in; empty: the whole
	Session string `json:"session"`      // whose calls they are
}

// NestEnded ends a nested transaction.
type NestEnded struct {
	ID       string `json:"id"`
	Reverted bool   `json:"reverted"`           // false: its calls are now those of what it was in
	Complete bool   `json:"complete,omitempty"` // of one that was taken back: nothing is left
}

// RevertedTo says that everything after a savepoint was taken back, as far as
// the reverted records between tell.
type RevertedTo struct {
	Name     string `json:"name"`
	Complete bool   `json:"complete"`
}

// Committed ends a transaction; its effects stay.
type Committed struct{}

// Aborting says that the transaction is being taken back.
type Aborting struct {
	Why string `json:"why"`
}

// Aborted ends a transaction that was taken back. Complete false: what was not
// is in the reverted records, and the transaction is never shown as success.
type Aborted struct {
	Complete bool `json:"complete"`
}

// Committing begins a commit that has calls to release. The transaction takes no
// other call from then on; until it is Committed it can still be taken back, as far
// as what was released can.
type Committing struct{}

// UndoneBy stands in an ended transaction and names the one that takes it back,
// or brings it back.
type UndoneBy struct {
	Txn string `json:"txn"`
}
