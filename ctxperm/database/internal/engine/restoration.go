package engine

import (
	"context"
	"errors"
)

// RowRestorer is the transaction of a kind of database in which rows are put back.
// Triggers do not fire in it: what they did the first time is among the rows.
// Foreign keys hold.
type RowRestorer interface {
	// Look reads a row and holds it, where the database can. Why says what keeps it
	// from being put back, whatever it is.
	Look(ctx context.Context, ref Ref) (Outcome, error)
	// Row reads a row.
	Row(ctx context.Context, ref Ref) (Image, error)
	// Do runs what begins and ends savepoints.
	Do(ctx context.Context, texts ...string) error
	// Check has foreign keys checked with each row, or at the end.
	Check(ctx context.Context, each bool) error
	// Write makes a row that is now one image another one. Nil is no row.
	Write(ctx context.Context, ref Ref, now, want Image) error
	// Vacate gives up the values of a row that it is not to keep, for other ones;
	// ErrRowBlocked: it has none that it could give up.
	Vacate(ctx context.Context, ref Ref, now, want Image) error
	// Changed are the rows that the last Write or Vacate changed, also those that a
	// foreign key changed with it. Why says that there are some which are nobody's.
	Changed(ctx context.Context) (rows []Ref, why string, err error)
	// Constraint says what an error has to do with constraints; empty: nothing.
	Constraint(err error) string
	// Commit ends the transaction. After an error of a constraint it goes on.
	Commit(ctx context.Context) error
	// Blame says of rows why foreign keys do not allow them, which are only checked
	// at the end.
	Blame(ctx context.Context, repairs []RowRestore, out []Outcome) error
}

// restoration puts rows back.
type restoration struct {
	tx      RowRestorer
	repairs []RowRestore
	out     []Outcome
	planned map[string]int // by row
	careful bool           // each row is checked by itself
	cleared int            // how often rows that were out of the way could not go back
}

// Name tells rows apart.
func (r Ref) Name() string {
	out := []byte(r.Table.Name)
	for _, cell := range r.Key {
		out = append(append(out, 0), cell...)
	}
	return string(out)
}

// Restore puts rows back that still are as expected, in a transaction.
func Restore(ctx context.Context, tx RowRestorer, repairs []RowRestore) ([]Outcome, error) {
	r := &restoration{tx: tx, repairs: repairs, out: make([]Outcome, len(repairs)), planned: map[string]int{}}
	for i, p := range repairs {
		r.planned[p.Ref.Name()] = i
		o, err := tx.Look(ctx, p.Ref)
		if err != nil {
			return nil, err
		}
		//mutant:token
		if o.Why == "" && !o.Now.Same(p.From) {
			o.Why = "it was changed after the undo was planned"
		}
		r.out[i] = o
	}
	for {
		again, err := r.whole(ctx)
		if err != nil {
			return nil, err
		}
		if !again {
			break
		}
		if err := tx.Do(ctx, "ROLLBACK TO whole", "RELEASE whole"); err != nil {
			return nil, err
		}
	}
	for i, p := range repairs {
		if r.out[i].Why == "" {
			r.out[i].Now = p.Want
		}
	}
	return r.out, nil
}

// whole puts back what is left to be, and commits. Again: rows turned out to be in
// somebody's way, and it is done once more without them.
func (r *restoration) whole(ctx context.Context) (again bool, err error) {
	if err := r.tx.Do(ctx, "SAVEPOINT whole"); err != nil {
		return false, err
	}
	if err := r.tx.Check(ctx, r.careful); err != nil {
		return false, err
	}
	if again, err = r.put(ctx); err != nil || again {
		return again, err
	}
	if again, err = r.verify(ctx); err != nil || again {
		return again, err
	}
	err = r.tx.Commit(ctx)
	why := r.tx.Constraint(err)
	switch {
	case err == nil || why == "":
		return false, err
	case !r.careful: // then those that are in the way show
		r.careful = true
		return true, nil
	default:
		return true, r.blame(ctx, why)
	}
}

// blame leaves rows out. Where none is found nothing is done.
func (r *restoration) blame(ctx context.Context, why string) error {
	left := func() (n int) {
		for _, o := range r.out {
			if o.Why == "" {
				n++
			}
		}
		return n
	}
	before := left()
	if err := r.tx.Blame(ctx, r.repairs, r.out); err != nil {
		return err
	}
	if left() == before {
		for i := range r.out {
			if r.out[i].Why == "" {
				r.out[i].Why = why
			}
		}
	}
	return nil
}

const (
	// maxAgain is how often a row is put back that a foreign key changed again.
	maxAgain = 3
	// maxCleared is how often rows are taken out of each other's way in vain.
	maxCleared = 3
)

// put puts rows back as far as it goes: those that others are in the way of after
// those, and those that a foreign key changed meanwhile once more. Rows that are in
// each other's way give up what they have.
func (r *restoration) put(ctx context.Context) (again bool, err error) {
	w := &waiting{of: map[int]string{}, again: map[int]int{}, away: map[int]bool{}}
	for i := range r.repairs {
		if r.out[i].Why == "" {
			w.of[i] = ""
		}
	}
	for {
		for more := true; more && len(w.of) > 0; {
			if more, err = r.each(ctx, w, r.back); err != nil {
				return false, err
			}
		}
		if len(w.of) == 0 || len(w.away) > 0 || r.cleared == maxCleared {
			break
		}
		if _, err = r.each(ctx, w, r.clear); err != nil {
			return false, err
		}
		if len(w.away) == 0 {
			break
		}
	}
	for i, why := range w.of {
		r.out[i].Why = why
		again = again || w.away[i] // it is not where it was any more
	}
	if again {
		r.cleared++
	}
	return again, nil
}

// waiting are rows that are not back yet.
type waiting struct {
	of    map[int]string // and why
	again map[int]int    // how often each was put back
	away  map[int]bool   // which ones gave up what they had
}

// each tries the rows that wait, the last change first.
func (r *restoration) each(ctx context.Context, w *waiting, try func(context.Context, *waiting, int) (bool, error)) (more bool, err error) {
	for i := len(r.repairs) - 1; i >= 0; i-- {
		if _, ok := w.of[i]; !ok {
			continue
		}
		did, err := try(ctx, w, i)
		if err != nil {
			return false, err
		}
		more = more || did
	}
	return more, nil
}

// back puts one row back.
func (r *restoration) back(ctx context.Context, w *waiting, i int) (bool, error) {
	why, err := r.one(ctx, w, i, r.tx.Write)
	if err != nil {
		return false, err
	}
	if w.of[i] = why; why != "" {
		return false, nil
	}
	delete(w.of, i)
	return true, nil
}

// clear has one row give up what it has: the whole row, or else values of it.
func (r *restoration) clear(ctx context.Context, w *waiting, i int) (bool, error) {
	remove := func(ctx context.Context, ref Ref, now, _ Image) error { return r.tx.Write(ctx, ref, now, nil) }
	for _, change := range []func(context.Context, Ref, Image, Image) error{remove, r.tx.Vacate} {
		now, err := r.tx.Row(ctx, r.repairs[i].Ref)
		if err != nil || now == nil {
			return false, err
		}
		why, err := r.one(ctx, w, i, change)
		if err != nil {
			return false, err
		}
		if why == "" {
			w.away[i] = true
			return true, nil
		}
	}
	return false, nil
}

// one changes one row, or says why not.
func (r *restoration) one(ctx context.Context, w *waiting, i int, change func(context.Context, Ref, Image, Image) error) (why string, err error) {
	p := r.repairs[i]
	now, err := r.tx.Row(ctx, p.Ref)
	//mutant:token
	if err != nil || now.Same(p.Want) {
		return "", err
	}
	if err := r.tx.Do(ctx, "SAVEPOINT one"); err != nil {
		return "", err
	}
	var moved []int
	if err = change(ctx, p.Ref, now, p.Want); err == nil {
		why, moved, err = r.others(ctx, i)
	} else if errors.Is(err, ErrRowBlocked) {
		why, err = ErrRowBlocked.Error(), nil
	} else if at := r.tx.Constraint(err); at != "" {
		why, err = "another row is in the way: "+at, nil
	}
	if err != nil {
		return "", err
	}
	if why != "" {
		return why, r.tx.Do(ctx, "ROLLBACK TO one", "RELEASE one")
	}
	for _, j := range moved {
		if w.again[j]++; w.again[j] <= maxAgain {
			w.of[j] = ""
		}
	}
	return "", r.tx.Do(ctx, "RELEASE one")
}

// others looks which rows besides one a foreign key changed. Those that are not
// planned are somebody else's.
func (r *restoration) others(ctx context.Context, i int) (why string, moved []int, err error) {
	rows, why, err := r.tx.Changed(ctx)
	if err != nil || why != "" {
		return why, nil, err
	}
	for _, row := range rows {
		switch j, ok := r.planned[row.Name()]; {
		case !ok || r.out[j].Why != "":
			return Depends(row.Table.Name), nil, nil
		case j != i:
			moved = append(moved, j)
		}
	}
	return "", moved, nil
}

// Depends says why a row cannot go: rows of a table would go with it.
func Depends(table string) string {
	return "rows of " + table + " that somebody else made depend on it"
}

// verify reads each row that was put back. One that is not as it was to be is left
// alone, and the others are done again without it.
func (r *restoration) verify(ctx context.Context) (again bool, err error) {
	for i, p := range r.repairs {
		if r.out[i].Why != "" {
			continue
		}
		now, err := r.tx.Row(ctx, p.Ref)
		if err != nil {
			return false, err
		}
		//mutant:token
		if !now.Same(p.Want) {
			r.out[i].Why, again = "the database stores it in another way than it was", true
		}
	}
	return again, nil
}

// ErrRowBlocked says that a row cannot get out of the way of others.
var ErrRowBlocked = errors.New("it cannot get out of the way")

// ErrNoTable says that a table is not there, or not any more.
var ErrNoTable = errors.New("there is no such table any more")
