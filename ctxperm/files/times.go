package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
)

// folderTimes holds the modification times of a folder before and after a call
// changed names in it. A change records the times of the folder of its name. A
// change of a folder that stays one records those of that folder.
//
// The time is not part of any version, because any process that adds a name
// changes it. So a revert restores it only if it is still the one that the call
// left.
type folderTimes struct {
	Was  mtime `json:"was"`
	Will mtime `json:"will"`
}

func mtimeOf(t time.Time) mtime { return mtime{Sec: t.Unix(), Nsec: int64(t.Nanosecond())} }

func (m mtime) time() time.Time { return time.Unix(m.Sec, m.Nsec).UTC() }

// folders holds the times of the folders that one batch of edits changes.
type folders struct {
	hostRoot
	left  map[string]time.Time // by folder: the time that a program left; missing: the time of the call
	known map[string]*folderTimes
}

func newFolders(s hostRoot) *folders {
	return &folders{hostRoot: s, left: map[string]time.Time{}, known: map[string]*folderTimes{}}
}

// of returns the folder of an edit and its times. A folder that does not exist
// yet has none: its own change records its time.
func (f *folders) of(ctx context.Context, a *fileEdit, img fileImage) (dir string, t *folderTimes, err error) {
	dir = parentOf(a.path)
	if a.was.Type == typeDir && img.Type == typeDir {
		dir = a.path
		if _, ok := f.left[dir]; !ok {
			return dir, nil, nil
		}
	}
	t = f.known[dir]
	if t == nil {
		info, err := f.lstat(ctx, dir)
		if missing(err) || elsewhere(err) || err == nil && info.Type != disk.TypeDir {
			return dir, nil, nil
		}
		if err != nil {
			return dir, nil, refused(err)
		}
		t = &folderTimes{Was: mtimeOf(info.Mtime), Will: mtimeOf(info.Mtime)}
		if left, ok := f.left[dir]; ok {
			t.Will = mtimeOf(left)
		}
		f.known[dir] = t
	}
	// New content under an existing name is no change of the folder, although
	// the exchange of files changes its time in the kernel.
	if _, ok := f.left[dir]; !ok && a.was.exists() != (img.Type != "") {
		t.Will = mtimeOf(f.host.Now())
	}
	return dir, t, nil
}

// retime sets the times of folders after all names in them have their final
// state.
func (s hostRoot) retime(ctx context.Context, intents []plannedEdit) error {
	want := map[string]time.Time{}
	for _, in := range intents {
		if in.times != nil {
			want[in.folder] = in.times.Will.time()
		}
		if in.made && !in.img.mtime.IsZero() {
			want[in.swap.target] = in.img.mtime
		}
	}
	for dir, t := range want {
		// Only the kernel can set the time of a folder of another owner.
		if err := s.setTime(ctx, dir, t); err != nil && !errors.Is(err, fs.ErrPermission) {
			return refused(err)
		}
	}
	return nil
}

// setTime sets the time of a folder. It does nothing if the folder is gone, or
// if a link or a file replaced it or a parent.
func (s hostRoot) setTime(ctx context.Context, dir string, t time.Time) error {
	if err := s.host.Point(ctx, "files.retime"); err != nil {
		return err
	}
	info, err := s.on().Lstat(dir)
	if err == nil && info.Type == disk.TypeDir && !info.Mtime.Equal(t) {
		err = s.on().SetMtime(dir, t)
	}
	if missing(err) || elsewhere(err) || errors.Is(err, disk.ErrType) || errors.Is(err, disk.ErrUnsupported) {
		return nil
	}
	return err
}

// timesOf returns for each folder the time before the first of some changes,
// and the time that the last one left. The changes are sorted oldest first. The
// keys are resources.
func timesOf(changes []effect.Change) map[string]folderTimes {
	all := map[string]folderTimes{}
	for _, c := range changes {
		inv, err := readInverse(c)
		if err != nil || inv.Folder == nil {
			continue
		}
		key := inv.folder(c.Resource)
		t, ok := all[key]
		if !ok {
			t.Was = inv.Folder.Was
		}
		t.Will = inv.Folder.Will
		all[key] = t
	}
	return all
}

// inPlace reports whether the change is of a folder that stays one.
func (v inverse) inPlace() bool {
	return v.Was != nil && v.Will != nil && v.Was.Type == typeDir && v.Will.Type == typeDir
}

// folder returns the resource of the folder whose times the change records.
func (v inverse) folder(resource string) string {
	if v.inPlace() {
		return resource
	}
	r, err := perm.ParseResource(resource)
	if err != nil {
		return ""
	}
	if path.Dir(r.Path()) == "." {
		return fmt.Sprintf("file://%s", r.Root())
	}
	parent, err := perm.FileResource(r.Root(), path.Dir(r.Path()))
	if err != nil {
		return ""
	}
	return parent.String()
}

// back returns the times of a counter-change: the folder gets its time before
// the call, if it has the time that the call left.
func (p *plan) back(ctx context.Context, inv inverse, times map[string]folderTimes) *folderTimes {
	t, ok := times[inv.folder(p.resource)]
	if !ok {
		return nil
	}
	dir := parentOf(p.path)
	if inv.inPlace() {
		dir = p.path
	}
	info, err := p.lstat(ctx, dir)
	if err != nil || mtimeOf(info.Mtime) != t.Will {
		return nil
	}
	return &folderTimes{Was: t.Will, Will: t.Was}
}

// retouched reports whether a folder has the time that the call set, and had
// another one before.
func (p *plan) retouched() bool {
	first, err := readInverse(p.changes[0])
	if err != nil || first.Folder == nil || !first.inPlace() {
		return false
	}
	last, err := readInverse(p.changes[len(p.changes)-1])
	return err == nil && last.Folder != nil && last.inPlace() &&
		last.Folder.Will == mtimeOf(p.now.info.Mtime) && last.Folder.Will != first.Folder.Was
}

// spans holds the folders in which steps change names, with the times that they
// get if all steps in them succeed.
type spans map[rootPath]*folderSpan

type folderSpan struct {
	hostRoot
	will   time.Time
	failed bool
}

// spansOf reads the folders before the first step. A folder with another time
// than planned keeps it, because another process changed a name in it.
func spansOf(ctx context.Context, all []*planStep) spans {
	out := spans{}
	for _, t := range all {
		if t.swap == nil || t.inv.Folder == nil {
			continue
		}
		at := t.folder()
		if out[at] != nil {
			continue
		}
		info, err := t.swap.lstat(ctx, at.path)
		if err == nil && mtimeOf(info.Mtime) == t.inv.Folder.Was {
			out[at] = &folderSpan{hostRoot: t.swap.hostRoot, will: t.inv.Folder.Will.time()}
		}
	}
	return out
}

// folder returns the place of the folder whose times the step records.
func (t *planStep) folder() rootPath {
	if t.inv.inPlace() {
		return rootPath{t.swap.root, t.swap.target}
	}
	return rootPath{t.swap.root, parentOf(t.swap.target)}
}

// setTimes sets the times of folders after the last step. Folders that steps made
// get their previous times.
func (s spans) setTimes(ctx context.Context, all []*planStep) {
	for _, t := range all {
		if t.swap == nil {
			continue
		}
		if span := s[t.folder()]; span != nil && t.err != nil {
			span.failed = true
		}
		if t.err == nil && t.makesDir() && !t.inv.inPlace() && !t.img.mtime.IsZero() {
			s[rootPath{t.swap.root, t.swap.target}] = &folderSpan{hostRoot: t.swap.hostRoot, will: t.img.mtime}
		}
	}
	for at, span := range s {
		if span.failed {
			continue
		}
		if err := span.setTime(ctx, at.path, span.will); err != nil {
			s.report(all, at, err)
		}
	}
}

// report adds to the steps of a folder that its time has changed.
func (s spans) report(all []*planStep, at rootPath, err error) {
	for _, t := range all {
		if t.swap != nil && t.folder() == at && t.res.Why == "" {
			t.res.Why = fmt.Sprintf("the time of the folder %q could not be set back: %v", at.path, err)
		}
	}
}
