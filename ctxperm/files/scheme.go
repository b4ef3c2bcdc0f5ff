package files

import (
	"context"
	"errors"
	"fmt"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
)

// Scheme returns what takes the changes of this package back. The roots are
// those of the process that does it, by the names that the changes know them by;
// a change below a root that is not among them fails, and says so.
func Scheme(roots func(name string) (disk.Root, bool), h host.Host) revert.Scheme {
	return scheme{roots: roots, host: h}
}

type scheme struct {
	roots func(name string) (disk.Root, bool)
	host  host.Host
}

// Name returns SchemeName.
func (s scheme) Name() string { return SchemeName }

// errNoRoot: the process that undoes was started without a root, and the folder that
// was changed is not where it was.
var errNoRoot = errors.New("its recorded folder is not there; name the folder that it is now, also a copy or a restored backup")

// locate finds the file that a resource stands for.
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

// Settle puts in order what an interrupted change left, makes what is there durable, and
// returns its version: who did the change may have died before that, and what is
// concluded from the version is going to be durable. A version that cannot be known, since its root is not open
// here or its path leads elsewhere by now, is empty; Plan says why.
func (s scheme) Settle(ctx context.Context, c effect.Change) (effect.Token, error) {
	now, err := s.settled(ctx, c)
	if elsewhere(err) { // somebody replaced its folder by a link meanwhile
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("settle %s: %w", c.Resource, err)
	}
	return now, nil
}

func (s scheme) settled(ctx context.Context, c effect.Change) (effect.Token, error) {
	w, err := s.settle(ctx, c)
	if w == nil || err != nil {
		return "", err
	}
	if err := w.harden(ctx); err != nil {
		return "", err
	}
	now, err := w.look(ctx, w.target, hashing)
	if unreadable(err) {
		return "", nil
	}
	return now.Token(), err
}

// settle is Settle without making anything durable, and without the version. It returns
// nothing where there is no way to the file: Plan reports it for this resource, and others must go on.
func (s scheme) settle(ctx context.Context, c effect.Change) (*swap, error) {
	w, _, err := s.swap(c)
	if err != nil {
		return nil, nil
	}
	err = w.straight(ctx, w.target)
	if elsewhere(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = w.settle(ctx)
	if elsewhere(err) || errors.Is(err, disk.ErrType) { // its folder is none by now
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// elsewhere reports whether a path no longer leads where it did.
func elsewhere(err error) bool { return errors.Is(err, errAlias) || errors.Is(err, disk.ErrEscape) }
