package files

import (
	"context"
	"errors"
	"io/fs"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/revert/effect"
)

// settle puts in order what a swap left that died at any point. It may die
// itself and be run again. What is under the draft name is always ours, half
// written or whole, and is removed unless a mark stands beside it (swap_nonatomic.go). Under the stage name there is, by what the
// swap was to do:
//
//	swap      stage                target   means                          done
//	any       nothing              any      not begun, finished, given up  nothing
//	take      pre, nobody writes   any      displaced, content is kept     remove stage
//	take      anything else        free     displaced, somebody else's     rename back
//	take      anything else        taken    displaced, somebody else's     save stage
//	replace   pre, nobody writes   any      displaced, content is kept     remove stage
//	replace   post, nobody writes  any      ours: not yet exchanged, or
//	                                        exchanged back                 remove stage
//	replace   anything else        post     displaced, somebody else's     exchange back
//	replace   anything else        free     displaced, ours was deleted    rename back
//	replace   anything else        other    displaced, ours was replaced   save stage
//	put       anything             any      no swap leaves that            save stage
//
// Pre and post are told by their tokens. When a version of somebody else equals
// post, which is also in the target or was since overwritten by them, nothing of
// theirs is lost by removing the copy. A directory that is not empty is somebody
// else's. Save moves a file to a visible name beside the target.
func (w *swap) settle(ctx context.Context) error {
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

// disposable reports whether what is staged is a version that is kept elsewhere
// and that nobody is writing to.
func (w *swap) disposable(ctx context.Context, staged disk.Info) (bool, error) {
	//mutant:token
	if w.pre.Same(effect.Absent) {
		return false, nil
	}
	err := w.quiet(ctx, w.stage)
	if errors.Is(err, disk.ErrBusy) || errors.Is(err, fs.ErrPermission) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	st, err := w.look(ctx, w.stage, hashing)
	if unreadable(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	//mutant:token
	return st.same(staged) && (st.Token().Same(w.pre) || st.Token().Same(w.post)), nil
}

// withdraw finds a place for what was displaced and is somebody else's.
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
		return w.putBack(ctx)
	//mutant:token
	case err == nil && now.Token().Same(w.post):
		return w.giveBack(ctx)
	default:
		return w.save(ctx)
	}
}

// harden makes durable what is under the name, or that nothing is. A death between a
// change and its sync leaves what everybody sees and the next power cut takes away.
// Content needs nothing: it was synced before it got the name.
func (w *swap) harden(ctx context.Context) error {
	is, err := w.lstat(ctx, w.target)
	switch {
	case missing(err):
	case err != nil:
		return err
	case is.Type == disk.TypeDir: // its own bits
		if err := w.syncIn(ctx, w.target); err != nil && !gone(err) {
			return err
		}
	}
	if err := w.syncDir(ctx, w.target); err != nil && !gone(err) {
		return err
	}
	return nil
}

// gone reports whether what was to be synced is no directory, or no longer: there is
// nothing in it to be made durable.
func gone(err error) bool { return missing(err) || errors.Is(err, disk.ErrType) }
