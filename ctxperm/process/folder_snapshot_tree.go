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
	if b.names++; is.mode&typeMask == typeFile {
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

// sub takes back what add counted.
func (b *folderSize) sub(is fileStamp) {
	if b.names--; is.mode&typeMask == typeFile {
		b.bytes -= is.size
	}
}

func sizeOf(all map[string]entryState) (b folderSize) {
	for _, t := range all {
		_ = b.add(t.root, folderSize{})
	}
	return b
}

// snapshotStore is the stored copy of one folder. The calls that use it hold
// its root, and use it in turn.
type snapshotStore struct {
	rootCopy
	folderIndex

	at        string    // folder with the copy, its list of names, and the markers of calls
	list, log fileStamp // stamps of the list and its log, as this process left them
	lines     int       // of the log
	stored    string    // masks that the list was stored with
	pack      packOf
	packed    string          // pack that the list was stored with
	behind    bool            // the log is written, and not durable yet
	released  bool            // the removal of a marker is not durable yet
	named     bool            // the name of the folder is durable
	unchecked bool            // the copy was not compared with the list yet
	strays    map[string]bool // names in the tree of the copy that are not as in the list
	bulk      folderSize
	logged    map[string]bool // names whose state is not stored yet
	progress  func(done, total int)

	users map[string]*folderCopy // unfinished calls, by take
	ended []*folderCopy          // finished calls that can still be reverted on failure

	diskSyncer
}

const (
	copyFolder = "copy"
	listFile   = "list"
	logPrefix  = "log-"
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
		if err = lock(file, false); !isLocked(err) {
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
func (k *Snapshotter) tree(ctx context.Context, call *callstate.Call, t Folder, o SnapshotOptions) (*folderCopy, error) {
	root, _ := call.Root(t.Root) // checked before
	dir, err := root.Path()
	if err != nil {
		return nil, err
	}
	c := usageMarker{Call: call.Config().ID, Take: host.NewID(call.Config().Recorder.Host(), ""), Name: t.Root, Dir: dir, Root: root.Identity(), Masks: call.Terms().Masks, Joins: o.Join}
	if c.Folder, c.Missing, err = folderOf(root, t.Folder); err != nil {
		return nil, err
	}
	if err := mayAll(call, Folder{t.Root, c.Folder}); err != nil {
		return nil, err
	}
	c.Place = keyOf(dir) + "-" + keyOf(c.Folder)
	one := &folderCopy{usageMarker: c, root: root, turn: k.turnOf(c.Place)}
	if err := one.take(ctx); err != nil {
		return nil, err
	}
	defer one.give()
	if one.snapshotStore, err = k.storeFor(c); err != nil {
		return nil, err
	}
	one.progress = o.Progress
	defer func() { one.progress = nil }()
	point := call.Config().Recorder.Host().Point
	if err := point(ctx, "process.keep"); err != nil {
		return nil, err
	}
	if err := one.fill(ctx, &k.driver, o.Late, call.Config().Recorder.Host().Now()); err != nil {
		return nil, err
	}
	if err := point(ctx, "process.hold"); err != nil {
		return nil, err
	}
	if err := one.hold(); err != nil {
		return nil, err
	}
	one.join()
	return one, nil
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
// moves it aside for its recovery. Other calls of this process may rely on it.
func (k *Snapshotter) storeFor(c usageMarker) (*snapshotStore, error) {
	at := filepath.Join(k.cfg.Dir, c.Place)
	k.mu.Lock()
	s := k.known[c.Place]
	k.mu.Unlock()
	if s != nil && len(s.users) > 0 {
		return s, nil
	}
	left, err := markersIn(at)
	if err != nil {
		return nil, err
	}
	if len(left) > 0 {
		if err := os.Rename(at, at+"."+left[0].Take); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(filepath.Join(at, copyFolder), 0o700); err != nil {
		return nil, err
	}
	k.clear(c.Place)
	if s == nil || !s.current() {
		if s != nil {
			s.close()
		}
		s = openStore(at, filepath.Join(c.Dir, c.Folder))
		s.watched = watches && k.cfg.Watch && !c.Missing
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
		if !e.IsDir() || e.Name() == but {
			continue
		}
		if _, err := os.Lstat(filepath.Join(k.cfg.Dir, e.Name(), listFile)); err != nil {
			continue
		}
		if is, err := e.Info(); err == nil { // each call adds a marker
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
	left, err := markersIn(at)
	if (err != nil || len(left) > 0) && !strings.Contains(name, ".") || lock(gate, false) != nil {
		return false
	}
	return sandbox.Discard(at) == nil
}
