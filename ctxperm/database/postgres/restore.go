package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// Read looks at rows in one snapshot.
func (s *server) Read(ctx context.Context, rows []engine.Ref) (out []engine.Outcome, err error) {
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer c.close()
	if err := c.do(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"); err != nil {
		return nil, err
	}
	t := &tables{c, map[string]*table{}}
	for _, ref := range rows {
		o, err := t.look(ctx, ref, false)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

func (t *tables) look(ctx context.Context, ref engine.Ref, locked bool) (o engine.Outcome, err error) {
	if o.Why, err = t.sameShape(ctx, ref.Table); err == nil && o.Why == "" {
		o.Now, err = t.row(ctx, ref, locked)
	}
	return o, err
}

// restoration is a transaction that puts rows back. The triggers of their tables are
// off; foreign keys hold.
type restoration struct {
	c       *connection
	tables  *tables
	capture *capture
	repairs []engine.Repair
	out     []engine.Outcome
	planned map[string]int
	acting  map[string]bool // tables on whose rows a foreign key makes others depend
	careful bool            // each row is checked by itself
}

// Restore puts rows back that still are as expected.
func (s *server) Restore(ctx context.Context, repairs []engine.Repair) ([]engine.Outcome, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer c.close()
	r := &restoration{
		c: c, tables: &tables{c, map[string]*table{}}, repairs: repairs, out: make([]engine.Outcome, len(repairs)),
		planned: map[string]int{}, acting: map[string]bool{},
	}
	r.capture = newCapture(r.tables)
	for i, p := range repairs {
		r.planned[rowName(p.Ref)] = i
	}
	if err := c.do(ctx, "BEGIN ISOLATION LEVEL READ COMMITTED"); err != nil {
		return nil, err
	}
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	return r.out, r.run(ctx)
}

// prepare looks at each row and holds it, switches triggers off, and watches the
// tables that foreign keys would change.
func (r *restoration) prepare(ctx context.Context) error {
	for i, p := range r.repairs {
		o, err := r.tables.look(ctx, p.Ref, true)
		if err != nil {
			return err
		}
		if o.Why == "" && !o.Now.Same(p.From) {
			o.Why = "it was changed after the undo was planned"
		}
		r.out[i] = o
	}
	for _, t := range r.tables.known {
		for _, name := range t.triggers {
			if err := r.c.do(ctx, "ALTER TABLE "+t.sql+" DISABLE TRIGGER "+name); err != nil {
				return fmt.Errorf("the triggers of %s cannot be switched off: %w", t.Name, err)
			}
		}
	}
	for _, p := range r.repairs {
		if err := r.watch(ctx, p.Ref.Table.Name); err != nil {
			return err
		}
	}
	return nil
}

// watch makes triggers on the tables whose rows a foreign key changes or deletes with
// those of a table.
func (r *restoration) watch(ctx context.Context, name string) error {
	t, err := r.tables.get(ctx, name)
	if errors.Is(err, errNoTable) || r.acting[name] {
		return nil
	}
	if err != nil {
		return err
	}
	children, err := r.c.all(ctx, `SELECT n.nspname, k.relname FROM pg_constraint f JOIN pg_class k ON k.oid = f.conrelid JOIN pg_namespace n ON n.oid = k.relnamespace
		WHERE f.contype = 'f' AND f.confrelid = $1::oid AND (f.confdeltype IN ('c', 'n', 'd') OR f.confupdtype IN ('c', 'n', 'd'))`, t.oid)
	if err != nil || len(children) == 0 {
		return err
	}
	r.acting[name] = true
	for _, k := range children {
		child, err := r.tables.get(ctx, nameOf(k[0], k[1]))
		if err == nil {
			err = r.capture.watch(ctx, child)
		}
		if err == nil {
			err = r.watch(ctx, child.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// run puts rows back, without those that turn out to be in somebody's way, until
// what is left can be committed.
func (r *restoration) run(ctx context.Context) error {
	for {
		when := "DEFERRED"
		if r.careful {
			when = "IMMEDIATE"
		}
		if err := r.c.do(ctx, "SAVEPOINT whole", "SET CONSTRAINTS ALL "+when); err != nil {
			return err
		}
		if err := r.put(ctx); err != nil {
			return err
		}
		again, err := r.verify(ctx)
		if err == nil && !again {
			again, err = r.settle(ctx)
		}
		if err != nil {
			return err
		}
		if !again {
			return r.commit(ctx)
		}
		if err := r.c.do(ctx, "ROLLBACK TO whole", "RELEASE whole"); err != nil {
			return err
		}
	}
}

// maxAgain is how often a row is put back that a foreign key changed again.
const maxAgain = 3

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

// one puts one row back, or says why not.
func (r *restoration) one(ctx context.Context, i int) (why string, moved []int, err error) {
	if err := r.c.do(ctx, "SAVEPOINT one"); err != nil {
		return "", nil, err
	}
	noted := r.capture.last
	err = r.set(ctx, r.repairs[i])
	if e, ok := asPg(err); ok && strings.HasPrefix(e.Code, "23") {
		why, err = "another row is in the way: "+e.Message, nil
	} else if err == nil && r.acting[r.repairs[i].Ref.Table.Name] {
		why, moved, err = r.others(ctx, i)
	}
	if err != nil {
		return "", nil, err
	}
	if why != "" {
		r.capture.last = noted
		err = r.c.do(ctx, "ROLLBACK TO one")
	}
	return why, moved, errors.Join(err, r.c.do(ctx, "RELEASE one"))
}

// others looks which rows besides one a foreign key changed.
func (r *restoration) others(ctx context.Context, i int) (why string, moved []int, err error) {
	events, err := r.capture.take(ctx)
	if err != nil {
		return "", nil, err
	}
	var h history
	for _, e := range events {
		h.add(e)
	}
	for _, row := range h.order {
		switch j, ok := r.planned[rowName(row.ref)]; {
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
	now, err := r.tables.row(ctx, p.Ref, false)
	if err != nil || now.Same(p.Want) {
		return err
	}
	exec := func(text string, args [][]byte) error {
		return r.c.ExecParams(ctx, text, args, nil, nil, nil).Read().Err
	}
	if p.Want == nil {
		return exec("DELETE FROM ONLY "+t.sql+" WHERE "+t.where(1), cells(p.Ref.Key))
	}
	var names, marks, sets []string
	var args []string
	for i, c := range t.Cols {
		if now != nil && now[i] == p.Want[i] {
			continue
		}
		args = append(args, p.Want[i])
		mark := "$" + strconv.Itoa(len(args))
		names, marks, sets = append(names, quote(c)), append(marks, mark), append(sets, quote(c)+" = "+mark)
	}
	if now == nil {
		return exec("INSERT INTO "+t.sql+" ("+strings.Join(names, ", ")+") OVERRIDING SYSTEM VALUE VALUES ("+strings.Join(marks, ", ")+")", cells(args))
	}
	return exec("UPDATE ONLY "+t.sql+" SET "+strings.Join(sets, ", ")+" WHERE "+t.where(len(args)+1), cells(append(args, p.Ref.Key...)))
}

func (r *restoration) verify(ctx context.Context) (again bool, err error) {
	for i, p := range r.repairs {
		if r.out[i].Why != "" {
			continue
		}
		now, err := r.tables.row(ctx, p.Ref, false)
		if err != nil {
			return false, err
		}
		if !now.Same(p.Want) {
			r.out[i].Why, again = "the database stores it in another way than it was", true
		}
	}
	return again, nil
}

// settle checks what was put off. Where foreign keys do not allow it, each row is
// put back once more with its own check, so that those which are in the way show.
func (r *restoration) settle(ctx context.Context) (again bool, err error) {
	err = r.c.do(ctx, "SET CONSTRAINTS ALL IMMEDIATE")
	e, ok := asPg(err)
	if !ok || !strings.HasPrefix(e.Code, "23") {
		return false, err
	}
	if !r.careful {
		r.careful = true
		return true, nil
	}
	for i := range r.out {
		if r.out[i].Why == "" {
			r.out[i].Why = e.Message
		}
	}
	return true, nil
}

// commit puts triggers as they were, and ends the transaction.
func (r *restoration) commit(ctx context.Context) error {
	for _, t := range r.tables.known {
		for i, name := range t.triggers {
			how := map[string]string{"O": "ENABLE", "A": "ENABLE ALWAYS"}[t.how[i]]
			if err := r.c.do(ctx, "ALTER TABLE "+t.sql+" "+how+" TRIGGER "+name); err != nil {
				return err
			}
		}
	}
	if err := r.capture.end(ctx); err != nil {
		return err
	}
	at, err := r.c.one(ctx, "SELECT pg_current_xact_id()::text")
	if err != nil {
		return err
	}
	res, err := r.c.Exec(ctx, "COMMIT").ReadAll()
	if err == nil && (len(res) != 1 || res[0].CommandTag.String() != "COMMIT") {
		err = errors.New("the database rolled back instead of committing")
	}
	if err != nil {
		return fmt.Errorf("%w: transaction %s: %w", engine.ErrUndetermined, at[0], err)
	}
	for i, p := range r.repairs {
		if r.out[i].Why == "" {
			r.out[i].Now = p.Want
		}
	}
	return nil
}
