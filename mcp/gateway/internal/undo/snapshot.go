package undo

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
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/mcp/gateway/internal/binding"
	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
)

// Accesses returns the accesses for saving the files of a call. The names that
// a call will change in a folder are unknown, so it returns the folder itself,
// if an argument names it.
func (m Tool) Accesses() (all []perm.ResourceAccess) {
	if m.Entry.Class == effect.Pure {
		return nil // it must not change anything; the gateway reports changes all the same
	}
	for _, resource := range m.Entry.Snapshot {
		folder, tree := binding.FolderOf(resource)
		all = append(all, perm.Access(perm.Write, folder))
		if !tree {
			continue
		}
		for _, a := range []perm.Action{perm.Read, perm.List, perm.Write, perm.Delete} {
			all = append(all, perm.Access(a, "file://"+binding.RootOf(resource)+"/**"))
		}
	}
	return all
}

// SnapshotRoots returns the roots with a folder that the gateway saves before
// calls of the server.
func SnapshotRoots(s config.Server) (roots []string) {
	for _, e := range s.Tools {
		for _, resource := range e.Snapshot {
			if _, tree := binding.FolderOf(resource); tree {
				roots = append(roots, binding.RootOf(resource))
			}
		}
	}
	slices.Sort(roots)
	return slices.Compact(roots)
}

// folders returns the folders to save before one call. If the call omits the
// argument that names one, the server uses a default, so the whole root is
// saved.
func (m Tool) folders(in json.RawMessage) (all []process.Folder, err error) {
	v, err := canon.Parse(in, canon.DefaultLimits())
	if err != nil {
		return nil, err
	}
	for _, resource := range m.Entry.Snapshot {
		folder, tree := binding.FolderOf(resource)
		if !tree {
			continue
		}
		b, err := binding.New(perm.Access(perm.Write, folder), m.Upstream.Shared.Roots)
		if err != nil {
			return nil, err
		}
		some := []perm.ResourceAccess{b.Access}
		if len(b.Params) > 0 {
			if some, err = b.Fill(v); err != nil {
				return nil, err
			}
		}
		if len(some) == 0 {
			some = []perm.ResourceAccess{perm.Access(perm.Write, "file://"+b.Root)}
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

// outermost removes folders that lie in another one.
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

// SnapshotFolders saves the folders of a call, and takes their roots
// exclusively. It takes them also if only other tools of the server have
// snapshots: the changes of this call would be attributed to those.
func (m Tool) SnapshotFolders(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (*process.FolderSnapshot, error) {
	if m.Entry.Class == effect.Pure && !m.Entry.Observed {
		return nil, nil
	}
	roots := SnapshotRoots(m.Upstream.Server)
	if len(roots) == 0 {
		return nil, nil
	}
	folders, err := m.folders(in)
	if err != nil {
		return nil, err
	}
	k, err := ctxperm.DriverOf[*process.Snapshotter](ctx, tc)
	if err != nil {
		return nil, fmt.Errorf("the content of folders cannot be saved; give the runtime a process.Snapshotter (agent.Driver): %w", err)
	}
	return k.Take(ctx, tc, folders, roots...)
}

// ObservedRoots returns the roots that are compared before and after calls of
// an observed tool.
func ObservedRoots(e config.Entry) (roots []string) {
	for _, resource := range e.Snapshot {
		roots = append(roots, binding.RootOf(resource))
	}
	slices.Sort(roots)
	return slices.Compact(roots)
}

// WarnOfChanges warns about changes during a call of a read-only tool. The
// changes stay, as another program may have made them; a person can revert
// them.
func (m Tool) WarnOfChanges(h *process.FolderSnapshot) {
	if changed := h.Changed(); m.Entry.Class == effect.Pure && len(changed) > 0 {
		m.Upstream.Shared.Log.Warn("files were changed during a call of a tool that says that it only reads", "server", m.Upstream.Server.Name, "tool", m.Name, "files", strings.Join(changed, " "))
	}
}

// Concluded reports whether a server has ended a call, with any response.
func Concluded(err error) bool {
	var refused *wire.ProtocolError
	return err == nil || errors.As(err, &refused)
}

// ObservedFiles are the files of one call before the call.
type ObservedFiles []*files.ObservedFiles

// SnapshotFiles records the pre-images of a call's files before the server can
// change them.
func (m Tool) SnapshotFiles(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (ObservedFiles, error) {
	if len(m.Entry.Snapshot) == 0 {
		return nil, nil
	}
	v, err := canon.Parse(in, canon.DefaultLimits())
	if err != nil {
		return nil, err
	}
	paths := map[string][]string{} // by root
	var roots []string
	for _, resource := range m.Entry.Snapshot {
		if _, tree := binding.FolderOf(resource); tree {
			continue
		}
		b, err := binding.New(perm.Access(perm.Write, resource), m.Upstream.Shared.Roots)
		if err != nil {
			return nil, err
		}
		some, err := b.Fill(v)
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
	var out ObservedFiles
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

// RecordVersions records the post-images.
func (k ObservedFiles) RecordVersions(ctx context.Context) (err error) {
	for _, e := range k {
		err = errors.Join(err, e.RecordVersions(context.WithoutCancel(ctx)))
	}
	return err
}
