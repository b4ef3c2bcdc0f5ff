package files

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/sparse"
	"github.com/remit-dev/remit/revert/journal"
)

// contentSink consumes a file's content and returns its digest.
type contentSink func(r io.Reader) (digest string, err error)

func hashing(r io.Reader) (string, error) {
	h := canon.NewHash()
	buf, giveBack := borrowBuffer()
	defer giveBack()
	if _, err := sparse.Copy(h, r, buf); err != nil {
		return "", err
	}
	return string(h.Digest()), nil
}

// sizedFile is the reader that a look passes to its sink: an open file, with the
// size that it had when the look began.
type sizedFile struct {
	disk.File
	size int64
}

func (f sizedFile) Hole() (int64, error) { return sparse.HoleOf(f.File) }

// small reports whether the content is stored in the batch that names it.
func (f sizedFile) small() bool { return f.size <= journal.InlineMax }

// atOnce returns a reader that reads small content in one step, whatever the
// size of its reads is.
func atOnce(r io.Reader) io.Reader {
	if f, ok := r.(sizedFile); ok && f.small() {
		return bufio.NewReaderSize(f, int(f.size)+1)
	}
	return r
}

// looks bounds how often a file that changes during a read is read again.
const looks = 16

// look reads the state of a name, and the content of a file into the sink. It
// never mixes two versions if writers change size or time. A file that keeps
// changing is ErrConflict.
func (s hostRoot) look(ctx context.Context, name string, into contentSink) (state, error) {
	return (&fileLook{hostRoot: s, name: name, into: into}).read(ctx)
}

// lookAlone is look for a file to which no program may write. It asks for such a
// program first, of the same open file, and returns the answer as busy, without
// the state. If there is none, and no other process can reach the file, the
// state is its last. There is no answer for an absent file, which is
// fs.ErrNotExist.
func (s hostRoot) lookAlone(ctx context.Context, name string, into contentSink) (st state, busy, err error) {
	if _, ok := s.on().(disk.Reopener); !ok {
		if busy = s.quiet(ctx, name); busy == nil {
			st, err = s.look(ctx, name, into)
		}
		return st, busy, err
	}
	if err := s.host.Point(ctx, "files.quiet"); err != nil {
		return state{}, err, nil
	}
	l := fileLook{hostRoot: s, name: name, into: into, alone: true}
	if st, err = l.read(ctx); l.busy != nil {
		return state{}, l.busy, nil
	}
	return st, nil, err
}

// fileLook reads one name.
type fileLook struct {
	hostRoot
	name  string
	into  contentSink
	alone bool
	busy  error // the file has a writer, or may have one; ends the look
}

func (l *fileLook) read(ctx context.Context) (state, error) {
	var err error
	for range looks {
		if err = l.host.Point(ctx, "files.look"); err != nil {
			return state{}, err
		}
		var st state
		if st, err = l.once(); err == nil || l.busy != nil || !moving(err) {
			return st, err
		}
	}
	return state{}, conflict(l.name, "it changes while it is read")
}

func (l *fileLook) once() (state, error) {
	info, err := l.on().Lstat(l.name)
	if missing(err) {
		if l.alone {
			l.busy = err
		}
		return state{}, nil
	}
	if err != nil {
		return state{}, err
	}
	st := state{Version: Version{Type: info.Type.String(), Perm: info.Perm, Owner: Owner(info.Owner)}, info: info}
	switch info.Type {
	case disk.TypeLink:
		st.Perm = 0 // a link has no bits
		st.Target, err = l.on().Readlink(l.name)
	case disk.TypeFile:
		st.Content, st.Xattrs, err = l.content(info)
	case disk.TypeDir, disk.TypeOther:
	}
	if err != nil {
		return state{}, err
	}
	if st.Xattrs == nil {
		if st.Xattrs, err = l.on().Xattrs(l.name); err != nil {
			return state{}, err
		}
	}
	return st, l.stillAs(l.name, info)
}

// stillAs checks that the name leads to the file that was described before, and
// that no process has changed it. So all that was read in between is one
// version.
func (s hostRoot) stillAs(name string, info disk.Info) error {
	again, err := s.on().Lstat(name)
	switch {
	case err != nil:
		return err
	case again.Inode != info.Inode || again.Device != info.Device || again.Perm != info.Perm || again.Owner != info.Owner || again.Type != info.Type:
		return disk.ErrBusy
	case info.Type == disk.TypeFile && (again.Size != info.Size || !again.Mtime.Equal(info.Mtime)):
		return disk.ErrBusy
	}
	return nil
}

// content reads a file, and its attributes if the open file provides them.
func (l *fileLook) content(info disk.Info) (digest string, attrs map[string][]byte, err error) {
	f, err := l.reopen(l.name, info)
	if err != nil {
		if l.alone && errors.Is(err, fs.ErrPermission) {
			l.busy = err
		}
		return "", nil, err
	}
	defer func() { _ = f.Close() }()
	own, ok := f.(disk.OpenMetadata)
	if l.alone && ok {
		//mutant:lease
		if err := own.TryLease(); err != nil && !errors.Is(err, disk.ErrUnsupported) {
			l.busy = err
			return "", nil, err
		}
	}
	if digest, err = l.into(sizedFile{f, info.Size}); err != nil {
		return "", nil, err
	}
	if ok {
		attrs, err = own.Xattrs()
	}
	return digest, attrs, err
}

// reopen opens a file that was just described. It returns disk.ErrBusy if it is
// not that file any more.
func (s hostRoot) reopen(name string, info disk.Info) (disk.File, error) {
	f, err := s.openDescribed(name, info)
	if errors.Is(err, disk.ErrEscape) { // a link replaced it
		err = fmt.Errorf("%w: %w", disk.ErrBusy, err)
	}
	return f, err
}

func (s hostRoot) openDescribed(name string, info disk.Info) (disk.File, error) {
	if r, ok := s.on().(disk.Reopener); ok {
		return r.Reopen(name, info)
	}
	f, err := s.on().Open(name)
	if err != nil {
		return nil, err
	}
	is, err := f.Stat()
	if err == nil && (is.Inode != info.Inode || is.Device != info.Device || is.Size != info.Size || !is.Mtime.Equal(info.Mtime)) {
		err = disk.ErrBusy
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
