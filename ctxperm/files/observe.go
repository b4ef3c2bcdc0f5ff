package files

import (
	"context"
	"errors"
	"slices"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// ObservedFiles are files that somebody else is about to change, such as a server that acts for the call: what they hold is
// kept, and taken back like what a handle changed. What is left is not known before it is there, so a process that dies
// meanwhile leaves a call that nobody can tell the effect of, until the files are looked at.
type ObservedFiles struct {
	permit  ctxperm.Permit
	files   *Files
	changes []effect.Change
	paths   []string
}

// Observe records what is there under some paths, durable when it returns, and asks for each as for a write. Directories
// are kept without what is in them. Whoever expects must say when they Landed.
func (f *Files) Observe(ctx context.Context, paths ...string) (*ObservedFiles, error) {
	paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	var accesses []perm.ResourceAccess
	for _, path := range paths {
		text, err := f.resource(path)
		if err != nil {
			return nil, err
		}
		accesses = append(accesses, perm.Access(perm.Write, text))
	}
	if len(accesses) == 0 {
		return &ObservedFiles{files: f}, nil
	}
	p, err := f.hold(ctx, accesses)
	if err != nil {
		return nil, err
	}
	e := &ObservedFiles{permit: p, files: f, paths: paths}
	var blobs []journal.Blob
	for i, path := range paths {
		if err = f.site.straight(ctx, path); err != nil {
			break
		}
		was, blob, err := f.capture(ctx, p, path)
		if err != nil {
			e.permit.End()
			return nil, err
		}
		if blob != nil {
			blobs = append(blobs, *blob)
		}
		c, err := expected(f, accesses[i].Resource, was, blob)
		if err != nil {
			e.permit.End()
			return nil, err
		}
		e.changes = append(e.changes, c)
	}
	if err == nil {
		e.changes, err = p.RecordChange(ctx, e.changes, blobs...)
	}
	if err != nil {
		e.permit.End()
		return nil, refused(err)
	}
	return e, nil
}

// expected is a change whose version after it is not known yet.
func expected(f *Files, resource string, was state, blob *journal.Blob) (effect.Change, error) {
	c, err := change(resource, newStage(f.site.host), was.record(blob), nil, was.Token(), "", nil)
	c.Kind = kindWrite
	return c, err
}

// RecordVersions notes what is there now.
func (e *ObservedFiles) RecordVersions(ctx context.Context) error {
	if e == nil || len(e.changes) == 0 {
		return nil
	}
	defer e.permit.End()
	var errs []error
	for i, path := range e.paths {
		now, err := e.files.site.look(ctx, path, hashing)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		e.permit.RecordVersions(e.changes[i].N, now.Token())
	}
	return errors.Join(errs...)
}
