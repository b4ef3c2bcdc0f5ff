package files

import (
	"cmp"
	"context"
	"errors"
	"io/fs"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/revert/effect"
)

// settle completes or withdraws a swap whose process died at any point. It may
// die itself and be run again. A file under the draft name is always our own,
// partial or whole, and is removed unless it has a mark (swap_nonatomic.go).
// The cases for the stage name, by the kind of swap:
//
//	swap      stage                target   means                          done
//	any       nothing              any      not begun, finished, given up  nothing
//	take      pre, no writer       any      displaced, content is kept     remove stage
//	take      anything else        free     displaced, foreign version     rename back
//	take      anything else        taken    displaced, foreign version     save stage
//	replace   pre, no writer       any      displaced, content is kept     remove stage
//	replace   post, no writer      any      ours: not yet exchanged, or
//	                                        exchanged back                 remove stage
//	replace   anything else        post     displaced, foreign version     exchange back
//	replace   anything else        free     displaced, ours was deleted    rename back
//	replace   anything else        other    displaced, ours was replaced   save stage
//	put       anything             any      no swap leaves that            save stage
//
// Tokens identify pre and post. If a version of another process equals post,
// the target also holds it, or that process has overwritten it since. So
// removing the copy loses none of its data. A directory with entries belongs to
// another process. Save moves a file to a visible name beside the target.
func (w *swap) settle(ctx context.Context) error {
	defer w.pinFolder()()
	_, err := w.lstat(ctx, w.mark())
	if err == nil {
		return w.settleNonAtomic(ctx)
	}
	if !missing(err) {
		return err
	}
	if err := w.clearDraft(ctx); err != nil {
		return err
	}
	staged, err := w.lstat(ctx, w.stage)
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	ours, err := w.disposable(ctx, staged)
	if err != nil {
		return err
	}
	if ours {
		err := w.remove(ctx, w.stage)
		if err == nil {
			return w.syncDir(ctx, w.target)
		}
		if !occupied(err) {
			return err
		}
	}
	return w.withdraw(ctx)
}

func (w *swap) clearDraft(ctx context.Context) error {
	if _, err := w.lstat(ctx, w.draft); err != nil {
		if missing(err) {
			return nil
		}
		return err
	}
	if err := w.remove(ctx, w.draft); err != nil {
		return err
	}
	return w.syncDir(ctx, w.target)
}

// disposable reports whether the staged version is stored elsewhere and no
// program writes to it.
func (w *swap) disposable(ctx context.Context, staged disk.Info) (bool, error) {
	//mutant:token
	if w.pre.Same(effect.Absent) {
		return false, nil
	}
	st, busy, err := w.lookAlone(ctx, w.stage, hashing)
	if errors.Is(busy, disk.ErrBusy) || errors.Is(busy, fs.ErrPermission) || unreadable(err) {
		return false, nil
	}
	if err := cmp.Or(busy, err); err != nil {
		return false, err
	}
	//mutant:token
	return st.same(staged) && (st.Token().Same(w.pre) || st.Token().Same(w.post)), nil
}

// withdraw finds a place for a displaced version of another process.
func (w *swap) withdraw(ctx context.Context) error {
	//mutant:token
	if w.pre.Same(effect.Absent) {
		return w.save(ctx)
	}
	now, err := w.look(ctx, w.target, hashing)
	switch {
	case err != nil && !unreadable(err):
		return err
	case err == nil && !now.exists():
		return w.restoreTarget(ctx)
	//mutant:token
	case err == nil && now.Token().Same(w.post):
		return w.reverseExchange(ctx)
	default:
		return w.save(ctx)
	}
}

// syncName makes the current name, or its absence, durable. A crash between a
// change and its sync leaves a visible state that a power cut can remove.
// Content needs no sync here: it was synced before it got the name.
func (w *swap) syncName(ctx context.Context) error {
	is, err := w.lstat(ctx, w.target)
	switch {
	case missing(err):
	case err != nil:
		return err
	case is.Type == disk.TypeDir: // the directory's own bits
		if err := w.syncIn(ctx, w.target); err != nil && !gone(err) {
			return err
		}
	}
	if err := w.syncDir(ctx, w.target); err != nil && !gone(err) {
		return err
	}
	return nil
}

// gone reports whether the directory to sync is missing or not a directory: it
// contains nothing to make durable.
func gone(err error) bool { return missing(err) || errors.Is(err, disk.ErrType) }
