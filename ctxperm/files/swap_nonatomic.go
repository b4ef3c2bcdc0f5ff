package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/revert/effect"
)

// The weaker way, for file systems without exchange: look at the target, remove
// it, and pour the complete draft into a new file of its name. A mark beside the
// draft says that it is complete and that pouring has begun, so that a half
// poured target is not taken for somebody else's. What is written between the
// look and the removal is lost; nothing can be done about that here.

func (w *swap) mark() string { return w.stage + ".weak" }

// nonAtomic reports whether an error calls for the weaker way: only where Features
// promise no better one, and for directories, of which it loses nothing since
// only empty ones can be removed.
func (w *swap) nonAtomic(ctx context.Context, err error) bool {
	if !errors.Is(err, disk.ErrUnsupported) {
		return false
	}
	if f := w.root.Features(); !f.Exchange || !f.NoReplace {
		return true
	}
	info, lerr := w.lstat(ctx, w.target)
	return lerr == nil && info.Type == disk.TypeDir
}

// takeNonAtomic removes the target if it is what it should be.
func (w *swap) takeNonAtomic(ctx context.Context) error {
	if err := w.clear(ctx); err != nil {
		return err
	}
	return w.syncDir(ctx, w.target)
}

// pourWeakly gives the target the content of the draft, in the place of pre.
func (w *swap) pourWeakly(ctx context.Context) error {
	if err := w.setMark(ctx); err != nil {
		return err
	}
	//mutant:token
	if !w.pre.Same(effect.Absent) {
		if err := w.clear(ctx); err != nil {
			return w.giveUp(ctx, err)
		}
	}
	if err := w.pour(ctx); err != nil {
		return err
	}
	return w.unmark(ctx)
}

func (w *swap) setMark(ctx context.Context) error {
	if err := w.host.Point(ctx, "files.mark"); err != nil {
		return err
	}
	f, err := w.root.Create(w.mark(), draftPerm)
	if err != nil {
		return err
	}
	_ = f.Close()
	return w.syncDir(ctx, w.target)
}

// clear removes the target after a look.
func (w *swap) clear(ctx context.Context) error {
	if err := w.quiet(ctx, w.target); err != nil && !missing(err) {
		if errors.Is(err, disk.ErrBusy) {
			return conflict(w.target, "a program has it open for writing; try again when the program has closed it")
		}
		return err
	}
	now, err := w.look(ctx, w.target, hashing)
	if err != nil {
		return err
	}
	//mutant:token
	if !now.Token().Same(w.pre) {
		return conflict(w.target, "it was changed")
	}
	err = w.remove(ctx, w.target)
	if occupied(err) {
		return conflict(w.target, "it is not empty")
	}
	return err
}

// pour makes the target like the draft. It must be free.
func (w *swap) pour(ctx context.Context) error {
	whole, err := w.look(ctx, w.draft, hashing)
	if err != nil {
		return err
	}
	img := fileImage{Version: whole.Version, mtime: whole.info.Mtime, open: func() (io.ReadCloser, error) { return w.root.Open(w.draft) }}
	poured := *w
	poured.draft, poured.ahead, poured.ready = w.target, false, false
	err = poured.prepare(ctx, img)
	if occupied(err) {
		return w.giveUp(ctx, conflict(w.target, "it exists by now"))
	}
	if err != nil {
		return err
	}
	return w.syncDir(ctx, w.target)
}

// giveUp removes what a conflict left; after any other error settle looks what
// there is to be removed.
func (w *swap) giveUp(ctx context.Context, why error) error {
	if !errors.Is(why, ErrConflict) {
		return why
	}
	if err := w.unmark(ctx); err != nil {
		return err
	}
	return why
}

// unmark removes what the weaker way needed, the mark last.
func (w *swap) unmark(ctx context.Context) error {
	for _, name := range []string{w.draft, w.mark()} {
		if err := w.remove(ctx, name); err != nil && !missing(err) {
			return err
		}
	}
	return w.syncDir(ctx, w.target)
}

// settleNonAtomic finishes or withdraws a marked swap:
//
//	target                      pre absent          pre known
//	post, pre, somebody else's  remove draft, mark  remove draft, mark
//	a part of the draft         remove it first     remove it, then pour again
//	nothing                     remove draft, mark  pour again
func (w *swap) settleNonAtomic(ctx context.Context) error {
	whole, err := w.lstat(ctx, w.draft)
	if missing(err) {
		return w.unmark(ctx)
	}
	if err != nil {
		return err
	}
	now, err := w.look(ctx, w.target, hashing)
	if err != nil {
		return err
	}
	if err := w.pourTime(ctx, now, whole); err != nil {
		return err
	}
	part, err := w.partial(now)
	if err != nil {
		return err
	}
	if part {
		err := w.remove(ctx, w.target)
		part = !occupied(err)
		if err != nil && part {
			return err
		}
	}
	//mutant:token
	if (part || !now.exists()) && !w.pre.Same(effect.Absent) {
		if err := w.pour(ctx); err != nil {
			return err
		}
	}
	return w.unmark(ctx)
}

// pourTime does what is left when only the time of the target is not yet what it
// should be: that of the draft, or, where what was poured so far looks like pre,
// the one that pre had. Somebody who touched the file meanwhile loses that.
func (w *swap) pourTime(ctx context.Context, now state, whole disk.Info) error {
	want := whole.Mtime
	//mutant:token
	if now.Token().Same(w.pre) {
		want = w.time
	}
	//mutant:token
	known := now.Token().Same(w.pre) || now.Token().Same(w.post)
	if now.Type != typeFile || !known || want.IsZero() || now.info.Mtime.Equal(want) {
		return nil
	}
	if err := w.host.Point(ctx, "files.dress"); err != nil {
		return err
	}
	return w.root.SetMtime(w.target, want)
}

// partial reports whether the target is what pour leaves when it dies: nothing
// that is not in the draft too.
func (w *swap) partial(now state) (bool, error) {
	switch t := now.Token(); {
	//mutant:token
	case !now.exists(), t.Same(w.pre), t.Same(w.post):
		return false, nil
	case now.Type == typeDir:
		return now.Perm == draftDirPerm, nil // only an empty one can be removed
	case now.Type != typeFile:
		return false, nil
	}
	draft, err := w.root.Open(w.draft)
	if err != nil {
		if errors.Is(err, disk.ErrType) {
			return false, nil
		}
		return false, err
	}
	defer func() { _ = draft.Close() }()
	target, err := w.root.Open(w.target)
	if err != nil {
		return false, err
	}
	defer func() { _ = target.Close() }()
	return prefix(target, draft)
}

// prefix reports whether the content of a is where that of b begins.
func prefix(a, b io.Reader) (bool, error) {
	short, full := bufio.NewReader(a), bufio.NewReader(b)
	x, y := make([]byte, chunk), make([]byte, chunk)
	for {
		n, err := io.ReadFull(short, x)
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return false, err
		}
		m, err := io.ReadFull(full, y[:n])
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return false, err
		}
		if m < n || !bytes.Equal(x[:n], y[:n]) {
			return false, nil
		}
		if end {
			return true, nil
		}
	}
}
