package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// RootError is returned by Revert, Preview and Redo if all that they would change
// lies in folders that are not where the record has them. Nothing was done
// then. MovedRoot says where the folders are. The error is also returned if
// another state folder holds the original records and no root of them is named.
type RootError struct {
	Txn   string
	Roots []record.Root
	State record.Root // the state folder of the records, if this one is another: a copy, or it was moved
}

// Is reports whether err is revert.ErrOtherFolder.
func (e *RootError) Is(err error) bool { return err == revert.ErrOtherFolder }

// Error names the roots and the recorded folders.
func (e *RootError) Error() string {
	var lost []string
	if e.State.Path != "" {
		for _, r := range e.Roots {
			lost = append(lost, fmt.Sprintf("root %q was %s", r.Name, r.Path))
		}
		return fmt.Sprintf("this state folder is a copy of %s, or was moved, and no folder is named to work in; %s", e.State.Path, strings.Join(lost, "; "))
	}
	for _, r := range e.Roots {
		if info, err := os.Stat(r.Path); err == nil && info.IsDir() {
			lost = append(lost, fmt.Sprintf("root %q: %s is another folder now, such as a restored backup", r.Name, r.Path))
			continue
		}
		lost = append(lost, fmt.Sprintf("root %q: the recorded folder is not at %s", r.Name, r.Path))
	}
	return strings.Join(lost, "; ")
}

// NodeError is returned instead of RootError if the files of a transaction belong
// to another node. Nothing was done: a folder of the same path here is another
// one. AskNode asks that node.
type NodeError struct {
	Txn, Session string
	Node         string        // ID of the node
	Roots        []record.Root // its folders
}

// Is reports whether err is revert.ErrOtherNode or revert.ErrOtherFolder.
func (e *NodeError) Is(err error) bool {
	return err == revert.ErrOtherNode || err == revert.ErrOtherFolder
}

// Error names the node and its folders.
func (e *NodeError) Error() string {
	var at []string
	for _, r := range e.Roots {
		at = append(at, fmt.Sprintf("root %q is %s there", r.Name, r.Path))
	}
	return strings.Join(append([]string{"the files belong to node " + cmp.Or(e.Node, "that had a journal of its own")}, at...), "; ")
}

// OnOtherNode reports whether the files of a session belong to another node.
func (rt *Runtime) OnOtherNode(ctx context.Context, session string) (bool, error) {
	opened, err := rt.recordOf(ctx, session)
	if errors.Is(err, journal.ErrNotFound) {
		return false, nil
	}
	return err == nil && opened.State.Node != rt.state.Node, err
}

// atHand returns an error if all that a transaction, or calls of it, changed
// lies in folders that are missing.
func (rt *Runtime) atHand(ctx context.Context, txn string, calls []string) error {
	o, err := revert.LoadOpening(ctx, rt.journal, txn)
	if errors.Is(err, journal.ErrNotFound) {
		return nil // the reverter reports the error
	}
	if err != nil {
		return err
	}
	if o.About != "" {
		return rt.atHand(ctx, o.About, nil)
	}
	if err := rt.inCopy(ctx, txn, o.Session); err != nil {
		return err // also if only resources other than files would change
	}
	missing, _, err := rt.missing(ctx, o.Session)
	if err != nil || len(missing) == 0 {
		return err
	}
	t, err := rt.services.Reverter.Load(ctx, txn)
	if err != nil {
		return err
	}
	var lost []record.Root
	for _, c := range t.Calls {
		if len(calls) > 0 && !slices.Contains(calls, c.Ref.Call) || !c.HasEffects() && c.Reversal == nil {
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

// missing returns the recorded roots whose folder this runtime does not find,
// and the record of the session.
func (rt *Runtime) missing(ctx context.Context, session string) ([]record.Root, *record.Session, error) {
	open, err := rt.rootsOf(ctx, session)
	if err != nil {
		return nil, nil, err
	}
	opened, err := rt.recordOf(ctx, session)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return slices.DeleteFunc(slices.Clone(opened.Roots), func(r record.Root) bool {
		_, ok := open[r.Name]
		return ok
	}), opened, nil
}

// inCopy refuses a transaction whose records come from another state folder, if
// no root of them is named here: the recorded folders can belong to another
// copy.
func (rt *Runtime) inCopy(ctx context.Context, txn, session string) error {
	missing, opened, err := rt.missing(ctx, session)
	if err != nil || opened == nil || rt.state.wrote(opened) || len(missing) < len(opened.Roots) {
		return err
	}
	if opened.State.Node != rt.state.Node {
		return &NodeError{Txn: txn, Session: session, Node: opened.State.Node, Roots: opened.Roots}
	}
	return &RootError{Txn: txn, Roots: missing, State: opened.State}
}

// lostOf returns the missing roots in which a call changed something. only is
// false if the call can have had other effects.
func lostOf(c *revert.Call, missing []record.Root) (in []record.Root, only bool) {
	if c.Started == nil || c.Started.Reverts {
		return nil, false
	}
	if c.Phase == revert.PhaseStarted && c.Confined() {
		return missing, true // only the folder can tell what it did
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

// rootName returns the root of a changed file, or "" for other resources.
func rootName(ch effect.Change) string {
	r, err := perm.ParseResource(ch.Resource)
	if err != nil || r.Kind() != perm.KindFile {
		return ""
	}
	return r.Root()
}
