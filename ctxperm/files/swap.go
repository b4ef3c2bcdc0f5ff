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

// swap takes one name from one version to another, either of which may be
// "absent". It is used once.
type swap struct {
	hostRoot
	target string // the name
	stage  string // holds what is complete, or what was displaced
	draft  string // holds what is not complete; nobody else's bytes ever
	pre    effect.Token
	post   effect.Token
	hold   *hold            // of a folder that stays one
	from   effect.Token     // its version once it is held; empty: it is not
	time   time.Time        // that pre had, where that is a file; zero: not known
	ours   state            // what was prepared; known only to the process that did it
	saved  string           // where a version of somebody else was moved
	later  func(dir string) // takes the last sync over; nil: it is done at once
	ahead  bool             // the draft is made ahead of its turn, and synced with others
	ready  bool             // it was made, and synced
}

func newSwap(s hostRoot, target, stage string, pre, post effect.Token) *swap {
	full := path.Join(path.Dir(target), stage)
	return &swap{hostRoot: s, target: target, stage: full, draft: full + ".new", pre: pre, post: post}
}

// run does it. An error that is ErrConflict means that nothing was changed; after
// any other the caller settles.
func (w *swap) run(ctx context.Context, img fileImage) error {
	switch {
	//mutant:token
	case w.post.Same(effect.Absent):
		return w.take(ctx)
	//mutant:token
	case w.pre.Same(effect.Absent):
		return w.put(ctx, img)
	case img.Type == typeDir:
		return w.remake(ctx, img)
	default:
		return w.replace(ctx, img)
	}
}

// remake gives a directory other bits or attributes in place, since its entries
// could not follow it into another one. Where there is none yet, one is put there.
// What somebody does to the bits between look and change is lost; a death between
// two attributes leaves a version that nobody knows, and so a conflict.
func (w *swap) remake(ctx context.Context, img fileImage) error {
	now, err := w.look(ctx, w.target, hashing)
	if err != nil {
		return err
	}
	if now.Type != typeDir {
		return w.replace(ctx, img)
	}
	return w.reshape(ctx, now.Version, img.Version)
}

// reshape gives a directory that still has the expected version another one.
func (w *swap) reshape(ctx context.Context, now, will Version) error {
	//mutant:token
	if !now.Token().Same(w.expected()) {
		return conflict(w.target, "it was changed")
	}
	if err := w.host.Point(ctx, "files.dress"); err != nil {
		return err
	}
	if err := w.redress(now, will); err != nil {
		return err
	}
	if err := w.host.Point(ctx, "files.chmod"); err != nil {
		return err
	}
	if err := w.root.Chmod(w.target, will.Perm); err != nil {
		return err
	}
	if w.later != nil {
		w.later(w.target)
		return nil
	}
	return w.syncIn(ctx, w.target)
}

// redress gives a directory another owner and other attributes. Where its bits would mean
// another group meanwhile, or the group what its list denied it, its owner is alone first, who
// is given no right that only the other owner has. Where names are protected later, they are
// before others may write there.
func (w *swap) redress(was, will Version) error {
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
		if err := w.root.Chmod(w.target, bits); err != nil {
			return err
		}
	}
	if moves {
		if err := w.root.Chown(w.target, will.Owner); err != nil {
			return err
		}
	}
	return w.attribute(w.target, was.Xattrs, will.Xattrs)
}

// finally makes the name durable, which may be left to whoever does many swaps.
func (w *swap) finally(ctx context.Context) error {
	if w.later != nil {
		w.later(parentOf(w.target))
		return nil
	}
	return w.syncDir(ctx, w.target)
}

// expected is the version that is there before the swap, or since narrow.
func (w *swap) expected() effect.Token { return cmp.Or(w.from, w.pre) }

// put gives a free name to something new.
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
		return w.pourWeakly(ctx)
	case err != nil:
		return err
	}
	return w.finally(ctx)
}

// replace exchanges something new for what is there.
func (w *swap) replace(ctx context.Context, img fileImage) error {
	//mutant:order
	if err := w.prepare(ctx, img); err != nil {
		return err
	}
	err := w.rename(ctx, w.draft, w.stage)
	if w.nonAtomic(ctx, err) {
		return w.pourWeakly(ctx)
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
		return w.pourWeakly(ctx)
	case err != nil:
		return err
	}
	return w.finish(ctx, w.giveBack)
}

// take removes what is there, by way of the stage name.
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
	return w.finish(ctx, w.putBack)
}

// finish throws away what was displaced, if it is what should have been, else it
// goes back.
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
		return w.finally(ctx)
	}
	if err := back(ctx); err != nil {
		return err
	}
	if w.saved != "" {
		why += "; a version that had no other place is now " + w.saved
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

// displaced says why what was displaced must go back; "" means that it is what
// was expected and that nobody writes to it. Writers are looked for first: when
// there is none and the file has no other name, nobody can begin to write, and
// the version that is read then is its last.
func (w *swap) displaced(ctx context.Context) (why string, err error) {
	err = w.quiet(ctx, w.stage)
	switch {
	case errors.Is(err, disk.ErrBusy):
		return "a program has it open for writing; try again when the program has closed it", nil
	case errors.Is(err, fs.ErrPermission):
		return "it belongs to somebody else or may not be read, so that nobody can tell whether a program is writing to it", nil
	case err != nil:
		return "", err
	}
	st, err := w.look(ctx, w.stage, hashing)
	if unreadable(err) {
		return "it cannot be read, or changes all the time", nil
	}
	if err != nil {
		return "", err
	}
	//mutant:token
	if !st.Token().Same(w.pre) {
		return "it was changed", nil
	}
	return "", nil
}

// drop removes what was displaced. Of a directory only the removal itself can
// tell whether it is empty.
func (w *swap) drop(ctx context.Context) (why string, err error) {
	err = w.remove(ctx, w.stage)
	if occupied(err) {
		return "it is not empty", nil
	}
	return "", err
}

// rounds bounds how often giveBack yields to somebody who keeps replacing the
// target. After that a version stays beside it: nothing is lost either way.
const rounds = 64

// giveBack undoes an exchange that displaced what it should not have. What then
// comes out of the target should be what was last put in; anything else is newer
// than what was put there, and goes in again. In the end the target holds the
// newest version of somebody else, and the stage our own, which is removed, or
// an older one of somebody else, which is saved.
func (w *swap) giveBack(ctx context.Context) error {
	ours, last := true, w.ours
	for range rounds {
		held, err := w.lstat(ctx, w.stage)
		if err != nil {
			return err
		}
		err = w.exchange(ctx, w.stage, w.target)
		if missing(err) {
			return w.putBack(ctx) // somebody deleted ours: what they had before is all there is
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

// isLast reports whether the stage holds what was last put into the target. Ours
// is only ours while nobody changed it or is about to.
func (w *swap) isLast(ctx context.Context, ours bool, last state) (bool, error) {
	if !ours {
		info, err := w.lstat(ctx, w.stage)
		//mutant:token
		return err == nil && last.same(info), err
	}
	if err := w.quiet(ctx, w.stage); err != nil {
		if errors.Is(err, disk.ErrBusy) || errors.Is(err, fs.ErrPermission) {
			return false, nil
		}
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
	if last.exists() && !last.same(st.info) {
		return false, nil
	}
	//mutant:token
	return st.Token().Same(w.post), nil
}

// putBack gives the target its name again, or saves it where the name is taken.
func (w *swap) putBack(ctx context.Context) error {
	err := w.rename(ctx, w.stage, w.target)
	if occupied(err) {
		return w.save(ctx)
	}
	if err != nil {
		return err
	}
	return w.syncDir(ctx, w.target)
}

// save moves what is under the stage name to a name that people see.
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

// savedName is where save moves the n-th version that it saves for one stage.
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

// cut shortens a text without leaving half a character. What is no text is cut
// where it is.
func cut(s string, n int) string {
	for end := n; end > 0 && end > n-utf8.UTFMax; end-- {
		if utf8.RuneStart(s[end]) {
			return s[:end]
		}
	}
	return s[:n]
}
