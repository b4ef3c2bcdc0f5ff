package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"
	"unicode/utf8"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/revert/effect"
)

// swap changes one name from one version to another. Either version can be
// "absent". A swap is used once.
type swap struct {
	hostRoot
	target string // the name
	stage  string // name of a complete or displaced file
	draft  string // name of an incomplete file; never holds bytes of another process
	pre    effect.Token
	post   effect.Token
	hold   *hold            // for a folder that stays one
	from   effect.Token     // its version while held; empty: not held
	time   time.Time        // time of pre, if that is a file; zero: unknown
	ours   state            // the prepared file; known only to the process that prepared it
	saved  string           // the name to which a version of another process was moved
	later  func(dir string) // takes over the last sync; nil: run syncs
	ahead  bool             // the draft is made in advance, and synced with others
	ready  bool             // the draft is complete and synced
}

func newSwap(s hostRoot, target, stage string, pre, post effect.Token) *swap {
	s.near = nil // it opens the folder for itself
	full := path.Join(path.Dir(target), stage)
	return &swap{hostRoot: s, target: target, stage: full, draft: full + ".new", pre: pre, post: post}
}

// run performs the swap. An ErrConflict means that nothing was changed. After
// any other error the caller settles.
func (w *swap) run(ctx context.Context, img fileImage) error {
	defer w.pinFolder()()
	switch {
	//mutant:token
	case w.post.Same(effect.Absent):
		return w.take(ctx)
	//mutant:token
	case w.pre.Same(effect.Absent):
		return w.put(ctx, img)
	case img.Type == typeDir:
		return w.updateDir(ctx, img)
	default:
		return w.replace(ctx, img)
	}
}

// pinFolder keeps the folder of the swap open until the returned function is
// called, see hostRoot.pin. It does nothing if it is open already.
func (w *swap) pinFolder() (end func()) {
	if w.near != nil {
		return func() {}
	}
	s, done := w.pin(w.target)
	w.near = s.near
	return func() {
		w.near = nil
		done()
	}
}

// updateDir sets bits or attributes of a directory in place, because its entries
// cannot move into another one. If there is no directory yet, updateDir puts one
// there. A concurrent change of the bits by another process is lost. A crash
// between two attributes leaves an unknown version, which is a conflict.
func (w *swap) updateDir(ctx context.Context, img fileImage) error {
	now, err := w.look(ctx, w.target, hashing)
	if err != nil {
		return err
	}
	if now.Type != typeDir {
		return w.replace(ctx, img)
	}
	return w.setDirVersion(ctx, now.Version, img.Version)
}

// setDirVersion sets a new version of a directory that still has the expected one.
func (w *swap) setDirVersion(ctx context.Context, now, will Version) error {
	//mutant:token
	if !now.Token().Same(w.expected()) {
		return conflict(w.target, "it was changed")
	}
	if err := w.host.Point(ctx, "files.dress"); err != nil {
		return err
	}
	if err := w.changeMetadata(now, will); err != nil {
		return err
	}
	if err := w.host.Point(ctx, "files.chmod"); err != nil {
		return err
	}
	if err := w.on().Chmod(w.target, will.Perm); err != nil {
		return err
	}
	if w.later != nil {
		w.later(w.target)
		return nil
	}
	return w.syncIn(ctx, w.target)
}

// changeMetadata sets another owner and other attributes of a directory. Its bits
// could apply to another group meanwhile, or give the group what its list
// denied. Then first only its owner has access, without a right that only the
// other owner has. If the new version protects names, they are protected before
// others may write there.
func (w *swap) changeMetadata(was, will Version) error {
	moves := will.Owner.Known && was.Owner != will.Owner
	_, listed := was.Xattrs[disk.XattrAccess]
	_, remains := will.Xattrs[disk.XattrAccess]
	bits := was.Perm | will.Perm&fs.ModeSticky
	if moves || listed && !remains {
		bits &^= 0o077
	}
	if was.Owner.User != will.Owner.User {
		bits &^= 0o700 &^ will.Perm
	}
	if bits != was.Perm {
		if err := w.on().Chmod(w.target, bits); err != nil {
			return err
		}
	}
	if moves {
		if err := w.on().Chown(w.target, disk.Owner(will.Owner)); err != nil {
			return err
		}
	}
	return attribute(named{w.on(), w.target}, was.Xattrs, will.Xattrs)
}

// syncOrDefer makes the name durable, or leaves that to the batch of swaps.
func (w *swap) syncOrDefer(ctx context.Context) error {
	if w.later != nil {
		w.later(parentOf(w.target))
		return nil
	}
	return w.syncDir(ctx, w.target)
}

// expected returns the version before the swap, or the held version after
// narrow.
func (w *swap) expected() effect.Token { return cmp.Or(w.from, w.pre) }

// put gives a free name to a new file.
func (w *swap) put(ctx context.Context, img fileImage) error {
	//mutant:order
	if err := w.prepare(ctx, img); err != nil {
		return err
	}
	err := w.rename(ctx, w.draft, w.target)
	switch {
	case occupied(err):
		return w.lost(ctx, w.draft, "it exists by now")
	case w.nonAtomic(ctx, err):
		return w.pourNonAtomic(ctx)
	case err != nil:
		return err
	}
	return w.syncOrDefer(ctx)
}

// replace exchanges a new file for the current one.
func (w *swap) replace(ctx context.Context, img fileImage) error {
	//mutant:order
	if err := w.prepare(ctx, img); err != nil {
		return err
	}
	err := w.rename(ctx, w.draft, w.stage)
	if w.nonAtomic(ctx, err) {
		return w.pourNonAtomic(ctx)
	}
	if err != nil {
		return err
	}
	err = w.exchange(ctx, w.stage, w.target)
	switch {
	case missing(err):
		return w.lost(ctx, w.stage, "it is gone by now")
	case w.nonAtomic(ctx, err):
		if err := w.rename(ctx, w.stage, w.draft); err != nil {
			return err
		}
		return w.pourNonAtomic(ctx)
	case err != nil:
		return err
	}
	return w.finish(ctx, w.reverseExchange)
}

// take removes the current file, by way of the stage name.
func (w *swap) take(ctx context.Context) error {
	err := w.rename(ctx, w.target, w.stage)
	switch {
	case missing(err):
		return conflict(w.target, "it is gone by now")
	case w.nonAtomic(ctx, err):
		return w.takeNonAtomic(ctx)
	case err != nil:
		return err
	}
	return w.finish(ctx, w.restoreTarget)
}

// finish removes the displaced file if it is the expected one. Otherwise it
// moves the file back.
func (w *swap) finish(ctx context.Context, back func(context.Context) error) error {
	why, err := w.displaced(ctx)
	if err != nil {
		return err
	}
	if why == "" {
		why, err = w.drop(ctx)
	}
	if err != nil {
		return err
	}
	if why == "" {
		return w.syncOrDefer(ctx)
	}
	if err := back(ctx); err != nil {
		return err
	}
	if w.saved != "" {
		why += "; a displaced version was moved to " + w.saved
	}
	return conflict(w.target, why)
}

// lost ends a swap that found the target changed before it touched it.
func (w *swap) lost(ctx context.Context, leftover, what string) error {
	if err := w.remove(ctx, leftover); err != nil {
		return err
	}
	return conflict(w.target, what)
}

// displaced returns why the displaced file must go back, or "". It must be the
// expected version, and no program may write to it. The check for writers comes
// first. If there is none and the file has no other name, no program can start
// to write, and the version read after that is its last.
func (w *swap) displaced(ctx context.Context) (why string, err error) {
	st, busy, err := w.lookAlone(ctx, w.stage, hashing)
	switch {
	case errors.Is(busy, disk.ErrBusy):
		return "a program has it open for writing; try again when the program has closed it", nil
	case errors.Is(busy, fs.ErrPermission):
		return "it has another owner or is unreadable, so remit cannot check whether a program is writing to it", nil
	case busy != nil:
		return "", busy
	case unreadable(err):
		return "it cannot be read, or changes all the time", nil
	case err != nil:
		return "", err
	}
	//mutant:token
	if !st.Token().Same(w.pre) {
		return "it was changed", nil
	}
	return "", nil
}

// drop removes the displaced file. Only the removal itself can tell whether a
// directory is empty.
func (w *swap) drop(ctx context.Context) (why string, err error) {
	err = w.remove(ctx, w.stage)
	if occupied(err) {
		return "it is not empty", nil
	}
	return "", err
}

// rounds bounds how often reverseExchange yields to a process that keeps replacing the
// target. After that a version stays beside it. Nothing is lost in either case.
const rounds = 64

// reverseExchange reverses an exchange that displaced an unexpected file. It then
// expects the last file that it put into the target to come out. Any other file
// is newer and goes in again. In the end the target holds the newest version of
// the other process. The stage holds our own version, which is removed, or an
// older one of the other process, which is saved.
func (w *swap) reverseExchange(ctx context.Context) error {
	ours, last := true, w.ours
	for range rounds {
		held, err := w.lstat(ctx, w.stage)
		if err != nil {
			return err
		}
		err = w.exchange(ctx, w.stage, w.target)
		if missing(err) {
			return w.restoreTarget(ctx) // another process deleted our file: only its earlier version remains
		}
		if err != nil {
			return err
		}
		back, err := w.isLast(ctx, ours, last)
		if err != nil {
			return err
		}
		if back && ours {
			if err := w.remove(ctx, w.stage); err != nil {
				return err
			}
			return w.syncDir(ctx, w.target)
		}
		if back {
			break
		}
		ours, last = false, state{Version: Version{Type: held.Type.String()}, info: held}
	}
	return w.save(ctx)
}

// isLast reports whether the stage holds the last file that was put into the
// target. Our file counts as ours only while no other process has changed it or
// can change it.
func (w *swap) isLast(ctx context.Context, ours bool, last state) (bool, error) {
	if !ours {
		info, err := w.lstat(ctx, w.stage)
		//mutant:token
		return err == nil && last.same(info), err
	}
	st, busy, err := w.lookAlone(ctx, w.stage, hashing)
	if errors.Is(busy, disk.ErrBusy) || errors.Is(busy, fs.ErrPermission) || unreadable(err) {
		return false, nil
	}
	if err := cmp.Or(busy, err); err != nil {
		return false, err
	}
	//mutant:token
	if last.exists() && !last.same(st.info) {
		return false, nil
	}
	//mutant:token
	return st.Token().Same(w.post), nil
}

// restoreTarget restores the target's name, or saves the file if the name is taken.
func (w *swap) restoreTarget(ctx context.Context) error {
	err := w.rename(ctx, w.stage, w.target)
	if occupied(err) {
		return w.save(ctx)
	}
	if err != nil {
		return err
	}
	return w.syncDir(ctx, w.target)
}

// save moves the staged file to a visible name.
func (w *swap) save(ctx context.Context) error {
	for n := 1; ; n++ {
		name := savedName(w.target, w.stage, n)
		err := w.rename(ctx, w.stage, name)
		if occupied(err) {
			continue
		}
		if err != nil {
			return err
		}
		w.saved = name
		return w.syncDir(ctx, w.target)
	}
}

// savedName returns the name for the n-th version that save moves for one
// stage.
func savedName(target, stage string, n int) string {
	id := path.Base(stage)[len(StagePrefix):]
	suffix := ".remit-saved-" + id[:min(len(id), 12)]
	if n > 1 {
		suffix += fmt.Sprintf("-%d", n)
	}
	base := path.Base(target)
	if room := 255 - len(suffix); len(base) > room {
		base = cut(base, room)
	}
	return path.Join(path.Dir(target), base+suffix)
}

// cut shortens a text without splitting a character. It cuts invalid text at n
// bytes.
func cut(s string, n int) string {
	for end := n; end > 0 && end > n-utf8.UTFMax; end-- {
		if utf8.RuneStart(s[end]) {
			return s[:end]
		}
	}
	return s[:n]
}
