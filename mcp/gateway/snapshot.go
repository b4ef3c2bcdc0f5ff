package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
)

// folderOf is the folder that a pattern names with all that is in it.
func folderOf(pattern string) (folder string, ok bool) { return strings.CutSuffix(pattern, "/**") }

// rootOf is the root of a pattern of files.
func rootOf(pattern string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(pattern, "file://"), "/")
	return name
}

// snapshots are the accesses that keeping a call's files takes. Which of the names in a folder a call is going to change nobody
// knows before; the folder itself, where an argument names it, is asked for.
func (m mirroredTool) snapshots() (all []perm.ResourceAccess) {
	if m.entry.Class == effect.Pure {
		return nil // it may change nothing; what it changes all the same is told
	}
	for _, resource := range m.entry.Snapshot {
		folder, tree := folderOf(resource)
		all = append(all, perm.Access(perm.Write, folder))
		if !tree {
			continue
		}
		for _, a := range []perm.Action{perm.Read, perm.List, perm.Write, perm.Delete} {
			all = append(all, perm.Access(a, "file://"+rootOf(resource)+"/**"))
		}
	}
	return all
}

// keepsFolders are the roots in which folders are kept before calls of a server.
func (s Server) keepsFolders() (roots []string) {
	for _, e := range s.Tools {
		for _, resource := range e.Snapshot {
			if _, tree := folderOf(resource); tree {
				roots = append(roots, rootOf(resource))
			}
		}
	}
	slices.Sort(roots)
	return slices.Compact(roots)
}

// folders are those that are kept before one call. Where an argument is left out that names one, the server has a folder of its
// own for that, and all of the root is kept.
func (m mirroredTool) folders(in json.RawMessage) (all []process.Folder, err error) {
	v, err := canon.Parse(in, canon.DefaultLimits())
	if err != nil {
		return nil, err
	}
	for _, resource := range m.entry.Snapshot {
		folder, tree := folderOf(resource)
		if !tree {
			continue
		}
		b, err := bindingOf(perm.Access(perm.Write, folder), m.u.g.opts.Roots)
		if err != nil {
			return nil, err
		}
		some := []perm.ResourceAccess{b.access}
		if len(b.params) > 0 {
			if some, err = b.fill(v); err != nil {
				return nil, err
			}
		}
		if len(some) == 0 {
			some = []perm.ResourceAccess{perm.Access(perm.Write, "file://"+b.root)}
		}
		for _, exact := range some {
			r, err := perm.ParseResource(exact.Resource)
			if err != nil {
				return nil, err
			}
			all = append(all, process.Folder{Root: r.Root(), Folder: r.Path()})
		}
	}
	return outermost(all), nil
}

// outermost leaves out what lies in another one.
func outermost(all []process.Folder) []process.Folder {
	slices.SortFunc(all, func(a, b process.Folder) int {
		return cmp.Or(cmp.Compare(a.Root, b.Root), cmp.Compare(a.Folder, b.Folder))
	})
	return slices.DeleteFunc(slices.Compact(slices.Clone(all)), func(t process.Folder) bool {
		return slices.ContainsFunc(all, func(o process.Folder) bool {
			return o != t && o.Root == t.Root && (o.Folder == "" || strings.HasPrefix(t.Folder, o.Folder+"/"))
		})
	})
}

// snapshotFolders keeps what the folders of a call hold, and has their roots for it alone: also where only other tools of the server have
// folders kept, since what this one does there would be taken for theirs.
func (m mirroredTool) snapshotFolders(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (*process.FolderSnapshot, error) {
	if m.entry.Class == effect.Pure && !m.entry.Observed {
		return nil, nil
	}
	roots := m.u.cfg.keepsFolders()
	if len(roots) == 0 {
		return nil, nil
	}
	folders, err := m.folders(in)
	if err != nil {
		return nil, err
	}
	k, err := ctxperm.DriverOf[*process.Snapshotter](ctx, tc)
	if err != nil {
		return nil, fmt.Errorf("what folders hold cannot be kept: give the runtime a process.Keep (agent.Driver): %w", err)
	}
	return k.Take(ctx, tc, folders, roots...)
}

// observes are the roots that are compared before and after calls of an observed tool.
func (e Entry) observes() (roots []string) {
	for _, resource := range e.Snapshot {
		roots = append(roots, rootOf(resource))
	}
	slices.Sort(roots)
	return slices.Compact(roots)
}

// strays tells what a call changed that its tool says it only reads. The changes stay, and a person can take them back: somebody else
// may have made them meanwhile.
func (m mirroredTool) strays(h *process.FolderSnapshot) {
	if changed := h.Changed(); m.entry.Class == effect.Pure && len(changed) > 0 {
		m.u.g.log.Warn("files were changed during a call of a tool that says that it only reads", "server", m.u.cfg.Name, "tool", m.def.name, "files", strings.Join(changed, " "))
	}
}

// concluded reports whether a server has ended a call, whatever it answered.
func concluded(err error) bool {
	var refused *upstreamError
	return err == nil || errors.As(err, &refused)
}

// observedFiles are the files of one call as they were before it.
type observedFiles []*files.ObservedFiles

// snapshotFiles records what the files of a call hold, before the server gets to change them.
func (m mirroredTool) snapshotFiles(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (observedFiles, error) {
	if len(m.entry.Snapshot) == 0 {
		return nil, nil
	}
	v, err := canon.Parse(in, canon.DefaultLimits())
	if err != nil {
		return nil, err
	}
	paths := map[string][]string{} // by root
	var roots []string
	for _, resource := range m.entry.Snapshot {
		if _, tree := folderOf(resource); tree {
			continue
		}
		b, err := bindingOf(perm.Access(perm.Write, resource), m.u.g.opts.Roots)
		if err != nil {
			return nil, err
		}
		some, err := b.fill(v)
		if err != nil {
			return nil, err
		}
		for _, exact := range some {
			r, err := perm.ParseResource(exact.Resource)
			if err != nil {
				return nil, err
			}
			if paths[r.Root()] == nil {
				roots = append(roots, r.Root())
			}
			paths[r.Root()] = append(paths[r.Root()], r.Path())
		}
	}
	var out observedFiles
	for _, root := range roots {
		f, err := files.Open(tc, root)
		if err != nil {
			return nil, err
		}
		e, err := f.Observe(ctx, paths[root]...)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// landed notes what the server left there.
func (k observedFiles) landed(ctx context.Context) (err error) {
	for _, e := range k {
		err = errors.Join(err, e.RecordVersions(context.WithoutCancel(ctx)))
	}
	return err
}
