package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// A diskReserve is reserved disk space: a file beside the database. If it is
// incomplete or the disk is full, the journal refuses batches that may have an
// effect after them. Batches that only end or revert begun work may use the
// reserve. So a full disk leaves no call without an end, and a revert needs no
// new space to start. The next opening, or the next effect, fills the reserve
// when there is space again.
type diskReserve string

const (
	reserveName = "reserve"
	reserveSize = 2 << 20 // enough for about twenty reverts of calls

	// spares are empty files, for a file system without free inodes: opening
	// the journal and reverting one call creates as many.
	spares = 8
)

func (r diskReserve) spare(n int) string { return fmt.Sprint(string(r), ".", n) }

func (j *Journal) reserve() diskReserve { return diskReserve(filepath.Join(j.dir, reserveName)) }

// whole reports whether the reserve is complete.
func (r diskReserve) whole() bool {
	info, err := os.Lstat(string(r))
	if err != nil || !info.Mode().IsRegular() || info.Size() < reserveSize {
		return false
	}
	_, err = os.Lstat(r.spare(spares)) // the last file that fill creates, and the first that release removes
	return err == nil
}

// fill completes the reserve. It need not be durable: after a crash the next
// opening checks it.
func (r diskReserve) fill() error {
	if r.whole() {
		return nil
	}
	if err := checkFile(string(r)); err != nil {
		return err
	}
	f, err := os.OpenFile(string(r), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("reserve: %w", err)
	}
	err = allocate(f, reserveSize)
	if errors.Is(err, errors.ErrUnsupported) {
		err = writeFill(f, reserveSize)
	}
	if err != nil { // remove the incomplete reserve
		err = errors.Join(fmt.Errorf("reserve: %w", err), f.Truncate(0))
	}
	for n := 1; n <= spares && err == nil; n++ {
		err = touch(r.spare(n))
	}
	return errors.Join(err, f.Close())
}

func touch(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("reserve: %w", err)
	}
	return f.Close()
}

// writeFill allocates the space by writing bytes that no file system compresses.
func writeFill(f *os.File, size int) error {
	data := make([]byte, size)
	x := uint64(0x9e3779b97f4a7c15)
	for i := range data {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		data[i] = byte(x)
	}
	_, err := f.WriteAt(data, 0)
	return err
}

// release frees the space, and reports whether there was any.
func (r diskReserve) release() bool {
	info, err := os.Lstat(string(r))
	gave := err == nil && info.Size() > 0 && os.Truncate(string(r), 0) == nil
	for n := spares; n > 0; n-- {
		gave = os.Remove(r.spare(n)) == nil || gave
	}
	return gave
}

// errNoRoom refuses a batch whose revert needs space that is not available.
var errNoRoom = errors.New("journal: no space left, nothing was stored: the disk has no space for a revert; free some")

// ends reports whether a batch only ends or reverts begun work: it may use the
// reserve. Records of refused calls are not among these batches, because a
// caller could use up the reserve with them.
func ends(b journal.Batch) bool {
	if len(b.Entries) == 0 {
		return len(b.Claims) == 0
	}
	link := slices.ContainsFunc(b.Entries, func(e record.Entry) bool { return e.Header.Kind == record.KindRevertedBy })
	for _, e := range b.Entries {
		switch e.Header.Kind {
		case record.KindDone, record.KindPostVersions, record.KindFailed, record.KindUnknown, record.KindVerified, record.KindDecided,
			record.KindDropped, record.KindRevoked, record.KindAdopted, record.KindNestEnded,
			record.KindReverting, record.KindState, record.KindReverted, record.KindRevertedTo, record.KindRevertedBy, record.KindErased,
			record.KindAborting, record.KindAborted, record.KindCommitted, record.KindAccepted:
		case record.KindBegun:
			if !link {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// mayGrow refuses a batch after which an effect may happen that needs space to
// be reverted.
func (w *writer) mayGrow(b journal.Batch) (refused, err error) {
	if ends(b) || w.reserve.fill() == nil {
		return nil, nil
	}
	return explainFS(w.dir, fmt.Errorf("%w on the file system of %s", errNoRoom, w.dir)), nil
}
