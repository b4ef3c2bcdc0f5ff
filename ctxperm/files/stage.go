package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/sparse"
	"github.com/remit-dev/remit/internal/watch"
)

// fileImage is the target state of a file.
type fileImage struct {
	Version
	mtime    time.Time // zero: the time of the write
	open     func() (io.ReadCloser, error)
	data     []byte  // its content, if that is in memory
	fresh    bool    // new: its folder determines a part of its state
	again    bool    // still the file that it replaces, which a program changed
	left     Version // the version of the program, with attributes that no program can set
	retimed  bool    // a folder that gets a specific time
	hardLink string  // a file to link to, if that equals the image
}

// chunk is the number of bytes written between two scheduling points.
const chunk = 128 << 10

// buffers holds the buffers for copying. Most files are far smaller than a
// chunk, and an allocation for each costs more than the file.
var buffers sync.Pool

// borrowBuffer returns a buffer for a chunk, and a function that returns it.
func borrowBuffer() (buf []byte, giveBack func()) {
	room, ok := buffers.Get().(*[chunk]byte)
	if !ok {
		room = new([chunk]byte)
	}
	return room[:], func() { buffers.Put(room) }
}

// The bits of a draft until it is complete: only its owner can read it.
const (
	draftPerm    = 0o600
	draftDirPerm = 0o700
)

// prepare creates an image under the draft name, complete and synced. No other
// process knows the inode that it returns.
func (w *swap) prepare(ctx context.Context, img fileImage) error {
	if w.ready {
		return nil
	}
	if err := w.host.Point(ctx, "files.draft"); err != nil {
		return err
	}
	defer w.pinFolder()()
	var info disk.Info
	var err error
	switch img.Type {
	case typeFile:
		if img.hardLink != "" {
			err = w.draftHardLink(ctx, img)
		}
		if img.hardLink == "" || errors.Is(err, errNoHardLink) {
			info, err = w.draftFile(ctx, img)
		}
	case typeDir:
		err = w.draftDir(ctx, img)
	case typeLink:
		err = w.draftLink(ctx, img)
	default:
		err = fmt.Errorf("a file of type %q cannot be made", img.Type)
	}
	if err != nil {
		return err
	}
	if info.Type == 0 {
		if info, err = w.lstat(ctx, w.draft); err != nil {
			return err
		}
	}
	w.ours = state{Version: img.Version, info: info}
	return nil
}

// draftFile sets bits and time after the content, since writing changes both.
// It syncs last, so that everything is durable together. It describes the file
// that it made, whatever has its name by now.
func (w *swap) draftFile(ctx context.Context, img fileImage) (disk.Info, error) {
	from, err := img.open()
	if err != nil {
		return disk.Info{}, err
	}
	defer func() { _ = from.Close() }()
	withdraw := func() {}
	if img.hardLink == "" { // else its name can have been that of a link
		withdraw = watch.Announce(path.Base(w.draft))
	}
	f, err := w.on().Create(w.draft, draftPerm)
	if err != nil {
		withdraw()
		return disk.Info{}, err
	}
	defer func() { _ = f.Close() }()
	if err := w.fill(ctx, f, from); err != nil {
		return disk.Info{}, err
	}
	own, ok := f.(metadata)
	if !ok {
		own = named{w.on(), w.draft}
	}
	if err := w.setMetadata(ctx, own, img); err != nil {
		return disk.Info{}, err
	}
	info, err := f.Stat()
	if err != nil || w.ahead {
		return info, err
	}
	if err := w.host.Point(ctx, "files.sync"); err != nil {
		return disk.Info{}, err
	}
	//mutant:barrier
	return info, f.Sync()
}

// fill writes content without blocks of zeros: a sparse file stays sparse.
func (w *swap) fill(ctx context.Context, f disk.File, from io.Reader) error {
	buf, giveBack := borrowBuffer()
	defer giveBack()
	to := sparse.NewWriter(f)
	if _, err := sparse.Copy(to, pointed{from, func() error { return w.host.Point(ctx, "files.write") }}, buf); err != nil {
		return err
	}
	return to.End()
}

// pointed passes a scheduling point before each chunk.
type pointed struct {
	from  io.Reader
	point func() error
}

func (p pointed) Read(buf []byte) (int, error) {
	if err := p.point(); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(p.from, buf)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

func (p pointed) Hole() (int64, error) { return sparse.HoleOf(p.from) }

// metadata is the metadata of one inode: of an open file, or of a name.
type metadata interface {
	Stat() (disk.Info, error)
	Xattrs() (map[string][]byte, error)
	SetXattr(key string, value []byte) error
	RemoveXattr(key string) error
	Chmod(perm fs.FileMode) error
	Chown(o disk.Owner) error
	SetMtime(t time.Time) error
}

// named is the metadata of a name.
type named struct {
	root disk.Root
	name string
}

func (n named) Stat() (disk.Info, error)                { return n.root.Lstat(n.name) }
func (n named) Xattrs() (map[string][]byte, error)      { return n.root.Xattrs(n.name) }
func (n named) SetXattr(key string, value []byte) error { return n.root.SetXattr(n.name, key, value) }
func (n named) RemoveXattr(key string) error            { return n.root.RemoveXattr(n.name, key) }
func (n named) Chmod(perm fs.FileMode) error            { return n.root.Chmod(n.name, perm) }
func (n named) Chown(o disk.Owner) error                { return n.root.Chown(n.name, o) }
func (n named) SetMtime(t time.Time) error              { return n.root.SetMtime(n.name, t) }

// setMetadata sets owner, attributes, bits and time of the draft, in an order in
// which none resets another. Until the last two only its owner has access: its
// bits mask the default list that it got from the folder.
func (w *swap) setMetadata(ctx context.Context, m metadata, img fileImage) error {
	if err := w.host.Point(ctx, "files.dress"); err != nil {
		return err
	}
	if err := setOwner(m, img); err != nil {
		return err
	}
	have, err := m.Xattrs()
	if err != nil {
		return err
	}
	if err := attribute(m, have, img.Xattrs); err != nil {
		return err
	}
	if err := m.Chmod(img.Perm); err != nil {
		return err
	}
	if img.mtime.IsZero() || img.Type != typeFile {
		return nil
	}
	return m.SetMtime(img.mtime)
}

// setOwner sets owner and group of the draft. Another owner gets no right that
// the complete file does not give it.
func setOwner(m metadata, img fileImage) error {
	is, err := m.Stat()
	if err != nil || !img.Owner.Known || Owner(is.Owner) == img.Owner {
		return err
	}
	if bits := is.Perm &^ (0o700 &^ img.Perm); is.Owner.User != img.Owner.User && is.Type != disk.TypeLink && bits != is.Perm {
		if err := m.Chmod(bits); err != nil {
			return err
		}
	}
	return m.Chown(disk.Owner(img.Owner))
}

// attribute replaces the attributes of an inode. It sets the access control list
// last, and removes an unwanted one first.
func attribute(m metadata, was, will map[string][]byte) error {
	for _, key := range sorted(was) {
		if _, ok := will[key]; !ok {
			if err := m.RemoveXattr(key); err != nil {
				return err
			}
		}
	}
	last := func(key string) int { return strings.Count(key, disk.XattrAccess) }
	for _, key := range slices.SortedStableFunc(maps.Keys(differing(will, was)), func(a, b string) int {
		return cmp.Or(last(a)-last(b), strings.Compare(a, b))
	}) {
		if err := m.SetXattr(key, will[key]); err != nil {
			return err
		}
	}
	return nil
}

// draftDir syncs the bits before the directory gets its name. A directory with
// the name and without the bits has an unknown version.
func (w *swap) draftDir(ctx context.Context, img fileImage) error {
	if err := w.on().Mkdir(w.draft, draftDirPerm); err != nil {
		return err
	}
	if err := w.setMetadata(ctx, named{w.on(), w.draft}, img); err != nil || w.ahead {
		return err
	}
	return w.syncIn(ctx, w.draft)
}

// draftLink does not set the time of the link if the system cannot.
func (w *swap) draftLink(ctx context.Context, img fileImage) error {
	if err := w.on().Symlink(img.Target, w.draft); err != nil {
		return err
	}
	if err := w.host.Point(ctx, "files.dress"); err != nil {
		return err
	}
	if err := setOwner(named{w.on(), w.draft}, img); err != nil || img.mtime.IsZero() {
		return err
	}
	err := w.on().SetMtime(w.draft, img.mtime)
	if errors.Is(err, disk.ErrUnsupported) {
		return nil
	}
	return err
}
