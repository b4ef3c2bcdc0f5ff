package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
)

// Read reads rows in one snapshot.
func (d *file) Read(ctx context.Context, rows []engine.Ref) (out []engine.Outcome, err error) {
	c, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := errors.Join(c.own(ctx, "PRAGMA query_only=1"), c.own(ctx, "BEGIN")); err != nil {
		return nil, d.trouble(err)
	}
	t := newTables(c)
	defer t.close()
	for _, ref := range rows {
		o, err := t.look(ctx, ref)
		if err != nil {
			return nil, d.trouble(err)
		}
		out = append(out, o)
	}
	return out, nil
}

func (t *tables) look(ctx context.Context, ref engine.Ref) (o engine.Outcome, err error) {
	if o.Why, err = t.sameShape(ctx, ref.Table); err == nil && o.Why == "" {
		o.Now, err = t.row(ctx, ref)
	}
	return o, err
}

// repairer is a transaction that restores rows.
type repairer struct {
	c       *connection
	tables  *tables
	capture *capture
}

var _ engine.RowRestorer = (*repairer)(nil)

// Restore restores rows that still are as expected.
func (d *file) Restore(ctx context.Context, repairs []engine.RowRestore) (out []engine.Outcome, err error) {
	c, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	r := &repairer{c: c, tables: newTables(c)}
	defer func() {
		r.tables.close()
		err = errors.Join(err, c.Close()) // rolls back what is not committed
	}()
	if r.capture, err = c.capture(); err != nil {
		return nil, d.trouble(err)
	}
	r.capture.on = true
	if err = r.Do(ctx, "PRAGMA foreign_keys=1", "PRAGMA ignore_check_constraints=1"); err == nil {
		err = c.handle.set(lib.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
	}
	if err == nil {
		err = r.Do(ctx, "BEGIN IMMEDIATE")
	}
	if err == nil {
		out, err = engine.Restore(ctx, r, repairs)
	}
	return out, d.trouble(err)
}

// Look locks nothing: no other client writes meanwhile.
func (r *repairer) Look(ctx context.Context, ref engine.Ref) (engine.Outcome, error) {
	return r.tables.look(ctx, ref)
}

// Row reads a row.
func (r *repairer) Row(ctx context.Context, ref engine.Ref) (engine.Image, error) {
	return r.tables.row(ctx, ref)
}

// Do runs statements of this package.
func (r *repairer) Do(ctx context.Context, texts ...string) error {
	for _, text := range texts {
		if err := r.c.own(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// Check sets when foreign keys are checked. Keys declared deferred are always
// checked at the end.
func (r *repairer) Check(ctx context.Context, each bool) error {
	later := "1"
	if each {
		later = "0"
	}
	return r.c.own(ctx, "PRAGMA defer_foreign_keys="+later)
}

// Write changes a row.
func (r *repairer) Write(ctx context.Context, ref engine.Ref, now, want engine.Image) error {
	t, err := r.tables.get(ctx, ref.Table.Name)
	if err != nil {
		return err
	}
	key, err := engine.Values(ref.Key)
	if err != nil {
		return err
	}
	if want == nil {
		return r.change(ctx, "DELETE FROM main."+quote(t.Name)+" WHERE "+t.keyIs(), key...)
	}
	values, err := engine.Values(want)
	if err != nil {
		return err
	}
	var names, marks, sets []string
	for _, c := range t.Cols {
		names, marks, sets = append(names, quote(c)), append(marks, "?"), append(sets, quote(c)+" = ?")
	}
	if now == nil {
		return r.change(ctx, "INSERT INTO main."+quote(t.Name)+" ("+strings.Join(names, ", ")+") VALUES ("+strings.Join(marks, ", ")+")", values...)
	}
	return r.change(ctx, "UPDATE main."+quote(t.Name)+" SET "+strings.Join(sets, ", ")+" WHERE "+t.keyIs(), append(values, key...)...)
}

// Vacate sets values to NULL, or to random ones of the same type. Some indexes
// accept neither.
func (r *repairer) Vacate(ctx context.Context, ref engine.Ref, now, want engine.Image) error {
	t, err := r.tables.get(ctx, ref.Table.Name)
	if err != nil {
		return err
	}
	var sets []string
	for i, c := range t.Cols {
		if want == nil || now[i] == want[i] || slices.Contains(t.Key, i) {
			continue
		}
		other := "NULL"
		if t.full[c] && now[i] != "" {
			other = another(now[i])
		}
		sets = append(sets, quote(c)+" = "+other)
	}
	if len(sets) == 0 {
		return engine.ErrRowBlocked
	}
	key, err := engine.Values(ref.Key)
	if err != nil {
		return err
	}
	err = r.change(ctx, "UPDATE main."+quote(t.Name)+" SET "+strings.Join(sets, ", ")+" WHERE "+t.keyIs(), key...)
	var e *driver.Error
	if errors.As(err, &e) && e.Code() == lib.SQLITE_ERROR {
		return engine.ErrRowBlocked
	}
	return err
}

// another returns a unique value of the same type.
func another(cell string) string {
	switch cell[:1] {
	case "i":
		return "random()"
	case "r":
		return "random() + 0.5"
	case "b":
		return "randomblob(16)"
	default:
		return "hex(randomblob(16))"
	}
}

// change runs a statement and records the rows that it changes.
func (r *repairer) change(ctx context.Context, text string, args ...any) error {
	r.capture.events, r.capture.size = nil, 0
	if err := r.c.own(ctx, text, args...); err != nil {
		return err
	}
	return r.capture.err
}

// Changed returns the rows that SQLite announced.
func (r *repairer) Changed(ctx context.Context) (rows []engine.Ref, why string, err error) {
	var h history
	for _, e := range r.capture.events {
		t, err := r.tables.get(ctx, e.table)
		if err != nil {
			return nil, "", err
		}
		h.take(t, e)
	}
	for _, row := range h.order {
		rows = append(rows, row.ref)
	}
	return rows, "", nil
}

// Constraint returns the text of SQLite.
func (r *repairer) Constraint(err error) string {
	var e *driver.Error
	if errors.As(err, &e) && e.Code()&0xff == lib.SQLITE_CONSTRAINT {
		return e.Error()
	}
	return ""
}

// Commit ends the transaction.
func (r *repairer) Commit(ctx context.Context) error { return r.c.own(ctx, "COMMIT") }

// Blame finds the rows that break a foreign key: a restored row that refers to
// a missing row, or a removed one to which another row refers. For keys that
// are checked only at the end, these are all rows of their tables.
func (r *repairer) Blame(ctx context.Context, repairs []engine.RowRestore, out []engine.Outcome) error {
	broken, err := r.c.rows(ctx, `SELECT DISTINCT "table", parent FROM pragma_foreign_key_check`)
	if err != nil {
		return err
	}
	for i, p := range repairs {
		for _, b := range broken {
			child, _ := b[0].(string)
			parent, _ := b[1].(string)
			switch {
			case out[i].Why != "":
			case p.Want != nil && strings.EqualFold(child, p.Ref.Table.Name):
				out[i].Why = fmt.Sprintf("a row of %s that rows of this table depend on is not there", parent)
			case strings.EqualFold(parent, p.Ref.Table.Name) && (p.Want == nil || p.From != nil):
				out[i].Why = fmt.Sprintf("rows of %s that another client created depend on rows of this table", child)
			}
		}
	}
	return nil
}
