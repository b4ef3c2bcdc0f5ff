package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
)

// Read looks at rows in one snapshot.
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

// restoration is a transaction that puts rows back. Triggers do not fire: what they
// did the first time is among the rows.
type restoration struct {
	c       *connection
	tables  *tables
	capture *capture
	repairs []engine.Repair
	out     []engine.Outcome
	planned map[string]int // by row
	careful bool           // each row is checked by itself
}

// Restore puts rows back that still are as expected.
func (d *file) Restore(ctx context.Context, repairs []engine.Repair) (out []engine.Outcome, err error) {
	c, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	r := &restoration{c: c, tables: newTables(c), repairs: repairs, out: make([]engine.Outcome, len(repairs)), planned: map[string]int{}}
	for i, p := range repairs {
		r.planned[nameOf(p.Ref)] = i
	}
	defer func() {
		r.tables.close()
		err = errors.Join(err, c.Close()) // what is not committed is rolled back
	}()
	if r.capture, err = c.capture(); err != nil {
		return nil, d.trouble(err)
	}
	err = errors.Join(
		c.own(ctx, "PRAGMA foreign_keys=1"), c.own(ctx, "PRAGMA ignore_check_constraints=1"),
		c.handle.set(lib.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0), c.own(ctx, "BEGIN IMMEDIATE"),
	)
	if err == nil {
		err = r.run(ctx)
	}
	return r.out, d.trouble(err)
}

// run looks at each row and then puts them back, without those that turn out to be
// in somebody's way, until what is left can be committed.
func (r *restoration) run(ctx context.Context) error {
	for i, p := range r.repairs {
		o, err := r.tables.look(ctx, p.Ref)
		if err != nil {
			return err
		}
		if o.Why == "" && !o.Now.Same(p.From) {
			o.Why = "it was changed after the undo was planned"
		}
		r.out[i] = o
	}
	for {
		later := "1"
		if r.careful {
			later = "0"
		}
		if err := errors.Join(r.c.own(ctx, "SAVEPOINT whole"), r.c.own(ctx, "PRAGMA defer_foreign_keys="+later)); err != nil {
			return err
		}
		if err := r.put(ctx); err != nil {
			return err
		}
		again, err := r.verify(ctx)
		if err == nil && !again {
			again, err = r.commit(ctx)
		}
		if err != nil || !again {
			return err
		}
		if err := errors.Join(r.c.own(ctx, "ROLLBACK TO whole"), r.c.own(ctx, "RELEASE whole")); err != nil {
			return err
		}
	}
}

// maxAgain is how often a row is put back that a foreign key changed again.
const maxAgain = 3

// put puts rows back as far as it goes, those that others are in the way of after
// those, and those that a foreign key changed meanwhile once more.
func (r *restoration) put(ctx context.Context) error {
	waiting, again := map[int]string{}, map[int]int{}
	for i := range r.repairs {
		if r.out[i].Why == "" {
			waiting[i] = ""
		}
	}
	for more := true; more && len(waiting) > 0; {
		more = false
		for i := len(r.repairs) - 1; i >= 0; i-- { // the last change first
			if _, ok := waiting[i]; !ok {
				continue
			}
			why, moved, err := r.one(ctx, i)
			if err != nil {
				return err
			}
			if waiting[i] = why; why != "" {
				continue
			}
			delete(waiting, i)
			more = true
			for _, j := range moved {
				if again[j]++; again[j] <= maxAgain {
					waiting[j] = ""
				}
			}
		}
	}
	for i, why := range waiting {
		r.out[i].Why = why
	}
	return nil
}

// one puts one row back, or says why not. Moved are other planned rows that a foreign
// key changed with it.
func (r *restoration) one(ctx context.Context, i int) (why string, moved []int, err error) {
	if err := r.c.own(ctx, "SAVEPOINT one"); err != nil {
		return "", nil, err
	}
	r.capture.on, r.capture.events, r.capture.err = true, nil, nil
	err = r.set(ctx, r.repairs[i])
	r.capture.on = false
	var e *driver.Error
	switch {
	case errors.As(err, &e) && e.Code()&0xff == lib.SQLITE_CONSTRAINT:
		why, err = "another row is in the way: "+e.Error(), nil
	case err != nil:
		return "", nil, err
	case r.capture.err != nil:
		return "", nil, r.capture.err
	default:
		why, moved, err = r.others(ctx, i)
	}
	if err == nil && why != "" {
		err = r.c.own(ctx, "ROLLBACK TO one")
	}
	return why, moved, errors.Join(err, r.c.own(ctx, "RELEASE one"))
}

// others looks which rows besides one a foreign key changed. Those that are not
// planned are somebody else's.
func (r *restoration) others(ctx context.Context, i int) (why string, moved []int, err error) {
	var h history
	for _, e := range r.capture.events {
		t, err := r.tables.get(ctx, e.table)
		if err != nil {
			return "", nil, err
		}
		h.take(t, e)
	}
	for _, row := range h.order {
		switch j, ok := r.planned[nameOf(row.ref)]; {
		case !ok || r.out[j].Why != "":
			return "rows of " + row.ref.Table.Name + " that somebody else made depend on it", nil, nil
		case j != i:
			moved = append(moved, j)
		}
	}
	return "", moved, nil
}

// set makes a row what it is wanted to be, whatever is there.
func (r *restoration) set(ctx context.Context, p engine.Repair) error {
	t, err := r.tables.get(ctx, p.Ref.Table.Name)
	if err != nil {
		return err
	}
	key, err := engine.Values(p.Ref.Key)
	if err != nil {
		return err
	}
	now, err := r.tables.row(ctx, p.Ref)
	if err != nil || now.Same(p.Want) {
		return err
	}
	if p.Want == nil {
		return r.c.own(ctx, "DELETE FROM main."+quote(t.Name)+" WHERE "+t.keyIs(), key...)
	}
	want, err := engine.Values(p.Want)
	if err != nil {
		return err
	}
	var names, marks, sets []string
	for _, c := range t.Cols {
		names, marks, sets = append(names, quote(c)), append(marks, "?"), append(sets, quote(c)+" = ?")
	}
	if now == nil {
		return r.c.own(ctx, "INSERT INTO main."+quote(t.Name)+" ("+strings.Join(names, ", ")+") VALUES ("+strings.Join(marks, ", ")+")", want...)
	}
	return r.c.own(ctx, "UPDATE main."+quote(t.Name)+" SET "+strings.Join(sets, ", ")+" WHERE "+t.keyIs(), append(want, key...)...)
}

// verify reads each row that was put back. One that is not as it was to be is left
// alone, and the others are done again without it.
func (r *restoration) verify(ctx context.Context) (again bool, err error) {
	for i, p := range r.repairs {
		if r.out[i].Why != "" {
			continue
		}
		now, err := r.tables.row(ctx, p.Ref)
		if err != nil {
			return false, err
		}
		if !now.Same(p.Want) {
			r.out[i].Why, again = "the database stores it in another way than it was", true
		}
	}
	return again, nil
}

// commit ends the transaction. Where foreign keys do not allow it, each row is put
// back once more with its own check, so that those which are in the way show; of keys
// that are only checked at the end, all rows of their tables are left out.
func (r *restoration) commit(ctx context.Context) (again bool, err error) {
	err = r.c.own(ctx, "COMMIT")
	var e *driver.Error
	if errors.As(err, &e) && e.Code()&0xff == lib.SQLITE_CONSTRAINT {
		if !r.careful {
			r.careful = true
			return true, nil
		}
		return true, r.dangling(ctx)
	}
	if err != nil {
		return false, err
	}
	for i, p := range r.repairs {
		if r.out[i].Why == "" {
			r.out[i].Now = p.Want
		}
	}
	return false, nil
}

// dangling finds the rows because of which a foreign key would lead nowhere: one of
// ours that needs a row that is gone, or one that somebody else's row needs.
func (r *restoration) dangling(ctx context.Context) error {
	broken, err := r.c.rows(ctx, `SELECT DISTINCT "table", parent FROM pragma_foreign_key_check`)
	if err != nil {
		return err
	}
	found := false
	for i, p := range r.repairs {
		for _, b := range broken {
			child, _ := b[0].(string)
			parent, _ := b[1].(string)
			if r.out[i].Why != "" {
				continue
			}
			switch {
			case p.Want != nil && strings.EqualFold(child, p.Ref.Table.Name):
				r.out[i].Why, found = fmt.Sprintf("a row of %s that rows of this table depend on is not there any more", parent), true
			case strings.EqualFold(parent, p.Ref.Table.Name) && (p.Want == nil || p.From != nil):
				r.out[i].Why, found = fmt.Sprintf("rows of %s that somebody else made depend on rows of this table", child), true
			}
		}
	}
	for i := range r.out { // nothing to blame: nothing is done
		if !found && r.out[i].Why == "" {
			r.out[i].Why = "foreign keys do not allow it"
		}
	}
	return nil
}
