package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/sparse"
)

// fileImage is the target state of a file.
type fileImage struct {
	Version
	mtime    time.Time // zero: the time of the write
	open     func() (io.ReadCloser, error)
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
	var err error
	switch img.Type {
	case typeFile:
		if img.hardLink != "" {
			err = w.draftHardLink(ctx, img)
		}
		if img.hardLink == "" || errors.Is(err, errNoHardLink) {
			err = w.draftFile(ctx, img)
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
	info, err := w.lstat(ctx, w.draft)
	if err != nil {
		return err
	}
	w.ours = state{Version: img.Version, info: info}
	return nil
}

// draftFile sets bits and time after the content, since writing changes both.
// It syncs last, so that everything is durable together.
func (w *swap) draftFile(ctx context.Context, img fileImage) error {
	from, err := img.open()
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	f, err := w.root.Create(w.draft, draftPerm)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := w.fill(ctx, f, from); err != nil {
		return err
	}
	if err := w.setMetadata(ctx, img); err != nil {
		return err
	}
	if w.ahead {
		return nil
	}
	if err := w.host.Point(ctx, "files.sync"); err != nil {
		return err
	}
	//mutant:barrier
	return f.Sync()
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

// setMetadata sets owner, attributes, bits and time of the draft, in an order in
// which none resets another. Until the last two only its owner has access: its
// bits mask the default list that it got from the folder.
func (w *swap) setMetadata(ctx context.Context, img fileImage) error {
	if err := w.host.Point(ctx, "files.dress"); err != nil {
		return err
	}
	if err := w.setOwner(img); err != nil {
		return err
	}
	have, err := w.root.Xattrs(w.draft)
	if err != nil {
		return err
	}
	if err := w.attribute(w.draft, have, img.Xattrs); err != nil {
		return err
	}
	if err := w.root.Chmod(w.draft, img.Perm); err != nil {
		return err
	}
	if img.mtime.IsZero() || img.Type != typeFile {
		return nil
	}
	return w.root.SetMtime(w.draft, img.mtime)
}

// setOwner sets owner and group of the draft. Another owner gets no right that
// the complete file does not give it.
func (w *swap) setOwner(img fileImage) error {
	is, err := w.root.Lstat(w.draft)
	if err != nil || !img.Owner.Known || Owner(is.Owner) == img.Owner {
		return err
	}
	if bits := is.Perm &^ (0o700 &^ img.Perm); is.Owner.User != img.Owner.User && is.Type != disk.TypeLink && bits != is.Perm {
		if err := w.root.Chmod(w.draft, bits); err != nil {
			return err
		}
	}
	return w.root.Chown(w.draft, disk.Owner(img.Owner))
}

// attribute replaces the attributes of a name. It sets the access control list
// last, and removes an unwanted one first.
func (w *swap) attribute(name string, was, will map[string][]byte) error {
	for _, key := range sorted(was) {
		if _, ok := will[key]; !ok {
			if err := w.root.RemoveXattr(name, key); err != nil {
				return err
			}
		}
	}
	last := func(key string) int { return strings.Count(key, disk.XattrAccess) }
	for _, key := range slices.SortedStableFunc(maps.Keys(differing(will, was)), func(a, b string) int {
		return cmp.Or(last(a)-last(b), strings.Compare(a, b))
	}) {
		if err := w.root.SetXattr(name, key, will[key]); err != nil {
			return err
		}
	}
	return nil
}

// draftDir syncs the bits before the directory gets its name. A directory with
// the name and without the bits has an unknown version.
func (w *swap) draftDir(ctx context.Context, img fileImage) error {
	if err := w.root.Mkdir(w.draft, draftDirPerm); err != nil {
		return err
	}
	if err := w.setMetadata(ctx, img); err != nil || w.ahead {
		return err
	}
	return w.syncIn(ctx, w.draft)
}

// draftLink does not set the time of the link if the system cannot.
func (w *swap) draftLink(ctx context.Context, img fileImage) error {
	if err := w.root.Symlink(img.Target, w.draft); err != nil {
		return err
	}
	if err := w.host.Point(ctx, "files.dress"); err != nil {
		return err
	}
	if err := w.setOwner(img); err != nil || img.mtime.IsZero() {
		return err
	}
	err := w.root.SetMtime(w.draft, img.mtime)
	if errors.Is(err, disk.ErrUnsupported) {
		return nil
	}
	return err
}
