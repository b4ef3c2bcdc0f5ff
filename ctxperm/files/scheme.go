package files

import (
	"context"
	"errors"
	"fmt"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
)

// newScheme returns the scheme that reverts the changes of this package. It
// resolves the root names of the changes in the roots of the reverting process.
// A change below an unknown root fails with that reason.
func newScheme(roots handleaccess.Roots, h host.Host) revert.Scheme {
	return scheme{roots: roots, host: h}
}

type scheme struct {
	roots func(name string) (disk.Root, bool)
	host  host.Host
}

// Name returns the scheme of the changes of this package.
func (s scheme) Name() string { return schemeName }

// errNoRoot: the reverting process has no such root, and the folder that was
// changed is not at its recorded path.
var errNoRoot = errors.New("its recorded folder does not exist; name its current folder, or a copy or a restored backup")

// locate returns the root and path of a resource.
func (s scheme) locate(resource string) (hostRoot, string, error) {
	r, err := perm.ParseResource(resource)
	if err != nil {
		return hostRoot{}, "", err
	}
	if r.Kind() != perm.KindFile || r.Path() == "" {
		return hostRoot{}, "", fmt.Errorf("%s is not a file below a root", resource)
	}
	root, ok := s.roots(r.Root())
	if !ok {
		return hostRoot{}, "", fmt.Errorf("root %q: %w", r.Root(), errNoRoot)
	}
	return hostRoot{root: disk.WithoutLinks(root), host: s.host}, r.Path(), nil
}

func (s scheme) swap(c effect.Change) (*swap, inverse, error) {
	inv, err := readInverse(c)
	if err != nil {
		return nil, inv, err
	}
	where, path, err := s.locate(c.Resource)
	if err != nil {
		return nil, inv, err
	}
	w := newSwap(where, path, inv.Stage, c.Pre, c.Post)
	w.time = inv.Was.time()
	was, err := inv.Was.version()
	if err != nil {
		return nil, inv, err
	}
	will, err := inv.Will.version()
	if err != nil {
		return nil, inv, err
	}
	w.hold = holding(was, will, w.root.Self().Owner)
	return w, inv, nil
}

// Settle completes or withdraws an interrupted change, makes the current state
// durable, and returns its version. The process of the change may have died
// before the sync, and conclusions from the version must be durable. The
// version is empty if it cannot be known, because the root is not open here or
// the path leads elsewhere. Plan returns the reason.
func (s scheme) Settle(ctx context.Context, c effect.Change) (effect.Token, error) {
	now, err := s.settled(ctx, c)
	if elsewhere(err) { // another process replaced its folder by a link
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("settle %s: %w", c.Resource, err)
	}
	return now, nil
}

func (s scheme) settled(ctx context.Context, c effect.Change) (now effect.Token, err error) {
	_, err = s.settle(ctx, c, func(w *swap) error {
		if err := w.syncName(ctx); err != nil {
			return err
		}
		st, err := w.look(ctx, w.target, hashing)
		if unreadable(err) {
			return nil
		}
		now = st.Token()
		return err
	})
	if err != nil {
		return "", err
	}
	return now, nil
}

// settle is Settle without making anything durable, and without the version. It
// then calls act, while the folder of the file is still open. It returns nil if
// the file cannot be reached. Plan reports that for this resource, and others
// continue.
func (s scheme) settle(ctx context.Context, c effect.Change, act func(*swap) error) (*swap, error) {
	w, _, err := s.swap(c)
	if err != nil {
		return nil, nil
	}
	defer w.pinFolder()()
	err = w.straight(ctx, w.target)
	if elsewhere(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = w.settle(ctx)
	if elsewhere(err) || errors.Is(err, disk.ErrType) { // its parent is no longer a folder
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return w, act(w)
}

// elsewhere reports whether a path no longer leads to its previous place.
func elsewhere(err error) bool { return errors.Is(err, errAlias) || errors.Is(err, disk.ErrEscape) }
