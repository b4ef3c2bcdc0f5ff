package database

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// Schemes returns the scheme that reverts the changes of calls, also of other
// processes.
func (d *Driver) Schemes() []revert.Scheme { return []revert.Scheme{scheme{d}} }

type scheme struct{ driver *Driver }

var _ revert.AtomicScheme = scheme{}

// Name returns the scheme of the changes of this package.
func (scheme) Name() string { return schemeName }

// row is a change with the current state of its row.
type row struct {
	effect.Change
	inverse
	outcome engine.TxnOutcome
	now     engine.Outcome
}

// batch is the set of rows of one database.
type batch struct {
	source *source
	rows   []*row
	err    error // why the database cannot be reached
}

// batches groups changes by their database.
func (s scheme) batches(ctx context.Context, changes []effect.Change, keep journal.ContentStore) (all []*row, out []*batch, err error) {
	of := map[string]*batch{}
	for _, c := range changes {
		inv, err := readInverse(ctx, c, keep)
		if err != nil {
			return nil, nil, err
		}
		r := &row{Change: c, inverse: inv}
		all = append(all, r)
		name := nameIn(c.Resource)
		key := name + "\x00" + inv.At + "\x00" + inv.Mark.Identity
		b := of[key]
		if b == nil {
			b = &batch{}
			b.source, b.err = s.driver.find(ctx, name, inv)
			of[key], out = b, append(out, b)
		}
		b.rows = append(b.rows, r)
	}
	return all, out, nil
}

// nameIn returns the database's name in a row's resource.
func nameIn(resource string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(resource, "db://"), "/")
	return name
}

// find returns the database that was changed: by its name, by its identity
// under another name, or at its recorded location.
func (d *Driver) find(ctx context.Context, name string, inv inverse) (*source, error) {
	var tried []error
	is := func(s *source) bool {
		id, err := s.engine.Identity(ctx)
		if err == nil && id != inv.Mark.Identity {
			err = errors.New(s.at + " is another database")
		}
		tried = append(tried, err)
		return err == nil
	}
	for _, n := range append([]string{name}, d.Names()...) {
		if s, ok := d.named[n]; ok && is(s) {
			return s, nil
		}
	}
	s, err := d.other(inv.At)
	if err != nil {
		tried = append(tried, err)
	} else if is(s) {
		return s, nil
	}
	why := errors.Join(tried...)
	return nil, fmt.Errorf("database %s is not available: %s; name it, then revert the call again (remit: --database %s=LOCATION)", name, strings.ReplaceAll(why.Error(), "\n", "; "), name)
}

// other opens a database at the location of a change, once.
func (d *Driver) other(at string) (*source, error) {
	d.mu.Lock()
	s := d.others[at]
	d.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := d.open(at)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if was := d.others[at]; was != nil {
		return was, s.engine.Close()
	}
	d.others[at] = s
	return s, nil
}

// loadOutcomes queries the outcome of each transaction once.
func (b *batch) loadOutcomes(ctx context.Context) error {
	known := map[engine.TxnMarker]engine.TxnOutcome{}
	for _, r := range b.rows {
		m := r.Mark
		if m.Op == "" {
			continue // a revert: the rows determine its outcome
		}
		if _, ok := known[m]; !ok {
			f, err := b.source.engine.TxnOutcomeOf(ctx, m)
			if err != nil {
				return err
			}
			known[m] = f
		}
		r.outcome = known[m]
	}
	return nil
}

// look reads the current state of each row.
func (b *batch) look(ctx context.Context) error {
	var refs []engine.Ref
	at := map[string]int{}
	for _, r := range b.rows {
		if _, ok := at[r.Resource]; !ok {
			at[r.Resource] = len(refs)
			refs = append(refs, r.ref())
		}
	}
	seen, err := b.source.engine.Read(ctx, refs)
	if err != nil {
		return err
	}
	for _, r := range b.rows {
		r.now = seen[at[r.Resource]]
	}
	return nil
}

// ref returns the key of the row. A created row has its key in the new image.
func (r *row) ref() engine.Ref {
	if r.Key != nil {
		return engine.Ref{Table: r.Table, Key: r.Key}
	}
	if r.Was != nil {
		return r.Table.Ref(r.Was)
	}
	return r.Table.Ref(r.Will)
}

// version returns the current version.
func (r *row) version() effect.Token {
	if r.now.Why != "" {
		return ""
	}
	return token(r.Table, r.now.Now)
}

// TookEffect reads the outcomes from the databases.
func (s scheme) TookEffect(ctx context.Context, changes []effect.Change) (took, known bool, err error) {
	_, all, err := s.batches(ctx, changes, nil)
	if err != nil {
		return false, false, err
	}
	for _, b := range all {
		if b.err != nil {
			return false, false, b.err
		}
		if err := b.loadOutcomes(ctx); err != nil {
			return false, false, err
		}
		for _, r := range b.rows {
			switch r.outcome {
			case engine.Committed:
				took = true
			case engine.Aborted:
			case engine.Running:
				return false, false, errors.New("its transaction has not ended in the database; wait for it, or end its connection there")
			case engine.Lost:
				return false, false, nil
			}
		}
	}
	return took, true, nil
}

// Settle returns the current version. It is empty if the database is not
// available, which Plan reports.
func (s scheme) Settle(ctx context.Context, c effect.Change) (effect.Token, error) {
	tokens, err := s.Versions(ctx, []effect.Change{c})
	if err != nil || len(tokens) == 0 {
		return "", err
	}
	return tokens[0], nil
}

// Versions returns the current versions.
func (s scheme) Versions(ctx context.Context, changes []effect.Change) ([]effect.Token, error) {
	rows, all, err := s.batches(ctx, changes, nil)
	if err != nil {
		return nil, err
	}
	for _, b := range all {
		if b.err != nil {
			for _, r := range b.rows {
				r.now.Why = b.err.Error()
			}
			continue
		}
		if err := b.look(ctx); err != nil {
			return nil, err
		}
	}
	out := make([]effect.Token, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.version())
	}
	return out, nil
}

// ApplyAll restores rows, those of one database in one transaction.
func (s scheme) ApplyAll(ctx context.Context, steps []effect.Step, keep journal.ContentStore) []effect.Result {
	out := make([]effect.Result, len(steps))
	var changes []effect.Change
	for i, step := range steps {
		step.Change.N = i + 1
		changes = append(changes, step.Change)
		out[i] = effect.Result{Resource: step.Change.Resource, Outcome: effect.Failed}
	}
	_, all, err := s.batches(ctx, changes, keep)
	if err != nil {
		for i := range out {
			out[i].Why = err.Error()
		}
		return out
	}
	for _, b := range all {
		b.restore(ctx, out)
	}
	return out
}

// Apply restores one row.
func (s scheme) Apply(ctx context.Context, step effect.Step, keep journal.ContentStore) effect.Result {
	return s.ApplyAll(ctx, []effect.Step{step}, keep)[0]
}

func (b *batch) restore(ctx context.Context, out []effect.Result) {
	var repairs []engine.RowRestore
	for _, r := range b.rows {
		repairs = append(repairs, engine.RowRestore{Ref: r.ref(), From: r.Was, Want: r.Will})
	}
	err := b.err
	var done []engine.Outcome
	if err == nil {
		done, err = b.source.engine.Restore(ctx, repairs)
	}
	for i, r := range b.rows {
		res := &out[r.N-1]
		switch {
		case errors.Is(err, engine.ErrUndetermined):
			res.Outcome, res.Why = effect.Unknown, err.Error()
		case err != nil:
			res.Why = err.Error()
		case done[i].Why == "":
			res.Outcome, res.Now = effect.Restored, r.Post
		default:
			res.Outcome, res.Why, res.Now = effect.Conflict, done[i].Why, token(r.Table, done[i].Now)
			if done[i].Bad {
				res.Outcome = effect.Failed
			}
		}
	}
}

// sorted returns the resources of rows, in the order of their first change.
func sorted(rows []*row) (names []string, of map[string][]*row) {
	of = map[string][]*row{}
	for _, r := range rows {
		if _, ok := of[r.Resource]; !ok {
			names = append(names, r.Resource)
		}
		of[r.Resource] = append(of[r.Resource], r)
	}
	for _, own := range of {
		slices.SortStableFunc(own, func(a, b *row) int { return a.N - b.N })
	}
	return names, of
}
