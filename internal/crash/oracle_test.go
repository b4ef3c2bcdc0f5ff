package crash_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/disk/simdisk"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// before is what the disk holds before any call, with times.
var before = newWorld().disk.Files()

// findings are what is wrong in one state.
type findings []string

func (f *findings) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// judge holds the world against what the journal says of the plan's transaction and
// against what its client was told, once nothing is in flight any more.
func (p plan) judge(ctx context.Context, w *world, rt *agent.Runtime, t told) (f findings) {
	txn, err := revert.Load(ctx, rt.Journal(), t.txn)
	if t.txn == "" || errors.Is(err, revert.ErrNotFound) {
		for i, s := range t.calls {
			if s == tool.StatusDone && p.calls[i].do != nil {
				f.add("call %d was done, and the journal does not know its transaction", i)
			}
		}
		f.sameFiles(w, nil, true)
		return f
	}
	if err != nil {
		f.add("load: %v", err)
		return f
	}
	f.ends(txn, t)
	var there []kind
	some := false
	for i, c := range p.journaled(txn, t) {
		if c == nil {
			if i < len(t.calls) && t.calls[i] == tool.StatusDone && p.calls[i].do != nil {
				f.add("call %d was done, and is not on the journal", i)
			}
			continue
		}
		if p.calls[i].do == nil {
			continue
		}
		switch {
		case c.Phase == revert.PhaseDone && !c.Undone():
			there, some = append(there, p.calls[i]), true
		case c.Phase == revert.PhaseDone, c.Phase == revert.PhaseFailed:
		default:
			f.add("call %d (%s) is %s: versions tell what it did", i, p.calls[i].name, c.Phase)
		}
		if i < len(t.calls) && t.calls[i] == tool.StatusDone && c.Phase != revert.PhaseDone {
			f.add("call %d was done, and the journal says %s", i, c.Phase)
		}
	}
	if (t.stage == undone || t.empty) && some {
		f.add("it was told that nothing is left, and calls are: %v", t)
	}
	f.sameFiles(w, there, !some)
	return f
}

// ends compares what the client was told of the end with what the journal says.
func (f *findings) ends(txn *revert.Txn, t told) {
	is := txn.State()
	ok := true
	switch t.stage {
	case calling:
		ok = is == revert.Open
	case committing:
		ok = is == revert.Open || is == revert.CommittedState
	case committed, redone:
		ok = is == revert.CommittedState
	case aborting:
		ok = is == revert.Open || is == revert.RevertedState
	case undoing, redoing: // what is undone may be open: its process died before it ended
		ok = true
	case aborted, undone:
		ok = is == revert.RevertedState
	}
	if !ok {
		f.add("the transaction is %s at stage %d", is, t.stage)
	}
}

// journaled are the calls of the plan as the journal knows them, in their order; nil
// where it does not.
func (p plan) journaled(txn *revert.Txn, t told) []*revert.Call {
	out := make([]*revert.Call, len(p.calls))
	var numbered []int // the plan's calls that have a number on the journal
	for i := range p.calls {
		if i >= len(t.calls) || t.calls[i] != tool.StatusInvalid {
			numbered = append(numbered, i)
		}
	}
	for _, c := range txn.Calls {
		s := c.Started
		if s == nil && c.Held != nil {
			s = &c.Held.Started
		}
		if s != nil {
			out[numbered[s.Sequence-1]] = c
		}
	}
	return out
}

// sameFiles requires that the files are those from before, with what these calls did,
// and nothing else; where none did anything also their times are those from before.
func (f *findings) sameFiles(w *world, there []kind, exact bool) {
	found := w.disk.Files()
	if exact {
		if !maps.EqualFunc(before, found, sameFile) {
			f.add("files are not as they were before: %s", difference(before, found))
		}
		return
	}
	want := treeOf(before)
	for _, k := range there {
		if !k.do(want) {
			f.add("%s cannot have been done here", k.name)
		}
	}
	if got := treeOf(found); !maps.Equal(want, got) {
		f.add("files are %v, and want %v", list(got), list(want))
	}
}

func sameFile(a, b simdisk.File) bool {
	return a.Type == b.Type && a.Perm == b.Perm && a.Mtime.Equal(b.Mtime) && a.Content == b.Content && maps.Equal(a.Attributes, b.Attributes)
}

func difference(want, got map[string]simdisk.File) (out []string) {
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if is, ok := got[path]; !ok || !sameFile(want[path], is) {
			out = append(out, fmt.Sprintf("%s was %v and is %v", path, want[path], is))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[path]; !ok {
			out = append(out, path+" is new")
		}
	}
	return out
}

func list(f fileTree) (out []string) {
	for _, path := range slices.Sorted(maps.Keys(f)) {
		out = append(out, fmt.Sprintf("%s %v %q", path, f[path].perm, f[path].content))
	}
	return out
}
