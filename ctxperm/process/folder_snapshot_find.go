package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// Find finds the changes of an interrupted call in the folders of its
// snapshots.
func (f changeFinder) Find(ctx context.Context, c revert.Call, keep journal.ContentStore) (found revert.DiscoveredChanges, err error) {
	traces := files.NewDetectedChanges(host.Real(), keep)
	var lost []string
	var releases []func()
	for _, key := range slices.Sorted(maps.Keys(c.Notes)) {
		_, take, ok := strings.Cut(key, snapshotNotePrefix)
		var all []journaledMarker
		if !ok || json.Unmarshal(c.Notes[key], &all) != nil || len(all) == 0 || all[0].Take != take {
			continue // a note of a tool
		}
		for _, n := range all {
			release, err := f.keep.found(ctx, c, n, traces)
			if err != nil {
				lost = append(lost, err.Error())
			}
			if release != nil {
				releases = append(releases, release)
			}
		}
	}
	changes, blobs := traces.Changes()
	if !slices.ContainsFunc(changes, func(ch effect.Change) bool { return isRecorded(c.Changes, ch) }) {
		found.Changes, found.Blobs, found.Lost = changes, blobs, strings.Join(lost, "; ")
	}
	if len(releases) > 0 {
		found.Release = func() {
			for _, release := range releases {
				release()
			}
		}
	}
	return found, nil
}

// isRecorded reports whether the call recorded a change, and with it all others,
// before its process died. If so, another process has changed the file since.
func isRecorded(all []effect.Change, ch effect.Change) bool {
	return slices.ContainsFunc(all, func(have effect.Change) bool {
		//mutant:token
		return have.Resource == ch.Resource && have.Pre.Same(ch.Pre)
	})
}

// markerOf finds the marker of a call, and the folder with the copy that it
// relies on. That can be moved aside. Without a marker, the call has released
// its copy.
func (k *Snapshotter) markerOf(n journaledMarker) (at string, c usageMarker, err error) {
	if n.Place == "" || filepath.Base(n.Place) != n.Place || filepath.Base(n.Take) != n.Take {
		return "", c, fmt.Errorf("%q is no place of a copy", n.Place)
	}
	some, err := filesIn(k.cfg.Dir, n.Place)
	if err != nil {
		return "", c, err
	}
	var unread error
	for _, at := range some {
		if base := filepath.Base(at); base != n.Place && !strings.HasPrefix(base, n.Place+".") {
			continue
		}
		for _, name := range []string{markerFile, markerFile + "-" + n.Take} {
			var c usageMarker
			switch err := load(filepath.Join(at, name), &c); {
			case err == nil && c.Take == n.Take:
				return at, c, nil
			case err != nil && !errors.Is(err, fs.ErrNotExist):
				unread = fmt.Errorf("the copy of what was there before cannot be read: %w", err)
			}
		}
	}
	if len(some) == 0 {
		unread = fmt.Errorf("the copy of what was there before is gone from %s", k.cfg.Dir)
	}
	return "", c, unread
}

// found adds the differences from one copy. A call that has released its copy
// had recorded all changes.
func (k *Snapshotter) found(ctx context.Context, call revert.Call, n journaledMarker, traces *files.DetectedChanges) (release func(), err error) {
	at, c, err := k.markerOf(n)
	if err != nil || at == "" {
		return nil, err
	}
	root, err := host.OpenRoot(host.Real(), c.Dir)
	if err != nil {
		return nil, fmt.Errorf("root %s at %s: %w", c.Name, c.Dir, err)
	}
	defer func() { _ = root.Close() }()
	if !root.Identity().IsAgain(c.Root) {
		return nil, fmt.Errorf("root %s at %s is another folder than the one that the call worked in", c.Name, c.Dir)
	}
	t := &folderCopy{usageMarker: c, root: root, snapshotStore: openStore(at, filepath.Join(c.Dir, c.Folder)), turn: make(chan struct{}, 1)}
	t.most, t.diskSyncer = folderSize{k.cfg.MaxFiles, k.cfg.MaxBytes}, k.diskSyncer
	if c.Ending && c.recordedBy(call.Changes) {
		t.found = c.Found
		return t.recover, nil
	}
	others, err := t.endings()
	if err != nil {
		return nil, err
	}
	before, lost, err := t.differences(ctx, &k.driver, host.Real().Now())
	if err == nil {
		before = slices.DeleteFunc(before, func(b files.FilePreImage) bool { return t.belongs(others, b.Path) })
		err = errors.Join(lost, fileInternals.Detect(ctx, traces, c.Name, root, before))
	}
	return t.recover, err
}

// recordedBy reports whether the journal has what a call was about to record.
func (c usageMarker) recordedBy(changes []effect.Change) bool {
	none := true
	for _, f := range c.Found {
		if f.Pre == "" {
			continue
		}
		none = false
		if isRecorded(changes, effect.Change{Resource: c.resource(f.Name), Pre: effect.Token(f.Pre)}) {
			return true
		}
	}
	return none
}

// endings returns what other calls were about to record, by name. It is theirs.
func (t *folderCopy) endings() (map[string]fileStamp, error) {
	all, err := markersIn(t.at)
	if err != nil {
		return nil, err
	}
	found := map[string]fileStamp{}
	for _, c := range all {
		if c.Take == t.Take || !c.Ending {
			continue
		}
		for _, f := range c.Found {
			found[f.Name] = f.Is.entryState().root
		}
	}
	return found, nil
}

// belongs reports whether a name is as another call left it. It removes the
// name from those that were found.
func (t *folderCopy) belongs(others map[string]fileStamp, full string) bool {
	at := slices.IndexFunc(t.found, func(f foundName) bool { return filepath.Join(t.Folder, f.Name) == full })
	if at < 0 {
		return false
	}
	then, theirs := others[t.found[at].Name]
	if !theirs || then != t.found[at].Is.entryState().root {
		return false
	}
	t.found = slices.Delete(t.found, at, at+1)
	return true
}

// recover ends the use of a copy by an interrupted call, once its changes are
// durable. If others rely on the copy, it takes them over before.
func (t *folderCopy) recover() {
	all, err := markersIn(t.at)
	if err != nil {
		return
	}
	if len(all) > 1 {
		t.rebase()
		_ = t.persistNow(t.stored)
	}
	t.release()
	if len(all) <= 1 && strings.Contains(filepath.Base(t.at), ".") {
		_ = os.RemoveAll(t.at)
	}
}
