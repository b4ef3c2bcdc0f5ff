package record

// Begun begins a transaction.
type Begun struct {
	Owner   string   `json:"owner"`
	Reverts string   `json:"reverts,omitempty"` // the ended transaction that this one reverts
	Also    []string `json:"also,omitempty"`    // further ended transactions; this one also reverts their dependent calls
	Redoes  string   `json:"redoes,omitempty"`  // the reverted transaction that this one redoes
	Only    string   `json:"only,omitempty"`    // with redoes: redo only what this revert transaction reverted
	Roots   []Root   `json:"roots,omitempty"`   // with reverts, redoes: the folders of the revert, if a person named others than the recorded ones
	Prompt  *Prompt  `json:"prompt,omitempty"`  // the prompt that the calls of the transaction follow
}

// Prompt names one request of the user to a coding agent.
type Prompt struct {
	Client string `json:"client"`
	ID     string `json:"id"` // the client's ID of the prompt
}

// Prompted has the first words of the prompt of a transaction. It is a record of
// its own, so that an erasure can destroy the words and keep the transaction.
// Its header names the record itself, and no call.
type Prompted struct {
	Text string `json:"text"`
}

// Adopted gives an abandoned transaction a new owner.
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
	In      string `json:"in,omitempty"` // the enclosing nested transaction; empty: the transaction itself
	Session string `json:"session"`      // the session of its calls
}

// NestEnded ends a nested transaction.
type NestEnded struct {
	ID       string `json:"id"`
	Reverted bool   `json:"reverted"`           // false: its calls now belong to the enclosing transaction
	Complete bool   `json:"complete,omitempty"` // for a reverted one: no effect is left
}

// RevertedTo says that everything after a savepoint was reverted, as far as the
// Reverted records between them say.
type RevertedTo struct {
	Name     string `json:"name"`
	Complete bool   `json:"complete"`
}

// Committed ends a transaction; its effects stay.
type Committed struct{}

// Aborting says that the revert of the transaction began.
type Aborting struct {
	Why    string `json:"why"`
	Denied bool   `json:"denied,omitempty"` // the commit was denied, so recovery completes the revert
}

// Aborted ends a reverted transaction. If Complete is false, the Reverted
// records list what remains, and the transaction is never shown as success.
type Aborted struct {
	Complete bool `json:"complete"`
}

// Committing begins a commit that has calls to release. The transaction accepts
// no other call from then on. Until it is Committed it can still be reverted,
// as far as the released calls can.
type Committing struct{}

// RevertedBy is a record of an ended transaction. It names the transaction that
// reverts or redoes it.
type RevertedBy struct {
	Txn string `json:"txn"`
}
