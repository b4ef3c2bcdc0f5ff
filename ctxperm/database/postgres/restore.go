package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// Read reads rows in one snapshot.
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
		o, err := t.look(ctx, ref)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

func (t *tables) look(ctx context.Context, ref engine.Ref) (o engine.Outcome, err error) {
	if o.Why, err = t.sameShape(ctx, ref.Table); err == nil && o.Why == "" {
		o.Now, err = t.row(ctx, ref, false)
	}
	return o, err
}

// repairer is a transaction that restores rows. The triggers of their tables
// are off; foreign keys apply.
type repairer struct {
	c       *connection
	tables  *tables
	capture *capture
	quiet   []*table           // tables whose triggers are disabled
	ready   map[string]bool    // prepared tables
	blind   map[string]counted // tables without a watch that a foreign key can change, with their counts
}

var _ engine.RowRestorer = (*repairer)(nil)

// Restore restores rows that still are as expected.
func (s *server) Restore(ctx context.Context, repairs []engine.RowRestore) ([]engine.Outcome, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer c.close()
	r := &repairer{c: c, tables: &tables{c, map[string]*table{}}, ready: map[string]bool{}, blind: map[string]counted{}}
	r.capture = newCapture(r.tables)
	if err := c.do(ctx, "BEGIN ISOLATION LEVEL READ COMMITTED"); err != nil {
		return nil, err
	}
	return engine.Restore(ctx, r, repairs)
}

// Look reads a row and locks it. Before the first row of a table it prepares
// the table: it disables its triggers, and watches the tables that foreign keys
// can change.
func (r *repairer) Look(ctx context.Context, ref engine.Ref) (o engine.Outcome, err error) {
	if o.Why, err = r.tables.sameShape(ctx, ref.Table); err != nil || o.Why != "" {
		return o, err
	}
	if err := r.prepare(ctx, ref.Table.Name); err != nil {
		return o, err
	}
	o.Now, err = r.tables.row(ctx, ref, true)
	return o, err
}

func (r *repairer) prepare(ctx context.Context, name string) error {
	if r.ready[name] {
		return nil
	}
	r.ready[name] = true
	t, err := r.tables.get(ctx, name)
	if err != nil {
		return err
	}
	for _, trigger := range t.triggers {
		if err := r.c.do(ctx, "ALTER TABLE "+t.sql+" DISABLE TRIGGER "+trigger); err != nil {
			return fmt.Errorf("the triggers of %s cannot be switched off: %w", t.Name, err)
		}
	}
	r.quiet = append(r.quiet, t)
	return r.watch(ctx, t, map[string]bool{})
}

// watch creates triggers on the tables whose rows a foreign key changes or
// deletes with those of a table. If the role may not create one, the server's
// counts are used.
func (r *repairer) watch(ctx context.Context, t *table, seen map[string]bool) error {
	if seen[t.Name] {
		return nil
	}
	seen[t.Name] = true
	children, err := r.c.all(ctx, `SELECT n.nspname, k.relname, has_table_privilege(k.oid, 'TRIGGER')::text
		FROM pg_constraint f JOIN pg_class k ON k.oid = f.conrelid JOIN pg_namespace n ON n.oid = k.relnamespace
		WHERE f.contype = 'f' AND f.confrelid = $1::oid AND (f.confdeltype IN ('c', 'n', 'd') OR f.confupdtype IN ('c', 'n', 'd'))`, t.oid)
	if err != nil {
		return err
	}
	for _, k := range children {
		name := nameOf(k[0], k[1])
		if k[2] != "true" {
			r.blind[name] = counted{}
			continue
		}
		child, err := r.tables.get(ctx, name)
		if err == nil {
			err = r.capture.watch(ctx, child)
		}
		if err == nil {
			err = r.watch(ctx, child, seen)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Row reads a row.
func (r *repairer) Row(ctx context.Context, ref engine.Ref) (engine.Image, error) {
	return r.tables.row(ctx, ref, false)
}

// Do runs statements of this package.
func (r *repairer) Do(ctx context.Context, texts ...string) error { return r.c.do(ctx, texts...) }

// Check switches deferrable constraints.
func (r *repairer) Check(ctx context.Context, each bool) error {
	when := "DEFERRED"
	if each {
		when = "IMMEDIATE"
	}
	return r.c.do(ctx, "SET CONSTRAINTS ALL "+when)
}

// Write changes a row. It creates a row with a server-generated identity anew,
// because the identity cannot be changed.
func (r *repairer) Write(ctx context.Context, ref engine.Ref, now, want engine.Image) error {
	t, err := r.begin(ctx, ref)
	if err != nil {
		return err
	}
	remove := "DELETE FROM ONLY " + t.sql + " WHERE " + t.where(1)
	if want == nil {
		return r.exec(ctx, remove, ref.Key)
	}
	if now != nil && slices.ContainsFunc(t.generated, func(i int) bool { return now[i] != want[i] }) {
		if err := r.exec(ctx, remove, ref.Key); err != nil {
			return err
		}
		now = nil
	}
	var names, marks, sets, args []string
	for i, c := range t.Cols {
		if now != nil && now[i] == want[i] {
			continue
		}
		args = append(args, want[i])
		mark := "$" + strconv.Itoa(len(args))
		names, marks, sets = append(names, quote(c)), append(marks, mark), append(sets, quote(c)+" = "+mark)
	}
	if now == nil {
		return r.exec(ctx, "INSERT INTO "+t.sql+" ("+strings.Join(names, ", ")+") OVERRIDING SYSTEM VALUE VALUES ("+strings.Join(marks, ", ")+")", args)
	}
	return r.exec(ctx, "UPDATE ONLY "+t.sql+" SET "+strings.Join(sets, ", ")+" WHERE "+t.where(len(args)+1), append(args, ref.Key...))
}

// begin starts a change: the counts from here on belong to it.
func (r *repairer) begin(ctx context.Context, ref engine.Ref) (*table, error) {
	if len(r.blind) > 0 {
		now, _, err := r.capture.counts(ctx)
		if err != nil {
			return nil, err
		}
		for name := range r.blind {
			r.blind[name] = now[name]
		}
	}
	return r.tables.get(ctx, ref.Table.Name)
}

// Vacate sets values to NULL if possible, or else to random ones. Some columns
// accept neither.
func (r *repairer) Vacate(ctx context.Context, ref engine.Ref, now, want engine.Image) error {
	t, err := r.begin(ctx, ref)
	if err != nil {
		return err
	}
	var sets []string
	for i, c := range t.Cols {
		if want == nil || now[i] == want[i] || slices.Contains(t.Key, i) || slices.Contains(t.generated, i) {
			continue
		}
		switch {
		case !t.full[i]:
			sets = append(sets, quote(c)+" = NULL")
		case another[t.types[i]] != "":
			sets = append(sets, quote(c)+" = "+another[t.types[i]])
		}
	}
	if len(sets) == 0 {
		return engine.ErrRowBlocked
	}
	err = r.exec(ctx, "UPDATE ONLY "+t.sql+" SET "+strings.Join(sets, ", ")+" WHERE "+t.where(1), ref.Key)
	if _, ok := asPg(err); ok && r.Constraint(err) == "" {
		return engine.ErrRowBlocked
	}
	return err
}

// another holds a unique value for each type.
var another = map[string]string{
	"text": "md5(random()::text)", "varchar": "md5(random()::text)", "bytea": "decode(md5(random()::text), 'hex')", "uuid": "gen_random_uuid()",
	"int4": "-floor(random() * 2e9)", "int8": "-floor(random() * 9e18)", "numeric": "-random()", "float8": "-random()",
	"date": "date '0001-01-01' + (random() * 300000)::int", "timestamp": "timestamp '0001-01-01' + random() * interval '900 years'",
	"timestamptz": "timestamptz '0001-01-01' + random() * interval '900 years'",
}

func (r *repairer) exec(ctx context.Context, text string, args []string) error {
	return r.c.ExecParams(ctx, text, cells(args), nil, nil, nil).Read().Err
}

// Changed returns the rows that the triggers observed, if there are triggers.
func (r *repairer) Changed(ctx context.Context) (rows []engine.Ref, why string, err error) {
	if len(r.blind) > 0 {
		now, _, err := r.capture.counts(ctx)
		if err != nil {
			return nil, "", err
		}
		for name := range r.blind {
			if now[name] != r.blind[name] {
				return nil, engine.Depends(name), nil
			}
		}
	}
	events, err := r.capture.take(ctx)
	if err != nil {
		return nil, "", err
	}
	for _, e := range events {
		for _, i := range []engine.Image{e.was, e.will} {
			if i != nil {
				rows = append(rows, e.t.Ref(i))
			}
		}
	}
	return rows, "", nil
}

// Constraint returns the text of the server.
func (r *repairer) Constraint(err error) string {
	if e, ok := asPg(err); ok && strings.HasPrefix(e.Code, "23") {
		return e.Message
	}
	return ""
}

// Commit checks deferred constraints, restores the triggers, and ends the
// transaction.
func (r *repairer) Commit(ctx context.Context) error {
	if err := r.c.do(ctx, "SET CONSTRAINTS ALL IMMEDIATE"); err != nil {
		return err
	}
	for _, t := range r.quiet {
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
	return nil
}

// Blame does nothing: each row was already checked separately.
func (r *repairer) Blame(context.Context, []engine.RowRestore, []engine.Outcome) error { return nil }
