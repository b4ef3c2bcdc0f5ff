package files

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// builder returns the target of a change, from the current state and its stored
// content. The zero image means absent.
type builder func(was state, kept *journal.Blob) (fileImage, error)

// fileEdit is one change of one path.
type fileEdit struct {
	path  string
	text  string        // its resource
	was   *state        // already read, with its content in blob; nil: read it now
	asked bool          // whether was is of a file without a writer
	blob  *journal.Blob // content of was; nil: not a file
	build builder
	first func(hostRoot) (disk.Info, error) // the first check of the path, whose result is seen; nil: none

	after     *journal.Blob // part of the new content, for a merge; nil: none
	img       *fileImage    // the target, instead of build
	removes   bool          // the path is removed
	seen      disk.Info     // what an earlier check found; zero: not checked yet
	hardLink  string        // another name of the file that was found
	shared    uint64        // inode that twin also names
	links     uint64        // number of names of the file
	elsewhere int           // number of these names outside the root, or otherwise not visible
}

// blobs returns the content that the change of an edit names.
func (a *fileEdit) blobs() (all []journal.Blob) {
	for _, b := range []*journal.Blob{a.blob, a.after} {
		if b != nil {
			all = append(all, *b)
		}
	}
	return all
}

// plannedEdit is an edit whose change is known and not yet recorded.
type plannedEdit struct {
	change effect.Change
	swap   *swap
	img    fileImage

	folder string       // folder of the times
	times  *folderTimes // nil: the folder has none yet, or keeps its own
	made   bool         // a new folder
}

// editPlan is what alter does with the edits that change something.
type editPlan struct {
	intents []plannedEdit
	changes []effect.Change
	blobs   []journal.Blob
	altered []fileEdit
}

// alter makes the inverses of all edits durable together and then performs them
// in order. If one fails, it records those that were not begun as having had no
// effect.
func (f *Files) alter(ctx context.Context, p ctxperm.Permit, all ...fileEdit) error {
	plan, err := f.intendAll(ctx, p, all)
	if err != nil || len(plan.changes) == 0 {
		return err
	}
	if err := f.approveGit(ctx, p, plan.changes, plan.intents, plan.altered); err != nil {
		return err
	}
	recorded, err := p.RecordChange(ctx, plan.changes, plan.blobs...)
	if err != nil {
		return err
	}
	return f.performAll(ctx, p, recorded, plan.intents)
}

// intendAll reads the current states. For a single edit it does so in one folder
// that it keeps open meanwhile, and no longer: after it the call can wait for an
// approval.
func (f *Files) intendAll(ctx context.Context, p ctxperm.Permit, all []fileEdit) (editPlan, error) {
	if len(all) == 1 {
		var end func()
		f, end = f.near(all[0].path)
		defer end()
	}
	for i := range all {
		if a := &all[i]; a.first != nil {
			var err error
			if a.seen, err = a.first(f.site); err != nil {
				return editPlan{}, err
			}
		}
	}
	if err := f.site.joined(ctx, all); err != nil {
		return editPlan{}, err
	}
	var plan editPlan
	times := newFolders(f.site)
	made := map[string]Version{} // directories that exist by the time they are needed
	for _, a := range all {
		in, err := f.intend(ctx, p, &a, made, times)
		if err != nil {
			return editPlan{}, err
		}
		if in == nil {
			if err := p.Claim(ctx, a.text); err != nil { // the call leaves the version that it found
				return editPlan{}, err
			}
			continue
		}
		plan.intents, plan.changes = append(plan.intents, *in), append(plan.changes, in.change)
		plan.blobs = append(plan.blobs, a.blobs()...)
		a.img = &in.img
		plan.altered = append(plan.altered, a)
		if delete(made, a.path); in.img.Type == typeDir {
			made[a.path] = in.img.Version
		}
	}
	return plan, nil
}

// near returns the files with the folder of a name kept open until end is
// called.
func (f *Files) near(name string) (near *Files, end func()) {
	with := *f
	with.site, end = f.site.pin(name)
	return &with, end
}

// intend reads the current state and creates the change. It returns nil if
// nothing changes.
func (f *Files) intend(ctx context.Context, p ctxperm.Permit, a *fileEdit, made map[string]Version, times *folders) (*plannedEdit, error) {
	f, end := f.near(a.path)
	defer end()
	if err := f.ready(ctx, p, a, made); err != nil {
		return nil, err
	}
	img, err := a.build(*a.was, a.blob)
	if err == nil {
		img, err = f.withOwner(ctx, a.path, img, made)
	}
	if err == nil {
		err = f.site.reversible(ctx, a.path, a.was.Version, img.Version, func(dir string) (disk.Info, error) {
			if v, ok := made[dir]; ok {
				return disk.Info{Perm: v.Perm, Owner: disk.Owner(v.Owner)}, nil
			}
			return f.site.lstat(ctx, dir)
		})
	}
	if err != nil {
		return nil, err
	}
	return f.intent(ctx, p, a, img, times)
}

// intent returns the planned edit from the current state to an image, or nil if
// they are the same.
func (f *Files) intent(ctx context.Context, p ctxperm.Permit, a *fileEdit, img fileImage, times *folders) (*plannedEdit, error) {
	pre, post := a.was.Token(), img.Token()
	if !pre.Known() || !post.Known() {
		return nil, invalid(a.path, "it has more attributes than can be recorded")
	}
	//mutant:token
	if pre.Same(post) && (a.img == nil || !retimes(*a.was, img)) {
		return nil, nil
	}
	stage := newStage(f.site.host)
	was, will := a.was.record(a.blob), img.record().with(img.hardLink)
	a.leave(ctx, p, img, will)
	if a.was.info.Inode == a.shared { // else another process put another file there meanwhile
		was = was.with(a.hardLink)
		if was != nil && a.shared != 0 {
			was.Elsewhere = a.elsewhere
		}
	}
	folder, t, err := times.of(ctx, a, img)
	if err != nil {
		return nil, err
	}
	c, err := change(a.text, stage, was, will, pre, post, t)
	if err != nil {
		return nil, err
	}
	w := newSwap(f.site, a.path, stage, pre, post)
	w.hold = holding(a.was.Version, img.Version, f.site.root.Self().Owner)
	if a.was.Type == typeFile {
		w.time = a.was.info.Mtime
	}
	return &plannedEdit{change: c, swap: w, img: img, folder: folder, times: t, made: img.Type == typeDir && a.was.Type != typeDir}, nil
}

// performAll performs the recorded edits, in order. Many swaps share the syncs
// of their content, one per wave before its first swap. They also share the
// syncs of their directories, which come last: until then the record identifies
// the state of each. A change that lets others in less is durable before the
// next one. A change that lets them in more comes after all that is durable
// (see hold).
func (f *Files) performAll(ctx context.Context, p ctxperm.Permit, recorded []effect.Change, intents []plannedEdit) error {
	if len(recorded) == 1 {
		w := intents[0].swap
		defer w.pinFolder()()
		if err := f.perform(ctx, p, recorded[0], w, intents[0].img); err != nil {
			return err
		}
		return w.retime(ctx, intents)
	}
	var d pendingSyncs
	for _, in := range intents {
		d.deferSync(in.swap)
	}
	err := held(ctx, intents)
	done, now := 0, placeFirst
	for at := 0; at < len(intents); {
		place := intents[at].swap.hold.place()
		if place != now {
			err = errors.Join(err, d.sync(ctx, f.site)[f.site.root])
		}
		now = place
		end := at + f.wave(placed(intents[at:]))
		if err == nil {
			var n int
			n, err = f.ahead(ctx, intents[at:end])
			end = at + n
		}
		for ; at < end; at++ {
			if err != nil {
				if intents[at].swap.from == "" { // else the revert of the call opens it again
					p.RecordVersions(recorded[at].N, recorded[at].Pre)
				}
				continue
			}
			err = f.perform(ctx, p, recorded[at], intents[at].swap, intents[at].img)
			f.tc.Progress(float64(at+1), float64(len(intents)), "")
			if err == nil {
				done++
			} else {
				err = errors.Join(err, dropDrafts(ctx, intents[at+1:end]))
			}
		}
	}
	// A revert at this point also needs this: only a folder with the recorded
	// time gets its previous time.
	err = errors.Join(err, f.site.retime(ctx, intents[:done]))
	return errors.Join(err, d.sync(ctx, f.site)[f.site.root])
}

// held narrows all folders that are opened again after the entries below them.
func held(ctx context.Context, intents []plannedEdit) error {
	for _, in := range slices.Backward(intents) { // parents first
		if !in.swap.hold.between() {
			continue
		}
		if err := in.swap.narrow(ctx); err != nil {
			return err
		}
	}
	return nil
}

// placed returns the leading edits with the same place.
func placed(intents []plannedEdit) []plannedEdit {
	at := slices.IndexFunc(intents, func(in plannedEdit) bool {
		return in.swap.hold.place() != intents[0].swap.hold.place()
	})
	if at < 0 {
		return intents
	}
	return intents[:at]
}

func (f *Files) wave(intents []plannedEdit) int {
	if len(intents) < groupSyncMin || !f.site.root.Features().SyncAll {
		return len(intents)
	}
	return wave(len(intents), func(i int) (*swap, bool) {
		return intents[i].swap, intents[i].img.Type == typeDir
	})
}

// ahead makes the drafts of a wave. If there are many, one sync covers them. It
// returns how many swaps can be performed now. If the drafts exceed the space
// limit, the rest forms another wave.
func (f *Files) ahead(ctx context.Context, wave []plannedEdit) (int, error) {
	many := 0
	for _, in := range wave {
		if in.img.drafts() {
			many++
		}
	}
	if many < groupSyncMin || !f.site.root.Features().SyncAll {
		return len(wave), nil
	}
	n, made := 0, int64(0)
	for ; n < len(wave) && made < maxDraftBytes; n++ {
		if in := wave[n]; in.img.drafts() {
			in.swap.ahead = true
			if err := in.swap.prepare(ctx, in.img); err != nil {
				return len(wave), errors.Join(err, dropDrafts(ctx, wave[:n+1]))
			}
			made += in.swap.ours.info.Size
		}
	}
	if err := f.site.syncAll(ctx); err != nil {
		return len(wave), errors.Join(err, dropDrafts(ctx, wave[:n]))
	}
	for _, in := range wave[:n] {
		in.swap.ready = in.swap.ahead
	}
	return n, nil
}

// dropDrafts removes the drafts of swaps that were not begun.
func dropDrafts(ctx context.Context, intents []plannedEdit) error {
	var errs []error
	for _, in := range intents {
		if in.swap.ahead {
			errs = append(errs, in.swap.clearDraft(ctx))
		}
	}
	return errors.Join(errs...)
}

// ready reads the current state, and stores its content, unless an earlier step
// did. It detects errors before the record that otherwise occur only later.
func (f *Files) ready(ctx context.Context, p ctxperm.Permit, a *fileEdit, made map[string]Version) error {
	path := a.path
	if _, ok := made[parentOf(path)]; !ok {
		parent, err := f.site.lstat(ctx, parentOf(path))
		switch {
		case missing(err):
			return fmt.Errorf("%s: its folder does not exist: %w", path, fs.ErrNotExist)
		case err != nil:
			return refused(err)
		case parent.Type != disk.TypeDir:
			return invalid(path, "what should be its folder is none")
		}
	}
	if a.was != nil {
		if _, ok := made[parentOf(path)]; ok || a.asked {
			return nil
		}
		return unused(path, f.site.quiet(ctx, path))
	}
	into, blob := keeping(func(r io.Reader) (journal.Blob, error) { return p.StoreContent(ctx, r) })
	was, busy, err := f.site.lookAlone(ctx, path, into)
	if err := cmp.Or(unused(path, busy), refused(err)); err != nil {
		return err
	}
	if a.was = &was; was.Type == typeFile {
		a.blob = blob
	}
	return nil
}

// unused returns why a file cannot be replaced, from the answer to the question
// for its writers.
func unused(path string, busy error) error {
	switch {
	case missing(busy):
		return nil
	case errors.Is(busy, disk.ErrBusy):
		return conflict(path, "a program has it open for writing; try again when the program has closed it")
	case errors.Is(busy, fs.ErrPermission):
		return fmt.Errorf("%s has another owner or is unreadable, so remit cannot check whether a program is writing to it: %w", path, busy)
	default:
		return refused(busy)
	}
}

// capture reads the current state and stores its content.
func (f *Files) capture(ctx context.Context, p ctxperm.Permit, path string) (state, *journal.Blob, error) {
	into, blob := keeping(func(r io.Reader) (journal.Blob, error) { return p.StoreContent(ctx, r) })
	was, err := f.site.look(ctx, path, into)
	if err != nil {
		return state{}, nil, refused(err)
	}
	if was.Type != typeFile {
		blob = nil
	}
	return was, blob, nil
}

// kept opens content that was stored for a RecordChange of this call.
func kept(ctx context.Context, p ctxperm.Permit, blob *journal.Blob) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		if data, ok := blob.Inline().Get(); ok {
			return io.NopCloser(bytes.NewReader(data)), nil
		}
		call := contexts.PermitCall(p)
		if call == nil {
			return nil, ctxperm.ErrClosed
		}
		return call.Config().Recorder.Journal().OpenContent(ctx, blob.Ref())
	}
}

// perform runs a recorded swap. If it had no effect, perform records that, so
// that a revert of the call leaves the file to the process that changed it.
func (f *Files) perform(ctx context.Context, p ctxperm.Permit, c effect.Change, w *swap, img fileImage) error {
	err := w.run(ctx, img)
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrConflict) {
		p.RecordVersions(c.N, c.Pre)
		return err
	}
	if serr := w.settle(ctx); serr != nil {
		return errors.Join(err, serr) // recovery finds it by its stage name
	}
	now, lerr := f.site.look(ctx, w.target, hashing)
	//mutant:token
	if lerr == nil && now.Token().Same(c.Pre) {
		p.RecordVersions(c.N, c.Pre)
	}
	return err
}
