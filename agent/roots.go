package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/pipeline"
	"github.com/remit-dev/remit/internal/toolstate"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

var fileInternals = handleaccess.FilesOf[files.ChangeSet, files.DetectedChanges, files.FilePreImage]()

type root struct {
	rootConfig
	open disk.Root
}

type roots []root

func openRoots(h host.Host, configs []rootConfig) (roots, error) {
	var rs roots
	for _, c := range configs {
		open, err := host.OpenRoot(h, c.path)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("root %q at %s: %w", c.name, c.path, err), rs.close())
		}
		rs = append(rs, root{c, open})
	}
	return rs, nil
}

// warnOfRoots logs tools whose files are below a missing root, because each of
// their calls fails. It does so once for each set of tools.
func (rt *Runtime) warnOfRoots() {
	now := rt.tools.Load()
	if rt.warnedOf.Swap(now) == now {
		return
	}
	have := rt.roots.byName()
	for _, t := range now.All() {
		for _, need := range t.Spec().Needs {
			p, err := perm.ParsePattern(need.Resource)
			if err != nil || p.Kind() != perm.KindFile {
				continue
			}
			root, _, _ := strings.Cut(strings.TrimPrefix(p.String(), "file://"), "/")
			if _, ok := have[root]; !ok && root != perm.OutsideRoot && !strings.ContainsAny(root, "*{") {
				rt.log.Warn("a tool needs a root that is not there", "tool", t.Name(), "root", root, "fix", "agent.Root(name, dir); at the command --root NAME=DIR")
				break
			}
		}
	}
}

func (rs roots) close() error {
	var errs []error
	for _, r := range rs {
		errs = append(errs, r.open.Close())
	}
	return errors.Join(errs...)
}

func (rs roots) byName() map[string]disk.Root {
	m := make(map[string]disk.Root, len(rs))
	for _, r := range rs {
		m[r.name] = r.open
	}
	return m
}

// keepOut refuses a journal whose folder lies inside a root or contains one: a
// call could then change its own record. It compares the folders themselves,
// not their names.
func (rs roots) keepOut(j journal.Journal) error {
	d, ok := j.(interface{ Dir() string })
	if !ok {
		return nil
	}
	dir, err := realPath(d.Dir())
	if err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	for _, r := range rs {
		path, err := realPath(r.path)
		if err != nil {
			return fmt.Errorf("root %q: %w", r.name, err)
		}
		inside, err := holds(path, dir)
		if err != nil {
			return err
		}
		if inside {
			return fmt.Errorf("the state folder %s lies inside root %q (%s): calls could change their own journal; choose another folder", d.Dir(), r.name, r.path)
		}
		if inside, err = holds(dir, path); err != nil {
			return err
		}
		if inside {
			return fmt.Errorf("root %q (%s) lies inside the state folder %s: calls could change what is kept there; choose another folder", r.name, r.path, d.Dir())
		}
	}
	return nil
}

// realPath returns the one path of a folder without links.
func realPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

func holds(parent, dir string) (bool, error) {
	want, err := os.Stat(parent)
	if err != nil {
		return false, err
	}
	for {
		got, err := os.Stat(dir)
		if err != nil {
			return false, err
		}
		if os.SameFile(want, got) {
			return true, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false, nil
		}
		dir = up
	}
}

// environment returns the environment to revert the calls of a session: the tools and
// roots of this runtime, and for a session of another process the folders that
// its record names, if they are still the same.
func (rt *Runtime) environment(ctx context.Context, session string) (revert.Environment, error) {
	if err := rt.inCopy(ctx, "", session); err != nil {
		return revert.Environment{}, err
	}
	open, err := rt.rootsOf(ctx, session)
	if err != nil {
		return revert.Environment{}, err
	}
	lookup := func(name string) (disk.Root, bool) {
		r, ok := open[name]
		return r, ok
	}
	l := pipeline.New(pipeline.Config{
		Services: rt.services, Tools: rt.Tools, Roots: open, Limits: rt.limits, ResourceView: rt.resourceView(open),
		Recorder: revert.NewRecorder(rt.journal, rt.services.Host, session),
	})
	schemes := append([]revert.Scheme{fileInternals.Scheme(lookup, rt.services.Host), toolstate.Scheme(rt.journal)}, rt.schemes...)
	return revert.Environment{Namespace: namespaceOf(open), Schemes: schemes, ToolReverter: l, Prober: l, WaitIdle: l.WaitCallIdle}, nil
}

// namespaceOf names the folders that contain the resources of a session.
func namespaceOf(open map[string]disk.Root) string {
	var world strings.Builder
	for _, name := range slices.Sorted(maps.Keys(open)) {
		_, _ = fmt.Fprintf(&world, "%s=%v;", name, open[name].Identity())
	}
	return world.String()
}

func (rt *Runtime) rootsOf(ctx context.Context, session string) (map[string]disk.Root, error) {
	mine, out := rt.roots.configured(), map[string]disk.Root{}
	opened, err := rt.recordOf(ctx, session)
	if errors.Is(err, journal.ErrNotFound) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	here := rt.state.wrote(opened)
	for _, r := range opened.Roots {
		if found, ok := rt.sameRoot(mine[r.Name], r, here); ok {
			out[r.Name] = found
		}
	}
	return out, nil
}

// configured returns the roots by name.
func (rs roots) configured() map[string]root {
	m := make(map[string]root, len(rs))
	for _, r := range rs {
		m[r.name] = r
	}
	return m
}

// otherFolders returns the folders of a session that differ from the recorded
// ones: only MovedRoot asserts that they replace these.
func (rt *Runtime) otherFolders(ctx context.Context, session string) ([]record.Root, error) {
	now, _, err := rt.wordOnly(ctx, session)
	return now, err
}

// wordOnly returns the folders of otherFolders, and the recorded root of each.
func (rt *Runtime) wordOnly(ctx context.Context, session string) (now, was []record.Root, err error) {
	if !slices.ContainsFunc(rt.roots, func(r root) bool { return r.moved }) {
		return nil, nil, nil
	}
	opened, err := rt.recordOf(ctx, session)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	mine := rt.roots.configured()
	for _, r := range opened.Roots {
		m, ok := mine[r.Name]
		if !ok || !m.moved || rt.state.isRecorded(m.open, m.path, r) {
			continue
		}
		id, err := canon.Marshal(m.open.Identity())
		if err != nil {
			return nil, nil, err
		}
		now, was = append(now, record.Root{Name: r.Name, Path: m.path, Identity: id, Node: rt.state.Node}), append(was, r)
	}
	return now, was, nil
}

// sameRoot returns the folder that a session's record names: the one of
// MovedRoot, this runtime's own root of that name, or the recorded path, which
// stays open until Close. A folder that replaced the recorded one is not the
// same. The recorded path counts only if the record was written in this state
// folder.
func (rt *Runtime) sameRoot(mine root, rec record.Root, here bool) (disk.Root, bool) {
	if mine.moved {
		return mine.open, true
	}
	if mine.open != nil && rt.state.isRecorded(mine.open, mine.path, rec) {
		return mine.open, true
	}
	//mutant:check
	if !here {
		return nil, false
	}
	if kept, ok := rt.others.get(rec.Path); ok && rt.state.isRecorded(kept, rec.Path, rec) {
		return kept, true
	}
	open, err := host.OpenRoot(rt.services.Host, rec.Path)
	if err != nil {
		return nil, false
	}
	if !rt.state.isRecorded(open, rec.Path, rec) {
		_ = open.Close()
		return nil, false
	}
	return rt.others.keep(rec.Path, open), true
}

// foreignRoots are folders of other sessions that are open for reverts.
type foreignRoots struct {
	mu   sync.Mutex // never held across a wait
	open map[string]disk.Root
	all  []disk.Root
}

func (k *foreignRoots) get(path string) (disk.Root, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.open[path]
	return r, ok
}

func (k *foreignRoots) keep(path string, r disk.Root) disk.Root {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open == nil {
		k.open = map[string]disk.Root{}
	}
	k.open[path], k.all = r, append(k.all, r)
	return r
}

func (k *foreignRoots) close() error {
	k.mu.Lock()
	all := k.all
	k.all, k.open = nil, nil
	k.mu.Unlock()
	var errs []error
	for _, r := range all {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}
