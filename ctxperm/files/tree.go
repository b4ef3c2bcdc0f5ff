package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/perm"
)

// MaxEntries bounds the entries that one operation changes, if
// tool.Limits.MaxEntries is not set. The operation records all of them, and
// stores their content, before it changes the first.
const MaxEntries = 10_000

// node is one entry of a tree.
type node struct {
	path string
	text string
	info disk.Info
}

// still returns an error if another file replaced the one that was found.
func (n node) still(was state) error {
	switch {
	case !was.exists():
		return conflict(n.path, "it is gone by now")
	case was.Type != n.info.Type.String():
		return conflict(n.path, "it was replaced")
	default:
		return nil
	}
}

// tree is the set of entries that an operation changes as a whole. Each entry
// was authorized, and can be created again.
type tree struct {
	*reach
	nodes    []node // a directory before its entries
	accesses []perm.ResourceAccess
	actions  []perm.Action                                     // on each entry
	also     func(below string) ([]perm.ResourceAccess, error) // further accesses for an entry, by its path below the top; may be nil
}

// reach is the set of accesses of one operation, decided before it does
// anything and approved together. It keeps the call from ending until end.
type reach struct {
	*callstate.Survey
	op *callstate.Op
}

func (f *Files) reach(ctx context.Context) (*reach, error) {
	call := contexts.Call(f.tc)
	op, err := call.Enter(ctx)
	if err != nil {
		return nil, err
	}
	return &reach{call.Survey(), op}, nil
}

// end waits for the approvals that the accesses need. It returns an earlier
// error only after that, because the error can name a path that the call may
// not know yet.
func (r *reach) end(ctx context.Context, err error) error {
	defer r.op.Leave()
	if !r.Asks() || errors.Is(err, ctxperm.ErrDenied) || context.Cause(ctx) != nil {
		return err
	}
	return cmp.Or(r.Grant(ctx), err)
}

// tree finds all entries of a path. It reveals nothing before it is permitted:
// only a call that may list a directory learns its names.
func (f *Files) tree(ctx context.Context, top string, actions ...perm.Action) (*tree, error) {
	t := &tree{actions: actions}
	return t, f.grow(ctx, t, top)
}

func (f *Files) grow(ctx context.Context, t *tree, top string) (err error) {
	if t.reach, err = f.reach(ctx); err != nil {
		return err
	}
	return t.end(ctx, f.root(ctx, t, top))
}

// root adds the top of a tree and everything in it.
func (f *Files) root(ctx context.Context, t *tree, top string) error {
	text, err := f.resource(top)
	if err != nil {
		return err
	}
	if err := t.ask(ctx, text, "."); err != nil {
		return err
	}
	if err := f.site.straight(ctx, top); err != nil {
		return refused(err)
	}
	info, err := f.site.lstat(ctx, top)
	if err != nil {
		return refused(err)
	}
	return f.addAll(ctx, t, ".", node{path: top, text: text, info: info})
}

// ask requests the accesses of one entry.
func (t *tree) ask(ctx context.Context, text, below string) error {
	var wanted []perm.ResourceAccess
	for _, a := range t.actions {
		wanted = append(wanted, perm.Access(a, text))
	}
	if t.also != nil {
		more, err := t.also(below)
		if err != nil {
			return err
		}
		wanted = append(wanted, more...)
	}
	return t.want(ctx, wanted...)
}

// want decides accesses now, so that a denied call reads nothing further. The
// operation itself requests all of them again, together.
func (t *tree) want(ctx context.Context, wanted ...perm.ResourceAccess) error {
	for _, a := range wanted {
		if err := t.Need(ctx, a); err != nil {
			return err
		}
	}
	t.accesses = append(t.accesses, wanted...)
	return nil
}

// addAll adds an authorized node and its entries.
func (f *Files) addAll(ctx context.Context, t *tree, below string, n node) error {
	if len(t.nodes) == f.entries {
		return invalid(t.nodes[0].path, fmt.Sprintf("it has more than %d entries; take it in parts", f.entries))
	}
	t.nodes = append(t.nodes, n)
	switch n.info.Type {
	case disk.TypeFile, disk.TypeLink:
		return nil
	case disk.TypeDir:
	default:
		return invalid(n.path, "it is neither a file nor a link nor a directory, and could not be made again")
	}
	if err := t.want(ctx, perm.Access(perm.List, n.text)); err != nil {
		return err
	}
	found, err := f.site.entries(ctx, n.path)
	if err != nil {
		return refused(err)
	}
	if len(found) > 0 && n.info.Perm&0o700 != 0o700 {
		return invalid(n.path, "its owner may not write in it, so that what is in it could not be made again")
	}
	for _, e := range found {
		name, rel := path.Join(n.path, e.Name), path.Join(below, e.Name)
		text, err := f.resource(name)
		if err != nil {
			return err
		}
		if err := t.ask(ctx, text, rel); err != nil {
			return err
		}
		if err := f.addAll(ctx, t, rel, node{path: name, text: text, info: e}); err != nil {
			return err
		}
	}
	return nil
}
