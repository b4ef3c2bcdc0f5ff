package process

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/sandbox"
	"github.com/remit-dev/remit/perm"
)

// view describes how a program sees the roots of its call.
type view struct {
	roots  []sandbox.Root
	names  map[string]string // names of the writable roots, by their folders
	dirs   map[string]string // the folders of all visible roots, by name
	masked []masked          // hidden names in them
	more   []string          // what the program sees beside the system and the roots
}

// see determines what a program may see: the roots that its call may read,
// without masked names. It can write to those that its call may change.
func (d *Driver) see(ctx context.Context, call *callstate.Call) (view, error) {
	cfg := call.Config()
	v := view{names: map[string]string{}, dirs: map[string]string{}}
	if cfg.MaxAccesses == nil {
		return v, nil
	}
	bound := cfg.MaxAccesses()
	masks, err := patterns(call.Terms().Masks)
	if err != nil {
		return v, err
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Roots)) {
		if !touches(bound, perm.Read, name) {
			continue
		}
		root := cfg.Roots[name]
		dir, err := root.Path()
		if err != nil {
			return v, fmt.Errorf("root %s: %w", name, err)
		}
		id := root.Identity()
		r := sandbox.Root{Dir: dir, Dev: id.Device, Ino: id.Inode, View: sandbox.Read}
		if touches(bound, perm.Write, name) || touches(bound, perm.Delete, name) {
			r.View = sandbox.Overlay
			v.names[dir] = name
		}
		if r.Masked, err = d.hidden(ctx, name, root, bound, masks, cfg.Recorder.Host().Now()); err != nil {
			return v, err
		}
		v.roots, v.dirs[name] = append(v.roots, r), dir
		for _, hidden := range r.Masked {
			v.masked = append(v.masked, masked{name, dir, hidden})
		}
	}
	return v, nil
}

// touches reports whether the bound permits an action anywhere in a root.
func touches(bound perm.Set, a perm.Action, root string) bool {
	all, err := perm.NewSet(perm.Access(a, "file://"+root+"/**"))
	return err == nil && !bound.Intersect(all).IsEmpty()
}

func patterns(texts []string) (all []perm.Mask, err error) {
	for _, text := range texts {
		p, err := perm.ParseMask(text)
		if err != nil {
			return nil, fmt.Errorf("%w: the mask %q: %w", ctxperm.ErrDenied, text, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// hidden returns the names of a root that a program must not see.
func (d *Driver) hidden(ctx context.Context, name string, root disk.Root, bound perm.Set, masks []perm.Mask, now time.Time) ([]string, error) {
	var mine []perm.Mask
	everything, err := perm.ParsePattern("file://" + name + "/**")
	if err != nil {
		return nil, err
	}
	for _, m := range masks {
		if m.Overlaps(everything) {
			mine = append(mine, m)
		}
	}
	all := bound.Covers(perm.Access(perm.Read, everything.String()))
	if all && len(mine) == 0 {
		return nil, nil
	}
	s := search{root: root, name: name, masks: mine, index: d.indexOf(root, mine, all), now: now}
	if !all {
		s.may = func(r perm.Resource) bool { return bound.AllowsResource(perm.Read, r, "") }
	}
	_, hidden, err := s.look(ctx, ".")
	return hidden, err
}
