package files

import (
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/revert/diff"
)

// rootChangeSet is the part of a change set in one root.
type rootChangeSet struct {
	*Files

	permit  ctxperm.Permit
	times   *folders
	since   time.Time
	wanted  map[string]bool
	absent  map[string]bool      // directories that will be created: nothing is below them
	stays   map[string]Version   // files with several names that stay unchanged
	folders map[string]disk.Info // the target state of folders that change
	altered []fileEdit
	intents []plannedEdit
}

// survey finds the necessary changes. Removals come first, deepest first. Then
// creations and updates follow, topmost first. Folders that only let in less
// come before all that, and those that let in more after it (see hold).
func (s *rootChangeSet) survey(ctx context.Context, wanted []DesiredFile) error {
	for _, w := range wanted {
		s.wanted[w.Path] = true
		if w.Type == typeDir && !w.Mtime.IsZero() {
			s.times.left[w.Path] = w.Mtime
		}
	}
	for _, w := range wanted {
		if w.Path == "." { // the configuration of the root determines its attributes
			continue
		}
		if err := s.want(ctx, w); err != nil {
			return err
		}
	}
	me := s.site.root.Self().Owner
	place := func(a fileEdit) int { return holding(a.was.Version, a.img.Version, me).place() }
	slices.SortStableFunc(s.altered, func(a, b fileEdit) int {
		switch at := place(a); {
		case at != place(b):
			return at - place(b)
		case at == placeLast:
			return strings.Count(b.path, "/") - strings.Count(a.path, "/")
		case a.removes != b.removes && a.removes:
			return -1
		case a.removes != b.removes:
			return 1
		case a.removes:
			return strings.Count(b.path, "/") - strings.Count(a.path, "/")
		default:
			return strings.Count(a.path, "/") - strings.Count(b.path, "/")
		}
	})
	s.join(wanted)
	return s.site.joined(ctx, s.altered)
}

// want plans the changes that make one path as the program left it.
func (s *rootChangeSet) want(ctx context.Context, w DesiredFile) error {
	now, err := s.now(ctx, w.Path)
	if err != nil {
		return err
	}
	if w.Type == "" {
		_, err := s.remove(ctx, w.Path, now)
		return err
	}
	if now.Type == disk.TypeDir && (w.Type != typeDir || w.Replaced) {
		left, err := s.clear(ctx, w.Path, w.Type == typeDir)
		if err != nil {
			return err
		}
		if left && w.Type != typeDir {
			return invalid(w.Path, "a socket, a pipe or a device is in it, which could not be made again")
		}
	}
	s.absent[w.Path] = w.Type == typeDir && now.Type != disk.TypeDir
	img, err := wantedImage(w)
	if err != nil {
		return err
	}
	img.retimed = w.Type == typeDir && now.Type == disk.TypeDir && s.sets(w, now)
	same, err := s.alike(ctx, w, now, img)
	if same || err != nil {
		return err
	}
	if err := s.ours(ctx, w, now); err != nil {
		return err
	}
	return s.alter1(ctx, w.Path, now, img)
}

// now describes the current file of a path. There is nothing below a path that
// is not a directory. There is nothing below a symbolic link either, because
// the path does not lead through it.
func (s *rootChangeSet) now(ctx context.Context, name string) (disk.Info, error) {
	if _, err := s.resource(name); err != nil {
		return disk.Info{}, err
	}
	if s.absent[path.Dir(name)] {
		s.absent[name] = true
		return disk.Info{}, nil
	}
	info, err := s.site.lstat(ctx, name)
	if missing(err) || elsewhere(err) {
		return disk.Info{}, nil
	}
	return info, refused(err)
}

// sets reports whether the program chose the time of a folder. Any other new
// time follows from added or removed names, whose changes record it.
func (s *rootChangeSet) sets(w DesiredFile, now disk.Info) bool {
	return !w.Mtime.IsZero() && !w.Mtime.Equal(now.Mtime) && (w.Mtime.Before(s.since) || w.Mtime.After(s.site.host.Now()))
}

// alike reports whether the path already is as desired.
func (s *rootChangeSet) alike(ctx context.Context, w DesiredFile, now disk.Info, img fileImage) (bool, error) {
	if now.Type.String() != w.Type {
		return false, nil
	}
	if now.Type == disk.TypeFile && (now.Perm&^asProgram != img.Perm || !now.Mtime.Equal(w.Mtime)) {
		return false, nil // content that need not be read yet
	}
	was, err := s.site.look(ctx, w.Path, hashing)
	if err != nil {
		return false, refused(err)
	}
	//mutant:token
	same := was.Token().Same(img.retaining(was.Version).Token()) && !retimes(was, img)
	if same && w.Inode != 0 {
		s.stays[w.Path] = was.Version
	}
	return same, nil
}

// ours refuses a path that another process touched while the program ran. A
// file can start as another one whose name is free now. Either the program
// moved it, or another process removed that name. The time of its directory
// tells which.
func (s *rootChangeSet) ours(ctx context.Context, w DesiredFile, now disk.Info) error {
	if now.Type == 0 && w.Copied && !s.absent[w.Path] && !s.absent[path.Dir(w.Path)] {
		parent, err := s.site.lstat(ctx, parentOf(w.Path))
		if err != nil {
			return refused(err)
		}
		//mutant:check
		if s.touched(parent) {
			return conflict(w.Path, "its directory was changed while the program ran, and it may have been removed there")
		}
	}
	//mutant:check
	if s.touched(now) {
		return conflict(w.Path, "it was changed while the program ran")
	}
	return nil
}

func (s *rootChangeSet) touched(info disk.Info) bool {
	return info.Type != 0 && !info.Ctime.IsZero() && !info.Ctime.Before(s.since)
}

// remove plans to remove a path and everything below it. A socket, a pipe or a
// device could not be made again, so it stays, with the folders above it. left
// reports whether one does.
func (s *rootChangeSet) remove(ctx context.Context, name string, now disk.Info) (left bool, err error) {
	switch {
	case now.Type == 0:
		return false, nil
	case now.Type == disk.TypeOther:
		return true, nil
	case now.Type == disk.TypeDir:
		if left, err = s.clear(ctx, name, false); left || err != nil {
			return left, err
		}
	case s.touched(now):
		return false, conflict(name, "it was changed while the program ran")
	}
	return false, s.alter1(ctx, name, now, fileImage{})
}

// clear plans to remove the entries of a directory, except the desired ones. left
// is that of remove.
func (s *rootChangeSet) clear(ctx context.Context, dir string, keep bool) (left bool, err error) {
	found, err := s.site.entries(ctx, dir)
	if err != nil {
		return false, refused(err)
	}
	for _, e := range found {
		name := path.Join(dir, e.Name)
		if keep && s.wanted[name] {
			continue
		}
		if _, err := s.resource(name); err != nil {
			return false, err
		}
		stays, err := s.remove(ctx, name, e)
		if err != nil {
			return false, err
		}
		left = left || stays
	}
	return left, nil
}

// alter1 adds one edit and stores the content that it displaces.
func (s *rootChangeSet) alter1(ctx context.Context, name string, now disk.Info, img fileImage) error {
	text, err := s.resource(name)
	if err != nil {
		return err
	}
	a := fileEdit{path: name, text: text, was: &state{}, removes: img.Type == ""}
	if now.Type != 0 {
		was, blob, err := s.capture(ctx, s.permit, name)
		if err != nil {
			return err
		}
		//mutant:token
		if !was.exists() || !was.same(now) {
			return conflict(name, "it was replaced while the program's changes were looked at")
		}
		if was.Type == disk.TypeOther.String() {
			return invalid(name, "it is neither a file nor a link nor a directory, and could not be made again")
		}
		a.was, a.blob = &was, blob
		img.Version = img.retaining(was.Version)
	}
	if err := s.site.reversible(ctx, name, a.was.Version, img.Version, s.folder(ctx)); err != nil {
		return err
	}
	a.img = &img
	s.altered = append(s.altered, a)
	if img.Type == typeDir {
		s.folders[name] = disk.Info{Perm: img.Perm, Owner: disk.Owner(img.Owner)}
	}
	return nil
}

// folder returns the future state of a folder, as far as its entries inherit
// it.
func (s *rootChangeSet) folder(ctx context.Context) func(string) (disk.Info, error) {
	return func(dir string) (disk.Info, error) {
		if is, ok := s.folders[dir]; ok {
			return is, nil
		}
		return s.site.lstat(ctx, dir)
	}
}

// draft creates the change of an edit.
func (s *rootChangeSet) draft(ctx context.Context, a *fileEdit) (*plannedEdit, error) {
	in, err := s.intent(ctx, s.permit, a, *a.img, s.times)
	if err == nil && in == nil {
		err = invalid(a.path, "it would not change") // alike has reported a difference
	}
	return in, err
}

// wantedImage returns the target of a path. Content that a program chose does
// not inherit setuid and setgid.
func wantedImage(w DesiredFile) (fileImage, error) {
	img := fileImage{Version: w.Version, mtime: w.Mtime, open: w.Open, again: w.Same}
	switch w.Type {
	case typeLink:
		img.Perm = 0
		return img, nil
	case typeDir:
		return img, nil
	case typeFile:
	default:
		return fileImage{}, invalid(w.Path, "it is neither a file nor a link nor a directory")
	}
	img.left, img.Version = img.Version, img.unprivileged()
	r, err := w.Open()
	if err != nil {
		return fileImage{}, err
	}
	defer func() { _ = r.Close() }()
	img.Content, err = hashing(r)
	return img, err
}

// retimes reports whether only the time of a file differs.
func retimes(was state, img fileImage) bool {
	if img.retimed {
		return was.Type == typeDir
	}
	return was.Type == typeFile && !img.mtime.IsZero() && !was.info.Mtime.Equal(img.mtime)
}

// join makes several names of one new file share it: all names but the first
// become links. They are one file. So attributes that the program could not
// change at one name apply to all.
func (s *rootChangeSet) join(wanted []DesiredFile) {
	inode := map[string]uint64{}
	first, is := map[uint64]string{}, map[uint64]Version{}
	for _, w := range wanted {
		if w.Inode == 0 || w.Type != typeFile {
			continue
		}
		inode[w.Path] = w.Inode
		if v, stays := s.stays[w.Path]; stays { // precedes all others
			first[w.Inode], is[w.Inode] = w.Path, v
		}
	}
	for _, a := range s.altered {
		if n := inode[a.path]; n != 0 && a.img.again && is[n].Type == "" {
			is[n] = a.img.Version
		}
	}
	for i := range s.altered {
		a := &s.altered[i]
		n := inode[a.path]
		if n == 0 {
			continue
		}
		if v := is[n]; v.Content == a.img.Content && v.Owner == a.img.Owner {
			a.img.Version = v
		}
		if first[n] == "" {
			first[n] = a.path
			continue
		}
		a.img.hardLink = first[n]
	}
}

// delta returns the diff of one edit before it is performed.
func (f *Files) delta(in plannedEdit, a fileEdit) (diff.Delta, error) {
	before, err := a.was.record(nil).resourceVersion(in.change.Pre)
	if err != nil {
		return diff.Delta{}, err
	}
	after, err := in.img.record().resourceVersion(in.change.Post)
	if err != nil {
		return diff.Delta{}, err
	}
	if a.blob != nil {
		before = before.From(func(context.Context) (io.ReadCloser, error) { return f.site.pinned(a.path, *a.was) })
	}
	if in.img.open != nil {
		after = after.From(func(context.Context) (io.ReadCloser, error) { return in.img.open() })
	}
	return diff.Delta{Resource: in.change.Resource, Before: before, After: after}, nil
}

var errNoHardLink = errors.New("there is no such file to share")

// draftHardLink makes the draft another name of a file that equals the image. It
// checks before that, because the folder of the draft may let in others than
// that of the file.
func (w *swap) draftHardLink(ctx context.Context, img fileImage) error {
	was, err := w.look(ctx, img.hardLink, hashing)
	//mutant:token
	if err != nil || !was.Token().Same(img.Token()) || !img.mtime.IsZero() && !was.info.Mtime.Equal(img.mtime) {
		return errors.Join(errNoHardLink, err)
	}
	if err := w.host.Point(ctx, "files.link"); err != nil {
		return err
	}
	if err := w.on().Link(img.hardLink, w.draft); err != nil {
		return errors.Join(errNoHardLink, err)
	}
	now, err := w.lstat(ctx, w.draft)
	//mutant:none only a process that replaces the file between look and link shows it
	if err == nil && was.same(now) && now.Size == was.info.Size && now.Mtime.Equal(was.info.Mtime) && now.Perm == was.info.Perm && now.Owner == was.info.Owner {
		return nil
	}
	return errors.Join(errNoHardLink, err, w.remove(ctx, w.draft))
}
