package engine

import (
	"context"
	"errors"
)

// RowRestorer is a transaction in which a kind of database restores rows.
// Triggers do not fire in it, because the rows include their first effects.
// Foreign keys apply.
type RowRestorer interface {
	// Look reads a row and, if the database can, locks it. Why is a reason that
	// it cannot be restored at all.
	Look(ctx context.Context, ref Ref) (Outcome, error)
	// Row reads a row.
	Row(ctx context.Context, ref Ref) (Image, error)
	// Do runs statements that begin and end savepoints.
	Do(ctx context.Context, texts ...string) error
	// Check sets whether foreign keys are checked with each row, or at the end.
	Check(ctx context.Context, each bool) error
	// Write changes a row from one image to another. A nil image is an absent
	// row.
	Write(ctx context.Context, ref Ref, now, want Image) error
	// Vacate replaces values of a row that it will not keep. ErrRowBlocked: it
	// has no value that can be replaced.
	Vacate(ctx context.Context, ref Ref, now, want Image) error
	// Changed returns the rows that the last Write or Vacate changed, including
	// those that a foreign key changed. Why states that some of them do not
	// belong to the call.
	Changed(ctx context.Context) (rows []Ref, why string, err error)
	// Constraint returns the constraint text of an error, or "".
	Constraint(err error) string
	// Commit ends the transaction. After a constraint error the transaction
	// continues.
	Commit(ctx context.Context) error
	// Blame sets in out why foreign keys, which are checked only at the end, do
	// not permit rows.
	Blame(ctx context.Context, repairs []RowRestore, out []Outcome) error
}

// restoration restores rows.
type restoration struct {
	tx      RowRestorer
	repairs []RowRestore
	out     []Outcome
	planned map[string]int // by row
	careful bool           // check each row separately
	cleared int            // how often vacated rows could not be restored
}

// Name returns a unique name of the row.
func (r Ref) Name() string {
	out := []byte(r.Table.Name)
	for _, cell := range r.Key {
		out = append(append(out, 0), cell...)
	}
	return string(out)
}

// Restore restores the rows that still are as expected, in a transaction.
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
			o.Why = "it changed after the revert was planned"
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

// whole restores the remaining rows, and commits. The result again means that
// some rows blocked others, and that the caller must repeat it without them.
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
	case !r.careful: // a separate check finds the blocking rows
		r.careful = true
		return true, nil
	default:
		return true, r.blame(ctx, why)
	}
}

// blame excludes rows. If it finds none, nothing is restored.
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
	// maxAgain bounds how often a row is restored that a foreign key changed
	// again.
	maxAgain = 3
	// maxCleared bounds how often rows are vacated without success.
	maxCleared = 3
)

// put restores rows as far as possible. A row that others block comes after
// them. A row that a foreign key changed meanwhile is restored again. Rows that
// block each other are vacated.
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
		again = again || w.away[i] // it was not at its old key any more
	}
	if again {
		r.cleared++
	}
	return again, nil
}

// waiting holds the rows that are not restored yet.
type waiting struct {
	of    map[int]string // with the reason
	again map[int]int    // how often each was restored
	away  map[int]bool   // vacated rows
}

// each tries the waiting rows, the last change first.
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

// back restores one row.
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

// clear vacates one row: the whole row, or else values of it.
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

// one changes one row, or returns why it cannot.
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

// others returns the other rows that a foreign key changed with one. Unplanned
// ones belong to another client.
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

// Depends returns why a row cannot be removed: rows of a table depend on it.
func Depends(table string) string {
	return "rows of " + table + " that another client created depend on it"
}

// verify reads each restored row. It excludes one with another image than
// intended, and the others are restored again without it.
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

// ErrRowBlocked states that a row cannot be vacated.
var ErrRowBlocked = errors.New("it cannot get out of the way")

// ErrNoTable states that a table does not exist, or no longer exists.
var ErrNoTable = errors.New("there is no such table any more")
