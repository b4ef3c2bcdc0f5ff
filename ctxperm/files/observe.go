package files

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// ObservedFiles are files that another process will change for the call, such
// as an MCP server. Their content is stored, and a revert restores it as for a
// handle's change. The post-images are unknown until the process has finished.
// So a crash meanwhile leaves an in-doubt call until a check of the files.
type ObservedFiles struct {
	permit  ctxperm.Permit
	files   *Files
	changes []effect.Change
	paths   []string
	before  []FilePreImage
}

// Observe records the current state of some paths and authorizes a write of
// each. The record is durable when it returns. It does not store the entries of
// directories. The caller must call RecordVersions after the changes.
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
		before := f.preImage(p, path, was, blob)
		if info, err := f.site.lstat(ctx, parentOf(path)); err == nil && info.Type == disk.TypeDir {
			before.folder = info.Mtime
		}
		e.before = append(e.before, before)
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

// preImage returns a captured state, for a comparison after the change.
func (f *Files) preImage(p ctxperm.Permit, path string, was state, blob *journal.Blob) FilePreImage {
	b := FilePreImage{Version: was.Version, Path: path, Mtime: was.info.Mtime}
	if blob != nil {
		ref, keep := blob.Ref(), contexts.PermitCall(p).Config().Recorder.Journal()
		b.Open = func() (io.ReadCloser, error) { return keep.OpenContent(context.Background(), ref) }
	}
	if was.Type == typeFile && was.info.Links > 1 {
		b.inode = was.info.Inode
	}
	return b
}

// expected returns a change whose post-image is not known yet.
func expected(f *Files, resource string, was state, blob *journal.Blob) (effect.Change, error) {
	c, err := change(resource, newStage(f.site.host), was.record(blob), nil, was.Token(), "", nil)
	c.Kind = kindWrite
	return c, err
}

// RecordVersions records the current versions.
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

// RecordChanges is RecordVersions with the new content: a revert can then merge
// what others change later, and restores a hard link that the change broke. It
// records the changes anew, with both versions, before the announced ones count
// as not made. So a crash in between leaves no change unrecorded.
func (e *ObservedFiles) RecordChanges(ctx context.Context) error {
	if e == nil || len(e.changes) == 0 {
		return nil
	}
	defer e.permit.End()
	call := contexts.PermitCall(e.permit)
	if call == nil {
		return ctxperm.ErrClosed
	}
	recorder := call.Config().Recorder
	found := NewDetectedChanges(recorder.Host(), recorder.Journal())
	err := e.linkNames(ctx)
	if err == nil {
		err = found.detect(ctx, e.files.name, e.files.site.root, e.before)
	}
	if err == nil {
		err = found.record(ctx, call)
	}
	if err != nil {
		return errors.Join(err, e.RecordVersions(ctx))
	}
	for _, c := range e.changes {
		e.permit.RecordVersions(c.N, c.Pre)
	}
	return nil
}

// linkNames finds another name of each file that had several.
func (e *ObservedFiles) linkNames(ctx context.Context) error {
	names := map[uint64][]string{}
	for _, b := range e.before {
		if b.inode != 0 {
			names[b.inode] = nil
		}
	}
	if len(names) == 0 {
		return nil
	}
	if err := e.files.site.collect(ctx, ".", names); err != nil {
		return err
	}
	for i, b := range e.before {
		for _, name := range names[b.inode] {
			if b.inode != 0 && name != b.Path {
				e.before[i].HardLink = name
				break
			}
		}
	}
	return nil
}
