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
			release, err := f.keep.found(ctx, n, traces)
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

// found adds the differences from one copy. A call that has released its copy
// had recorded all changes.
func (k *Snapshotter) found(ctx context.Context, n journaledMarker, traces *files.DetectedChanges) (release func(), err error) {
	if n.Place == "" || filepath.Base(n.Place) != n.Place || filepath.Base(n.Take) != n.Take {
		return nil, fmt.Errorf("%q is no place of a copy", n.Place)
	}
	at := filepath.Join(k.cfg.Dir, n.Place)
	var c usageMarker
	aside := false
	err = load(filepath.Join(at, markerFile), &c)
	if _, there := os.Lstat(at + "." + n.Take); there == nil {
		at, aside = at+"."+n.Take, true
		err = load(filepath.Join(at, markerFile), &c)
	}
	_, missing := os.Lstat(at)
	switch {
	case missing != nil:
		return nil, fmt.Errorf("the copy of what was there before is gone from %s", k.cfg.Dir)
	case errors.Is(err, fs.ErrNotExist), err == nil && c.Take != n.Take:
		return nil, nil // released
	case err != nil:
		return nil, fmt.Errorf("the copy of what was there before cannot be read: %w", err)
	}
	root, err := host.OpenRoot(host.Real(), c.Dir)
	if err != nil {
		return nil, fmt.Errorf("root %s at %s: %w", c.Name, c.Dir, err)
	}
	defer func() { _ = root.Close() }()
	if !root.Identity().IsAgain(c.Root) {
		return nil, fmt.Errorf("root %s at %s is another folder than the one that the call worked in", c.Name, c.Dir)
	}
	t := &folderCopy{usageMarker: c, root: root, snapshotStore: openStore(at, filepath.Join(c.Dir, c.Folder))}
	before, lost, err := t.differences(ctx, &k.driver, host.Real().Now())
	if err == nil {
		err = errors.Join(lost, fileInternals.Detect(ctx, traces, c.Name, root, before))
	}
	return func() {
		if aside {
			_ = os.RemoveAll(at)
			return
		}
		t.release()
	}, err
}
