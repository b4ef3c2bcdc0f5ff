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

// The non-atomic order, for file systems without exchange: check the target,
// remove it, and copy the complete draft into a new file of its name. A mark
// beside the draft states that the draft is complete and that the copy has
// begun. So a partial target is not mistaken for a file of another process.
// Data written between check and removal is lost; this file system offers no
// way to prevent that.

func (w *swap) mark() string { return w.stage + ".weak" }

// nonAtomic reports whether an error requires the non-atomic order. It does
// only if Features promises no better one, and for directories. For these
// nothing is lost, because only empty ones can be removed.
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

// takeNonAtomic removes the target if it is the expected version.
func (w *swap) takeNonAtomic(ctx context.Context) error {
	if err := w.clear(ctx); err != nil {
		return err
	}
	return w.syncDir(ctx, w.target)
}

// pourNonAtomic copies the content of the draft to the target, in place of pre.
func (w *swap) pourNonAtomic(ctx context.Context) error {
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
	f, err := w.on().Create(w.mark(), draftPerm)
	if err != nil {
		return err
	}
	_ = f.Close()
	return w.syncDir(ctx, w.target)
}

// clear checks and removes the target.
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

// pour makes the target equal to the draft. The target must be free.
func (w *swap) pour(ctx context.Context) error {
	whole, err := w.look(ctx, w.draft, hashing)
	if err != nil {
		return err
	}
	img := fileImage{Version: whole.Version, mtime: whole.info.Mtime, open: func() (io.ReadCloser, error) { return w.on().Open(w.draft) }}
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

// giveUp removes the leftovers of a conflict. After any other error settle
// finds what to remove.
func (w *swap) giveUp(ctx context.Context, why error) error {
	if !errors.Is(why, ErrConflict) {
		return why
	}
	if err := w.unmark(ctx); err != nil {
		return err
	}
	return why
}

// unmark removes the files of the non-atomic order, the mark last.
func (w *swap) unmark(ctx context.Context) error {
	for _, name := range []string{w.draft, w.mark()} {
		if err := w.remove(ctx, name); err != nil && !missing(err) {
			return err
		}
	}
	return w.syncDir(ctx, w.target)
}

// settleNonAtomic completes or withdraws a marked swap:
//
//	target                      pre absent          pre known
//	post, pre, foreign version  remove draft, mark  remove draft, mark
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

// pourTime sets the time of the target if only that differs. It is the time of
// the draft or, if the partial target equals pre, the time of pre. A concurrent
// change of the time by another process is lost.
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
	return w.on().SetMtime(w.target, want)
}

// partial reports whether the target is what an interrupted pour leaves: it
// contains only data of the draft.
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
	draft, err := w.on().Open(w.draft)
	if err != nil {
		if errors.Is(err, disk.ErrType) {
			return false, nil
		}
		return false, err
	}
	defer func() { _ = draft.Close() }()
	target, err := w.on().Open(w.target)
	if err != nil {
		return false, err
	}
	defer func() { _ = target.Close() }()
	return prefix(target, draft)
}

// prefix reports whether the content of a is a prefix of b.
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
