package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/revert"
)

// alteration is one change of one path.
type alteration struct {
	path  string
	text  string                     // its resource
	was   *state                     // already read, with its content in blob; nil: read it now
	blob  *revert.Blob               // content of was; nil where that is no file
	build func(state) (image, error) // from what is there to what is to be; the zero image is "nothing"
}

// alter makes the way back durable and then does it.
func (f *Files) alter(ctx context.Context, p ctxperm.Permit, a alteration) error {
	if err := f.ready(ctx, a.path); err != nil {
		return err
	}
	if a.was == nil {
		if err := f.capture(ctx, p, &a); err != nil {
			return err
		}
	}
	img, err := a.build(*a.was)
	if err != nil {
		return err
	}
	pre, post := a.was.Token(), img.Token()
	if !pre.Known() || !post.Known() {
		return invalid(a.path, "it has more attributes than can be recorded")
	}
	if pre.Same(post) {
		return p.Claim(ctx, a.text) // what was found there is what the call leaves there
	}
	stage := newStage(f.site.host)
	c, err := change(a.text, stage, a.was.record(a.blob), img.record(), pre, post)
	if err != nil {
		return err
	}
	var blobs []revert.Blob
	if a.blob != nil {
		blobs = append(blobs, *a.blob)
	}
	recorded, err := p.Intend(ctx, []revert.Change{c}, blobs...)
	if err != nil {
		return err
	}
	return f.perform(ctx, p, recorded[0], newSwap(f.site, a.path, stage, pre, post), img)
}

// ready finds out before anything is recorded what would only fail later.
func (f *Files) ready(ctx context.Context, path string) error {
	parent, err := f.site.lstat(ctx, parentOf(path))
	if err != nil {
		if missing(err) {
			return fmt.Errorf("%s: its folder does not exist: %w", path, fs.ErrNotExist)
		}
		return refused(err)
	}
	if parent.Type != disk.TypeDir {
		return invalid(path, "what should be its folder is none")
	}
	err = f.site.quiet(ctx, path)
	switch {
	case missing(err):
		return nil
	case errors.Is(err, disk.ErrBusy):
		return conflict(path, "a program has it open for writing")
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s belongs to somebody else, so that nobody can tell whether a program is writing to it: %w", path, err)
	default:
		return refused(err)
	}
}

// capture reads what is there and keeps its content.
func (f *Files) capture(ctx context.Context, p ctxperm.Permit, a *alteration) error {
	into, blob := keeping(func(r io.Reader) (revert.Blob, error) { return p.Keep(ctx, r) })
	was, err := f.site.look(ctx, a.path, into)
	if err != nil {
		return refused(err)
	}
	a.was = &was
	if was.Type == typeFile {
		a.blob = blob
	}
	return nil
}

// perform runs a recorded swap. One that had no effect is noted as such, so that
// taking the call back leaves the file to whoever changed it.
func (f *Files) perform(ctx context.Context, p ctxperm.Permit, c revert.Change, w *swap, img image) error {
	err := w.run(ctx, img)
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrConflict) {
		p.Landed(c.N, c.Pre)
		return err
	}
	if serr := w.settle(ctx); serr != nil {
		return errors.Join(err, serr) // left to recovery, which finds it by its stage name
	}
	now, lerr := f.site.look(ctx, w.target, hashing)
	if lerr == nil && now.Token().Same(c.Pre) {
		p.Landed(c.N, c.Pre)
	}
	return err
}
