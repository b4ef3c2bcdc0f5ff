package crash_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/revert"
)

// intrude makes another actor write between the crash and the recovery: it
// replaces each file, or adds one in each directory. Recovery and revert must
// lose none of that (I6).
func (x *explorer) intrude(p plan, w *simState, t clientView, by crashPath, replace bool) {
	theirs := map[string]bool{}
	put := func(name string) {
		content := fmt.Sprintf("somebody else's %d", len(theirs))
		theirs[content] = true
		r := w.disk.Root()
		f, err := r.Create(name, 0o644)
		must(err)
		_, err = io.WriteString(f, content)
		must(errors.Join(err, f.Sync(), f.Close()))
	}
	found := w.disk.Files()
	for _, name := range slices.Sorted(maps.Keys(found)) {
		switch is := found[name]; {
		case strings.HasPrefix(path.Base(name), ".remit-stage-"): // reserved for the runtime
		case is.Type == disk.TypeFile && replace:
			must(w.disk.Root().Remove(name))
			put(name)
		case is.Type == disk.TypeDir && !replace:
			put(name + "/theirs.txt")
		}
	}
	must(w.disk.Root().SyncAll())
	rt, ctx, err := w.process()
	if err != nil {
		x.problem(p, by, findings{"process: " + err.Error()})
		return
	}
	var f findings
	if _, err := rt.Recover(ctx); err != nil {
		f.add("with somebody else's files: recover: %v", err)
	}
	if t.txn != "" && len(f) == 0 {
		if _, err := rt.Revert(ctx, t.txn, revert.Options{}); err != nil && !errors.Is(err, agent.ErrPartialRevert) && p.look(ctx, w, rt, t).txn != nil {
			f.add("with somebody else's files: revert: %v", err)
		}
	}
	for _, is := range w.disk.Files() {
		delete(theirs, is.Content)
	}
	for content := range theirs {
		f.add("with somebody else's files (replaced %v): %q is lost", replace, content)
	}
	if err := rt.Close(); err != nil {
		f.add("close: %v", err)
	}
	if len(f) > 0 {
		x.problem(p, by, f)
	}
}
