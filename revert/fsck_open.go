package revert

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/remit-dev/remit/revert/journal"
)

// unfinished compares the unfinished transactions of the journal with those
// whose records have no end. Other processes may append meanwhile. So it checks
// a difference once more, after it read the other side again.
func (f *fsck) unfinished(ctx context.Context) error {
	listed, err := f.journal.Unfinished(ctx)
	if err != nil {
		return err
	}
	for _, own := range listed {
		pos := f.open[own.Txn]
		delete(f.open, own.Txn)
		why := f.owned(ctx, own)
		if why == nil {
			continue
		}
		now, err := f.journal.Unfinished(ctx)
		if err != nil {
			return err
		}
		if slices.Contains(now, own) {
			f.problem(pos, "transaction %s is held for unfinished, with the owner %s: %w", own.Txn, own.Owner, why)
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(f.open), func(a, b string) int { return cmp.Compare(f.open[a], f.open[b]) }) {
		t, err := Load(ctx, f.journal, id)
		switch {
		case err != nil:
			f.problem(f.open[id], "transaction %s is held for ended, and cannot be told any more: %w", id, err)
		case t.End == "":
			f.problem(f.open[id], "transaction %s has no end in its records, and is held for ended: nothing guards what it touched", id)
		}
	}
	return nil
}

func (f *fsck) owned(ctx context.Context, own journal.Ownership) error {
	t, err := Load(ctx, f.journal, own.Txn)
	switch {
	case err != nil:
		return err
	case t.End != "":
		return fmt.Errorf("its records say %s", t.End)
	case t.Owner != own.Owner:
		return fmt.Errorf("its records name the owner %s", t.Owner)
	}
	_, err = f.journal.Alive(ctx, own.Owner) // a dead owner is no defect; an unknown one is
	return err
}

// recentSet remembers some of its elements, at least the newest.
type recentSet struct{ new, old map[string]bool }

const recentMax = 4096

func newRecent() *recentSet { return &recentSet{new: map[string]bool{}} }

func (r *recentSet) has(s string) bool { return r.new[s] || r.old[s] }

func (r *recentSet) add(s string) {
	if len(r.new) == recentMax {
		r.new, r.old = map[string]bool{}, r.new
	}
	r.new[s] = true
}
