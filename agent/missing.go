package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// RootError is returned by Undo, Preview and Redo where all that they would change lies
// in folders that are not where the record has them. Nothing was done then; MovedRoot
// says where the folders are.
type RootError struct {
	Txn   string
	Roots []record.Root
}

// Error names the roots and the recorded folders.
func (e *RootError) Error() string {
	var lost []string
	for _, r := range e.Roots {
		lost = append(lost, fmt.Sprintf("root %q: the recorded folder is not at %s", r.Name, r.Path))
	}
	return strings.Join(lost, "; ")
}

// atHand refuses to work on a transaction, or on calls of it, where all that they
// changed lies in folders that are not there.
func (rt *Runtime) atHand(ctx context.Context, txn string, calls []string) error {
	t, err := rt.reverter.Load(ctx, txn)
	if errors.Is(err, journal.ErrNotFound) {
		return nil // for the reverter to say
	}
	if err != nil {
		return err
	}
	if about := t.Undoes + t.Redoes; about != "" {
		return rt.atHand(ctx, about, nil)
	}
	missing, err := rt.missing(ctx, t.Session)
	if err != nil || len(missing) == 0 {
		return err
	}
	var lost []record.Root
	for _, c := range t.Calls {
		if len(calls) > 0 && !slices.Contains(calls, c.Ref.Call) || !c.Left() && c.Undo == nil {
			continue
		}
		in, only := lostOf(c, missing)
		if !only {
			return nil
		}
		lost = append(lost, in...)
	}
	if len(lost) == 0 {
		return nil
	}
	byName := func(a, b record.Root) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(lost, byName)
	return &RootError{Txn: t.ID, Roots: slices.CompactFunc(lost, func(a, b record.Root) bool { return a.Name == b.Name })}
}

// missing lists the roots of a session whose folder is not there.
func (rt *Runtime) missing(ctx context.Context, session string) ([]record.Root, error) {
	open, err := rt.rootsOf(ctx, session)
	if err != nil {
		return nil, err
	}
	opened, err := rt.recordOf(ctx, session)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(opened.Roots), func(r record.Root) bool {
		_, ok := open[r.Name]
		return ok
	}), nil
}

// lostOf lists the missing roots that a call changed something in; only is false where
// it may have done something else.
func lostOf(c *revert.Call, missing []record.Root) (in []record.Root, only bool) {
	if c.Started == nil || c.Started.Reverts {
		return nil, false
	}
	if c.Phase == revert.PhaseStarted && c.Confined() {
		return missing, true // what it did only the folder tells
	}
	for _, ch := range c.Changes {
		i := slices.IndexFunc(missing, func(r record.Root) bool { return r.Name == rootName(ch) })
		if i < 0 {
			return nil, false
		}
		in = append(in, missing[i])
	}
	return in, len(in) > 0
}

// rootName is the root of a changed file, empty of other resources.
func rootName(ch effect.Change) string {
	r, err := perm.ParseResource(ch.Resource)
	if err != nil || r.Kind() != perm.KindFile {
		return ""
	}
	return r.Root()
}
