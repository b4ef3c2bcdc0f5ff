package database

import (
	"context"
	"errors"
	"fmt"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/perm"
)

var contexts = handleaccess.ContextsOf[ctxperm.ToolContext, ctxperm.Permit]()

// Database gives one call access to one database. Its operations run one after
// the other.
type Database struct {
	tc     ctxperm.ToolContext
	driver *Driver
	name   string
	source *source
}

// Open returns a named database for the call of tc. It authorizes nothing and
// connects to nothing: each operation does.
func Open(ctx context.Context, tc ctxperm.ToolContext, name string) (*Database, error) {
	d, err := ctxperm.DriverOf[*Driver](ctx, tc)
	if errors.Is(err, ctxperm.ErrNoDriver) {
		return nil, fmt.Errorf("open database: %w; make one with database.New and give it to agent.Driver (remit run: --database NAME=sqlite:PATH)", err)
	}
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	s, ok := d.named[name]
	if !ok {
		return nil, fmt.Errorf("open database: %w: no database %q; there is %s", ctxperm.ErrInvalid, name, orNone(d.Names()))
	}
	return &Database{tc: tc, driver: d, name: name, source: s}, nil
}

// Statement is one SQL statement. Its parameters are set by position (Args) or
// by name (Named). Each is nil, a bool, int64, float64, string or []byte.
type Statement struct {
	SQL   string
	Args  []any
	Named map[string]any
}

// Page selects the rows of a result. Zero fields have defaults.
type Page struct {
	Page  int // first is 1
	Rows  int // rows of a page; default 100
	Bytes int // maximum bytes; default 1 MiB
}

// Result is the result of a statement. A value of a row is nil, bool, int64,
// float64, string, []byte or json.RawMessage.
type Result struct {
	Columns  []string
	Rows     [][]any
	HasMore  bool  // more rows follow
	Affected int64 // rows that a statement changed, without those of triggers
}

func (w Page) engine() engine.Page {
	if w.Rows <= 0 {
		w.Rows = 100
	}
	if w.Bytes <= 0 {
		w.Bytes = 1 << 20
	}
	return engine.Page{Skip: max(0, w.Page-1) * w.Rows, Max: w.Rows, Bytes: w.Bytes}
}

func resultOf(r engine.Rows) Result {
	return Result{Columns: r.Columns, Rows: r.Rows, HasMore: r.More, Affected: r.Affected}
}

// Query runs a statement that only reads; the database enforces that. It sees
// earlier changes of the call.
func (d *Database) Query(ctx context.Context, s Statement, w Page) (Result, error) {
	op, err := d.enter(ctx)
	if err != nil {
		return Result{}, err
	}
	defer op.Leave()
	var rows engine.Rows
	if open := d.callTxnOf(op.Call(), false); open != nil {
		rows, err = open.query(ctx, engine.Statement(s), d.ask, w.engine())
	} else if err = d.point(ctx, op, "database.query"); err == nil {
		rows, err = d.source.engine.Query(ctx, engine.Statement(s), d.ask, w.engine())
	}
	if err != nil {
		return Result{}, fmt.Errorf("database %s: %w", d.name, err)
	}
	return resultOf(rows), nil
}

// enter keeps the call from ending while an operation runs.
func (d *Database) enter(ctx context.Context) (*callstate.Op, error) {
	return contexts.Call(d.tc).Enter(ctx)
}

func (d *Database) point(ctx context.Context, op *callstate.Op, id string) error {
	call := op.Call()
	if call == nil {
		return ctxperm.ErrClosed
	}
	return call.Config().Recorder.Host().Point(ctx, id)
}

// ask authorizes the accesses of a statement.
func (d *Database) ask(ctx context.Context, accesses []engine.Access) error {
	all, err := d.accesses(accesses)
	if err != nil || len(all) == 0 {
		return err
	}
	permit, err := ctxperm.Authorize(ctx, d.tc, all...)
	if err == nil {
		permit.End()
	}
	return err
}

// accesses returns the accesses for the policy. A statement that uses no table,
// such as SELECT 1, is a list of the database.
func (d *Database) accesses(accesses []engine.Access) (all []perm.ResourceAccess, err error) {
	if len(accesses) == 0 {
		accesses = []engine.Access{{Action: perm.List}}
	}
	for _, a := range accesses {
		var path []string
		if a.Table != "" {
			path = []string{a.Table}
		}
		r, err := perm.KindDB.Resource(d.name, path...)
		if err == nil && a.Statement != "" {
			r, err = r.WithStatement(a.Statement)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: a table's name is none that can be granted: %w", engine.ErrRefused, err)
		}
		all = append(all, perm.Access(a.Action, r.String()))
	}
	return all, nil
}

// JSONFloat returns a float for JSON: infinities and NaN become text.
func JSONFloat(f float64) any { return engine.Plain(f) }
