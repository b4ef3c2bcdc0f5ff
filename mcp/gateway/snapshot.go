package gateway

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
)

// snapshots are the accesses that keeping a call's files takes.
func (m mirrored) snapshots() (all []perm.ResourceAccess) {
	for _, resource := range m.entry.Snapshot {
		all = append(all, perm.Access(perm.Write, resource))
	}
	return all
}

// kept are the files of one call as they were before it.
type kept []*files.Expected

// keep records what the files of a call hold, before the server gets to change them.
func (m mirrored) keep(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (kept, error) {
	if len(m.entry.Snapshot) == 0 {
		return nil, nil
	}
	v, err := canon.Parse(in, canon.DefaultLimits())
	if err != nil {
		return nil, err
	}
	paths := map[string][]string{} // by root
	var roots []string
	for _, a := range m.snapshots() {
		b, err := bindingOf(a, m.u.g.opts.Roots)
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
	var out kept
	for _, root := range roots {
		f, err := files.Open(tc, root)
		if err != nil {
			return nil, err
		}
		e, err := f.Expect(ctx, paths[root]...)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// landed notes what the server left there.
func (k kept) landed(ctx context.Context) (err error) {
	for _, e := range k {
		err = errors.Join(err, e.Landed(context.WithoutCancel(ctx)))
	}
	return err
}
