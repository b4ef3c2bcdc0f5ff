// Package engine defines what a database handle needs of a kind of database. It
// reads under a guard, captures the changed rows of a transaction, and restores
// rows under a condition.
package engine

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/perm"
)

// ErrUndetermined states that the outcome of a commit is not known yet.
var ErrUndetermined = errors.New("the outcome of the database commit is unknown")

// ErrRefused states that this handle cannot run a statement for any caller.
var ErrRefused = errors.New("refused")

// Kind opens databases of one kind.
type Kind interface {
	// Scheme returns the text before the colon of a location, such as sqlite.
	Scheme() string
	// Open parses a location and does not connect yet. Public is its form
	// without secrets, for records.
	Open(at string) (e Engine, public string, err error)
}

// Engine is one database. Its methods are safe for concurrent use.
type Engine interface {
	// Identity distinguishes the database from another one at the same place.
	// It is empty before the first change through a handle.
	Identity(ctx context.Context) (string, error)
	// Query reads. It can never change the database.
	Query(ctx context.Context, s Statement, ask AuthorizeFunc, w Page) (Rows, error)
	// Begin opens the transaction of one call.
	Begin(ctx context.Context) (Tx, error)
	// Fate returns the outcome of a transaction whose process may have died.
	TxnOutcomeOf(ctx context.Context, m TxnMarker) (TxnOutcome, error)
	// Read returns the current rows. Why is the reason that one cannot be read.
	Read(ctx context.Context, rows []Ref) ([]Outcome, error)
	// Restore sets each row to its wanted image, if it still has the expected
	// one, all in one transaction. It returns an outcome for each.
	Restore(ctx context.Context, repairs []RowRestore) ([]Outcome, error)
	Close() error
}

// Tx is the open transaction of one call. It is not safe for concurrent use.
type Tx interface {
	Execute(ctx context.Context, s Statement, ask AuthorizeFunc, w Page) (Rows, error)
	Query(ctx context.Context, s Statement, ask AuthorizeFunc, w Page) (Rows, error)
	// Prepare returns the changed rows. No statement can run after it. It
	// records op in the transaction.
	Prepare(ctx context.Context, op string) ([]Change, TxnMarker, error)
	// Commit returns ErrUndetermined if the outcome is unknown.
	Commit(ctx context.Context) error
	// Rollback reverts all changes. It can be called at any time, and
	// repeatedly.
	Rollback()
}

// Statement is one statement with its parameters, by position or by name. A
// parameter is nil, bool, int64, float64, string or []byte.
type Statement struct {
	SQL   string
	Args  []any
	Named map[string]any
}

// Access is the access of a statement to a table or, without a table, to the
// database.
type Access struct {
	Action    perm.Action
	Table     string
	Statement string
}

// AuthorizeFunc authorizes accesses. Callers return its error unchanged.
type AuthorizeFunc func(ctx context.Context, accesses []Access) error

// Page selects the rows of a result, and bounds their size.
type Page struct {
	Skip, Max int
	Bytes     int
}

// Rows are rows of a result. A value is nil, bool, int64, float64, string,
// []byte or json.RawMessage.
type Rows struct {
	Columns  []string
	Rows     [][]any
	More     bool
	Affected int64
}

// Table describes how the rows of a table are stored.
type Table struct {
	Name string   `json:"table"` // name in the resource
	Cols []string `json:"cols"`  // all stored columns of a row
	Key  []int    `json:"key"`   // columns that identify a row
}

// Image is a row: one cell for each column of its table. A nil Image is an
// absent row. A cell is the empty string for NULL, or a letter for its type and
// its value.
type Image []string

// Ref identifies a row by its key.
type Ref struct {
	Table Table
	Key   []string // cells
}

// Ref returns the key of an image.
func (t Table) Ref(i Image) Ref {
	key := make([]string, len(t.Key))
	for n, at := range t.Key {
		key[n] = i[at]
	}
	return Ref{Table: t, Key: key}
}

// Change is one row, before and after the transaction.
type Change struct {
	Ref       Ref
	Was, Will Image
}

// TxnMarker identifies a transaction later.
type TxnMarker struct {
	Identity string `json:"id"`             // identity of the database
	Op       string `json:"op"`             // operation recorded in the transaction
	Seq      int64  `json:"seq,omitempty"`  // its sequence number
	Xid      string `json:"xid,omitempty"`  // the database's ID of it
	Process  int64  `json:"proc,omitempty"` // the server process that runs it
}

// TxnOutcome is the outcome of a transaction.
type TxnOutcome uint8

// The outcomes. The zero TxnOutcome is unknown.
const (
	Lost      TxnOutcome = iota // no record of it remains
	Committed                   // it committed
	Aborted                     // it never had an effect
	Running                     // it can still commit
)

// RowRestore is a row to restore.
type RowRestore struct {
	Ref        Ref
	From, Want Image
}

// Outcome is the result of a restore, or the current state of a row. Why is
// empty after success.
type Outcome struct {
	Now Image  // current image
	Why string // why the row was not changed
	Bad bool   // the reason is an error, not a conflict
}
