package agent

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"sync"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/verify"
)

// resourceView returns what a verifier sees of a call: the files of its roots, and the
// versions of resources of other schemes that the call changed.
func (rt *Runtime) resourceView(open map[string]disk.Root) func([]perm.ResourceAccess, []effect.Change) verify.ResourceView {
	lookup := func(name string) (disk.Root, bool) {
		r, ok := open[name]
		return r, ok
	}
	return func(accesses []perm.ResourceAccess, changes []effect.Change) verify.ResourceView {
		var resources []string
		for _, a := range accesses {
			resources = append(resources, a.Resource)
		}
		w := &fileView{ResourceView: rt.widened(fileInternals.View(lookup, rt.services.Host, rt.journal, resources, changes), changes), changes: changes, atomic: map[string]revert.AtomicScheme{}}
		for _, s := range rt.schemes {
			if a, ok := s.(revert.AtomicScheme); ok {
				for _, c := range changes {
					if c.Scheme == a.Name() {
						w.atomic[c.Resource] = a
					}
				}
			}
		}
		return w
	}
}

// fileView reads files by name, and resources of Atomic schemes by their
// changes.
type fileView struct {
	verify.ResourceView
	changes []effect.Change
	atomic  map[string]revert.AtomicScheme // schemes that changed a resource

	mu   sync.Mutex // never held across a wait
	seen map[string]string
}

// errNoContent says that a resource has no content, so verifiers compare its
// version.
var errNoContent = errors.New("what is not a file has no content to read, only a version")

// Version returns the current version of a resource. The first query for a
// scheme reads all that the call changed in it, once.
func (w *fileView) Version(ctx context.Context, resource string) (string, error) {
	w.mu.Lock()
	version, ok := w.seen[resource]
	w.mu.Unlock()
	if ok && version != "" {
		return version, nil
	}
	a := w.atomic[resource]
	if a == nil {
		return w.ResourceView.Version(ctx, resource)
	}
	own := slices.DeleteFunc(slices.Clone(w.changes), func(c effect.Change) bool { return c.Scheme != a.Name() })
	versions, err := a.Versions(ctx, own)
	if err != nil {
		return "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil {
		w.seen = map[string]string{}
	}
	for i, c := range own {
		w.seen[c.Resource] = string(versions[i])
	}
	if w.seen[resource] == "" {
		return "", errors.New("its version cannot be told: its database is not at hand, or has other columns by now")
	}
	return w.seen[resource], nil
}

// Open reads a file.
func (w *fileView) Open(ctx context.Context, resource string) (io.ReadCloser, error) {
	if w.atomic[resource] != nil {
		return nil, errNoContent
	}
	return w.ResourceView.Open(ctx, resource)
}

// Before reads the pre-image of a file.
func (w *fileView) Before(ctx context.Context, resource string) (io.ReadCloser, error) {
	if w.atomic[resource] != nil {
		return nil, errors.Join(errNoContent, fs.ErrInvalid)
	}
	return w.ResourceView.Before(ctx, resource)
}
