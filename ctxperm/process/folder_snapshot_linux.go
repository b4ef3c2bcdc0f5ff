package process

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/sandbox"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
)

// add counts one name.
func (b *folderSize) add(is fileStamp, most folderSize) error {
	if b.names++; is.mode&unix.S_IFMT == unix.S_IFREG {
		b.bytes += is.size
	}
	switch {
	case most.names > 0 && b.names > most.names:
		return fmt.Errorf("%w: it has more than %d names, which is the limit; name the folders that the server works in instead", errFolderTooLarge, most.names)
	case most.bytes > 0 && b.bytes > most.bytes:
		return fmt.Errorf("%w: its files have more than %d bytes, which is the limit; name the folders that the server works in instead", errFolderTooLarge, most.bytes)
	}
	return nil
}

// snapshotStore is the stored copy of one folder.
type snapshotStore struct {
	rootCopy

	at   string    // folder with the copy, its list of names, and the marker of a call
	list fileStamp // stamp of the list, as this process left it

	diskSyncer
}

const (
	copyFolder = "copy"
	listFile   = "list"
	markerFile = "claim"
)

// keyOf returns a short name for a path.
func keyOf(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:12])
}

// await waits for other processes of this user that use a root.
func (k *Snapshotter) await(ctx context.Context, h host.Host, dir string) (*os.File, error) {
	if err := os.MkdirAll(k.cfg.Dir, 0o700); err != nil {
		return nil, err
	}
	if err := private(k.cfg.Dir); err != nil {
		return nil, fmt.Errorf("the folder %s for copies: %w", k.cfg.Dir, err)
	}
	file, err := os.OpenFile(filepath.Join(k.cfg.Dir, keyOf(dir)+".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for rest := time.Millisecond; ; rest = min(2*rest, 50*time.Millisecond) {
		if err = lock(file, false); !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
		over, cancel := h.WithTimeout(ctx, rest, nil)
		<-over.Done()
		cancel()
		if err = context.Cause(ctx); err != nil {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// tree saves the content of one folder, durable when it returns.
func (k *Snapshotter) tree(ctx context.Context, call *callstate.Call, t Folder) (*folderCopy, error) {
	root, _ := call.Root(t.Root) // checked before
	dir, err := root.Path()
	if err != nil {
		return nil, err
	}
	c := usageMarker{Call: call.Config().ID, Take: host.NewID(call.Config().Recorder.Host(), ""), Name: t.Root, Dir: dir, Root: root.Identity(), Masks: call.Terms().Masks}
	if c.Folder, c.Missing, err = folderOf(root, t.Folder); err != nil {
		return nil, err
	}
	if err := mayAll(call, Folder{t.Root, c.Folder}); err != nil {
		return nil, err
	}
	c.Place = keyOf(dir) + "-" + keyOf(c.Folder)
	one := &folderCopy{usageMarker: c, root: root}
	hidden, err := k.driver.hiddenIn(ctx, c, root, call.Config().Recorder.Host().Now())
	if err != nil {
		return nil, err
	}
	if one.masked, err = one.stamps(hidden); err != nil {
		return nil, err
	}
	if one.snapshotStore, err = k.storeFor(c); err != nil {
		return nil, err
	}
	since, err := sandbox.Now()
	if err != nil {
		return nil, err
	}
	point := call.Config().Recorder.Host().Point
	if err := point(ctx, "process.keep"); err != nil {
		return nil, err
	}
	if err := one.fill(ctx, c, hidden, since); err != nil {
		return nil, err
	}
	if err := point(ctx, "process.hold"); err != nil {
		return nil, err
	}
	return one, one.hold()
}

// folderOf returns the path of a folder below a root, which must not contain
// links. If it does not exist, the result is the first missing parent.
func folderOf(root disk.Root, folder string) (_ string, missing bool, err error) {
	if folder == "" || folder == "." {
		return ".", false, nil
	}
	at := ""
	for element := range strings.SplitSeq(folder, "/") {
		at = path.Join(at, element)
		is, err := root.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return at, true, nil
		case err != nil:
			return "", false, err
		case is.Type == disk.TypeLink:
			return "", false, fmt.Errorf("%w: %s is a link; name the folder that it leads to", ctxperm.ErrInvalid, at)
		case is.Type != disk.TypeDir:
			return "", false, fmt.Errorf("%w: %s is no folder", ctxperm.ErrInvalid, at)
		}
	}
	return at, false, nil
}

// mayAll denies a call that may not change all of a folder.
func mayAll(call *callstate.Call, t Folder) error {
	cfg := call.Config()
	if cfg.Class == effect.Pure {
		return nil // may change nothing: the copy checks whether it does
	}
	if cfg.MaxAccesses == nil {
		return fmt.Errorf("%w: the call may change nothing", ctxperm.ErrDenied)
	}
	bound := cfg.MaxAccesses()
	for _, a := range []perm.Action{perm.Read, perm.Write, perm.Delete} {
		if access := perm.Access(a, t.String()); !bound.Covers(access) {
			return fmt.Errorf("%w: the session may not %s all of it, and the server that acts is not held to less", ctxperm.ErrDenied, a)
		}
	}
	return nil
}

// hiddenIn returns the masked names in a folder, relative to it.
func (d *Driver) hiddenIn(ctx context.Context, c usageMarker, root disk.Root, now time.Time) (map[string]bool, error) {
	masks, err := patterns(c.Masks)
	if err != nil {
		return nil, err
	}
	all, err := perm.NewSet(perm.Access(perm.Read, "file://"+c.Name+"/**"))
	if err != nil {
		return nil, err
	}
	names, err := d.hidden(ctx, c.Name, root, all, masks, now)
	if err != nil {
		return nil, err
	}
	hidden := map[string]bool{}
	for _, name := range names {
		switch rest, inside := strings.CutPrefix(name, c.Folder+"/"); {
		case within(name, c.Folder):
			return nil, fmt.Errorf("%w: the policy masks it", ctxperm.ErrDenied)
		case c.Folder == ".":
			hidden[name] = true
		case inside:
			hidden[rest] = true
		}
	}
	return hidden, nil
}

// storeFor finds the copy of a folder. If an interrupted call relies on it, storeFor
// moves it aside for its recovery.
func (k *Snapshotter) storeFor(c usageMarker) (*snapshotStore, error) {
	at := filepath.Join(k.cfg.Dir, c.Place)
	var left usageMarker
	switch err := load(filepath.Join(at, markerFile), &left); {
	case err == nil:
		if err := os.Rename(at, at+"."+left.Take); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(at, copyFolder), 0o700); err != nil {
		return nil, err
	}
	k.clear(c.Place)
	k.mu.Lock()
	s := k.known[c.Place]
	k.mu.Unlock()
	if s == nil || !s.current() {
		s = openStore(at, filepath.Join(c.Dir, c.Folder))
		k.mu.Lock()
		k.known[c.Place] = s
		k.mu.Unlock()
	}
	s.most, s.diskSyncer = folderSize{k.cfg.MaxFiles, k.cfg.MaxBytes}, k.diskSyncer
	return s, nil
}

// maxStores bounds the number of stored copies.
const maxStores = 32

// clear removes the least recently used copies, if there are too many. They
// belong to calls that have ended, or were moved aside long ago. It ignores
// what it cannot remove.
func (k *Snapshotter) clear(but string) {
	found, err := os.ReadDir(k.cfg.Dir)
	if err != nil {
		return
	}
	used := map[string]time.Time{}
	for _, e := range found {
		if is, err := os.Lstat(filepath.Join(k.cfg.Dir, e.Name(), listFile)); err == nil && e.Name() != but {
			used[e.Name()] = is.ModTime()
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(used), func(a, b string) int { return used[a].Compare(used[b]) }) {
		if len(used) < maxStores {
			return
		}
		if k.discard(name) {
			delete(used, name)
		}
	}
}

// discard removes one copy, unless a call holds its root.
func (k *Snapshotter) discard(name string) bool {
	key, _, _ := strings.Cut(name, "-")
	gate, err := os.OpenFile(filepath.Join(k.cfg.Dir, key+".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false
	}
	defer func() { _ = gate.Close() }()
	at := filepath.Join(k.cfg.Dir, name)
	_, err = os.Lstat(filepath.Join(at, markerFile))
	if err == nil && !strings.Contains(name, ".") || lock(gate, false) != nil {
		return false
	}
	return sandbox.Discard(at) == nil
}

// current reports whether no other process has used the stored copy since this
// one did.
func (s *snapshotStore) current() bool {
	is, _, err := stampOf(filepath.Join(s.at, listFile))
	return err == nil && is == s.list
}

// openStore opens a stored copy. If its list cannot be read, everything is
// copied anew.
func openStore(at, root string) *snapshotStore {
	s := &snapshotStore{rootCopy: rootCopy{root: root, dir: filepath.Join(at, copyFolder), seen: map[string]entryState{}}, at: at}
	var marks map[string]mark
	if load(filepath.Join(at, listFile), &marks) == nil {
		for name, m := range marks {
			s.seen[name] = m.entryState()
		}
	}
	return s
}

// fill updates the copy from the folder. Its writes are durable once hold
// returns.
func (s *snapshotStore) fill(ctx context.Context, c usageMarker, hidden map[string]bool, since time.Time) error {
	before := s.seen
	if c.Missing {
		s.seen, s.copied = map[string]entryState{}, nil
	} else if err := s.refresh(ctx, slices.Collect(maps.Keys(hidden)), since); err != nil {
		return err
	}
	if err := s.harden(); err != nil {
		return err
	}
	//mutant:check
	if len(s.copied) == 0 && maps.EqualFunc(before, s.seen, alike) && s.current() {
		return nil
	}
	marks := make(map[string]mark, len(s.seen))
	for name, t := range s.seen {
		marks[name] = t.mark()
	}
	if err := s.store(filepath.Join(s.at, listFile), marks); err != nil {
		return err
	}
	var err error
	s.list, _, err = stampOf(filepath.Join(s.at, listFile))
	return err
}

// alike reports whether the stored state of a name is still valid.
func alike(was, is entryState) bool {
	return was.root == is.root && was.shut == is.shut && (was.fresh || !is.fresh)
}

// hold writes the marker of a call that relies on the copy, durable with the
// copy.
func (t *folderCopy) hold() error {
	err := t.store(filepath.Join(t.at, markerFile), t.usageMarker)
	for _, dir := range []string{t.at, filepath.Dir(t.at)} {
		err = errors.Join(err, with(dir, t.sync))
	}
	return err
}

// release removes the marker.
func (t *folderCopy) release() { _ = os.Remove(filepath.Join(t.at, markerFile)) }
