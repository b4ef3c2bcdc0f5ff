package process

import (
	"context"
	"path"
	"path/filepath"
	"slices"

	"github.com/remit-dev/remit/ctxperm/files"
)

// Calls that join use one copy. Whichever ends first records everything that
// differs from the copy. Then the copy takes over what it recorded, so that the
// others do not find it again. All of this happens in turn.

// relied reports whether an unfinished call relies on the copy as it is.
func (s *snapshotStore) relied() bool {
	for _, t := range s.users {
		if !t.done {
			return true
		}
	}
	return false
}

// join adds the call to those that use the copy.
func (t *folderCopy) join() {
	t.others = map[string]bool{}
	for _, o := range t.users {
		if !o.done {
			o.others[t.Call], t.others[o.Call] = true, true
		}
	}
	t.users[t.Take] = t
}

// end removes a call whose changes could not be recorded. Its marker stays, for
// its recovery.
func (t *folderCopy) end() {
	if !t.done {
		delete(t.users, t.Take)
	}
}

// announce writes down what the call is about to record, if others rely on the
// copy: they must not find that again, should the process die.
func (t *folderCopy) announce(traces *files.DetectedChanges) error {
	changes, _ := traces.Changes()
	pre := make(map[string]string, len(changes))
	for _, c := range changes {
		pre[c.Resource] = string(c.Pre)
	}
	for i, f := range t.found {
		t.found[i].Pre = pre[t.resource(f.Name)]
	}
	if len(t.users) < 2 {
		return nil
	}
	t.Ending, t.Found = true, t.found
	return t.hold()
}

// resource returns the resource of a name.
func (c usageMarker) resource(name string) string {
	return "file://" + path.Join(c.Name, c.Folder, name)
}

// recorded states that the changes of the call are recorded. If others rely on
// the copy, it takes them over at once.
func (t *folderCopy) recorded() {
	t.done = true
	if t.relied() {
		t.ended = append(t.ended, t)
		t.rebase()
		_ = t.persistNow(t.stored)
	}
}

// conclude removes the marker of a call whose changes are recorded, and then
// has the copy take them over. Nothing of it has to be durable before the next
// call on the folder changes something: until then the copy on the disk is the
// one from before the call, and the journal has what the call changed.
func (t *folderCopy) conclude() {
	t.turn <- struct{}{}
	defer t.give()
	t.release()
	delete(t.users, t.Take)
	if t.Ending {
		return // it did already
	}
	t.rebase() // durable with the next call; another process would find the same names changed
}

// discard removes a call that changed nothing.
func (t *folderCopy) discard() {
	t.turn <- struct{}{}
	defer t.give()
	t.release()
	delete(t.users, t.Take)
}

// rebase has the copy take over what the call recorded. A name that changed
// since stays different. An error means that too.
func (t *folderCopy) rebase() {
	l := lookedAt{t.hiddenAt, map[string]fileStamp{}}
	for _, f := range t.found {
		is, _, err := stampOf(filepath.Join(t.rootCopy.root, f.Name))
		if then := f.Is.entryState().root; (err == nil || passing(err, "") == nil) && is == then {
			l.names[f.Name] = is
		}
	}
	since, err := snapshotClock()
	if err != nil || len(l.names) == 0 {
		return
	}
	_ = t.renew(context.Background(), l, since)
}

// undone has the copy take over what remit reverted of an ended call while
// others rely on the copy. It would be their change else.
func (t *folderCopy) undone() {
	changed := false
	for _, f := range t.found {
		if f.Pre == "" {
			continue
		}
		is, _, err := stampOf(filepath.Join(t.rootCopy.root, f.Name))
		if err != nil && passing(err, "") != nil || !alikeAgain(is, f.Is.entryState().copy) {
			return
		}
		changed = true
	}
	if !changed {
		return
	}
	for i, f := range t.found {
		is, _, _ := stampOf(filepath.Join(t.rootCopy.root, f.Name))
		t.found[i].Is = entryState{root: is, copy: f.Is.entryState().copy}.mark()
	}
	t.rebase()
	_ = t.persistNow(t.stored)
}

// alikeAgain reports whether a name looks as it did before a change: a revert
// restores bits, size and time of a file, in another file.
func alikeAgain(is, was fileStamp) bool {
	if is.mode != was.mode || is.uid != was.uid || is.gid != was.gid {
		return false
	}
	return is.mode&typeMask != typeFile || is.size == was.size && is.mtime == was.mtime
}

// settleUndone looks for reverted calls.
func (s *snapshotStore) settleUndone() {
	for _, o := range s.ended {
		o.undone()
	}
}

// left states that the call can no longer be reverted on failure.
func (t *folderCopy) left() {
	t.turn <- struct{}{}
	defer t.give()
	at := slices.Index(t.ended, t)
	if at < 0 {
		return
	}
	if t.relied() {
		t.undone()
	}
	t.ended = slices.Delete(t.ended, at, at+1)
}
