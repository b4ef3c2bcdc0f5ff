// Package engine is what a database handle needs of a kind of database: reading
// under a gate, one transaction that captures the rows it changes, and restoring
// rows under a condition.
package engine

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/perm"
)

// ErrUndetermined says that nobody can tell yet whether a transaction committed.
var ErrUndetermined = errors.New("it cannot be told whether the database committed")

// ErrRefused says that a statement cannot be run by this handle, whoever asks.
var ErrRefused = errors.New("refused")

// Kind opens databases of one kind.
type Kind interface {
	// Scheme stands before the colon of a location, such as sqlite.
	Scheme() string
	// Open takes a location and connects to nothing yet. Public is the form of it
	// that may be written down: it holds no secret.
	Open(at string) (e Engine, public string, err error)
}

// Engine is one database. Methods are safe for concurrent use.
type Engine interface {
	// Identity tells the database from another one at the same place; empty while
	// nothing was ever changed through a handle.
	Identity(ctx context.Context) (string, error)
	// Query reads. Nothing it does can change the database.
	Query(ctx context.Context, s Statement, ask AuthorizeFunc, w Page) (Rows, error)
	// Begin opens the transaction of one call.
	Begin(ctx context.Context) (Tx, error)
	// Fate tells what became of a transaction of a process that may have died.
	Fate(ctx context.Context, m TxnMarker) (TxnOutcome, error)
	// Read looks at rows as they are now. Why says what keeps one from being read.
	Read(ctx context.Context, rows []Ref) ([]Outcome, error)
	// Restore makes each row what it is wanted to be if it still is what it is
	// expected to be, all in one transaction. It answers for each.
	Restore(ctx context.Context, repairs []RowRestore) ([]Outcome, error)
	Close() error
}

// Tx is the open transaction of one call. It is not safe for concurrent use.
type Tx interface {
	Execute(ctx context.Context, s Statement, ask AuthorizeFunc, w Page) (Rows, error)
	Query(ctx context.Context, s Statement, ask AuthorizeFunc, w Page) (Rows, error)
	// Prepare says what was changed. Nothing can be executed after it. op is
	// written down in the transaction.
	Prepare(ctx context.Context, op string) ([]Change, TxnMarker, error)
	// Commit is ErrUndetermined where nobody can tell.
	Commit(ctx context.Context) error
	// Rollback gives everything back. It may be called at any time, and again.
	Rollback()
}

// Statement is one statement with its parameters, by position or by name. A
// parameter is nil, bool, int64, float64, string or []byte.
type Statement struct {
	SQL   string
	Args  []any
	Named map[string]any
}

// Access is what a statement does to a table; without a table, to the database.
type Access struct {
	Action    perm.Action
	Table     string
	Statement string
}

// AuthorizeFunc decides accesses. Its error is passed on as it is.
type AuthorizeFunc func(ctx context.Context, accesses []Access) error

// Page is which rows of a result are wanted, and how much of them.
type Page struct {
	Skip, Max int
	Bytes     int
}

// Rows are rows of a result. A value is nil, bool, int64, float64, string, []byte
// or json.RawMessage.
type Rows struct {
	Columns  []string
	Rows     [][]any
	More     bool
	Affected int64
	Tables   []string // that were changed
}

// Table says how the rows of a table are written down.
type Table struct {
	Name string   `json:"table"` // as the resource names it
	Cols []string `json:"cols"`  // all that is stored of a row
	Key  []int    `json:"key"`   // which of them tell one row from another
}

// Image is a row: one cell for each column of its table. Nil is no row. A cell is
// the empty string for NULL, or a letter for its type and its value.
type Image []string

// Ref names a row by its key.
type Ref struct {
	Table Table
	Key   []string // cells
}

// Ref names the row of an image.
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

// TxnMarker is how a transaction is found again.
type TxnMarker struct {
	Identity string `json:"id"`             // of the database
	Op       string `json:"op"`             // what was written down in it
	Seq      int64  `json:"seq,omitempty"`  // under which number
	Xid      string `json:"xid,omitempty"`  // the database's own name of it
	Process  int64  `json:"proc,omitempty"` // of the database, that runs it
}

// TxnOutcome is what became of a transaction.
type TxnOutcome uint8

// The fates. The zero Fate is not known.
const (
	Lost      TxnOutcome = iota // nothing tells any more
	Committed                   // its effect was there
	Aborted                     // it never had an effect
	Running                     // it may still commit
)

// RowRestore is a row that is to be as it was.
type RowRestore struct {
	Ref        Ref
	From, Want Image
}

// Outcome is what became of a repair, or what was seen of a row. Why is empty where
// it was done.
type Outcome struct {
	Now Image  // what is there
	Why string // why it was left alone
	Bad bool   // it is nobody's fault that was in the way: something went wrong
}
