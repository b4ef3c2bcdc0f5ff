package files

import (
	"context"
	"fmt"
	"path"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/perm"
)

// MaxEntries is how many entries one operation changes, where tool.Limits.Entries
// says nothing: all of them are recorded, and their content kept, before the first
// is touched.
const MaxEntries = 10_000

// node is one entry of a tree.
type node struct {
	path string
	text string
	info disk.Info
}

// still refuses what took the place of what was found.
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

// tree is what an operation acts on whole: each entry of it was asked for, and
// can be made again.
type tree struct {
	nodes    []node // a directory before what is in it
	accesses []perm.ResourceAccess
	actions  []perm.Action                                     // on each entry
	also     func(below string) ([]perm.ResourceAccess, error) // what else an entry needs, by its path below the top; may be nil
}

// tree finds all that a path stands for. Nothing is looked at before it was
// asked for: an entry has a name only for who may list its directory.
func (f *Files) tree(ctx context.Context, top string, actions ...perm.Action) (*tree, error) {
	t := &tree{actions: actions}
	return t, f.grow(ctx, t, top)
}

func (f *Files) grow(ctx context.Context, t *tree, top string) error {
	text, err := f.resource(top)
	if err != nil {
		return err
	}
	if err := f.ask(ctx, t, text, "."); err != nil {
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

// ask asks for one entry.
func (f *Files) ask(ctx context.Context, t *tree, text, below string) error {
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
	return f.want(ctx, t, wanted...)
}

// want asks now, so that nobody looks further who may not; the operation itself
// asks for everything again, as one.
func (f *Files) want(ctx context.Context, t *tree, wanted ...perm.ResourceAccess) error {
	p, err := f.authorizeAll(ctx, wanted)
	if err != nil {
		return err
	}
	p.End()
	t.accesses = append(t.accesses, wanted...)
	return nil
}

// addAll adds a node that was asked for, and what is in it.
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
	if err := f.want(ctx, t, perm.Access(perm.List, n.text)); err != nil {
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
		if err := f.ask(ctx, t, text, rel); err != nil {
			return err
		}
		if err := f.addAll(ctx, t, rel, node{path: name, text: text, info: e}); err != nil {
			return err
		}
	}
	return nil
}
