package sqlite

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/remit-dev/remit/revert/journal"
)

// The head file contains the number of promised entries, their tree head, and
// the length of the write-ahead log at that time. It is a separate file, so it
// shows that a database lost its log or a part of it.
//
// The order of a durable append: the commit syncs the log; then the head file
// is written; then the caller continues. So the head file never has more than
// the disk, wherever the process or the machine stops:
//
//	stopped before the commit      neither has the batch, which was not promised
//	between commit and head file   the database is ahead of the head file, which is normal
//	after the head file            both have the batch
//
// So a database behind its head file has lost promised entries.
//
// The head file is not synced with each append: that would be a second sync,
// and syncs are the cost of a durable call. After a kill, all processes read
// the file from the system's cache, so a kill and a copy are covered to the
// last batch. A power failure may leave an older mark, which is behind, and no
// alarm. The price: if the log is cut after a power failure and before the next
// opening, the batches after the older mark are not missed. See writeOut for
// their number.
const (
	headName = "journal.head"
	headSlot = 512 // which a disk writes atomically
	headSize = 2 * headSlot
	headWord = "remit-head"
)

// ErrIncomplete says that a journal lacks promised entries, or that its
// completeness cannot be checked. A person may accept the remaining entries;
// see Accept.
var ErrIncomplete = errors.New("journal is incomplete")

// mark is the content of a slot of the head file. Writes alternate between the
// two slots, so one is always complete.
type mark struct {
	turn int64
	head journal.Head // of all promised entries
	at   time.Time
	log  logPlace // length of the log; zero: there was no log
	boot string   // boot ID of the system that wrote it; empty: unknown
}

func (m mark) slot() []byte {
	salts, boot := m.log.salts, m.boot
	if salts == "" {
		salts = "-"
	}
	if boot == "" {
		boot = "-"
	}
	text := fmt.Sprintf("%s 1 %d %s %s %s %d %s", headWord, m.turn, m.head, m.at.UTC().Format(time.RFC3339Nano), salts, m.log.frames, boot)
	return fmt.Appendf(nil, "%-*s\n", headSlot-1, text+" "+slotSum(text))
}

func slotSum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// parseMark parses a slot. ok is false for a slot that was never written, or
// not completely.
func parseMark(slot []byte) (m mark, ok bool) {
	f := strings.Fields(string(slot))
	if len(f) != 9 || f[0] != headWord || f[1] != "1" || slotSum(strings.Join(f[:8], " ")) != f[8] {
		return m, false
	}
	var errs [4]error
	m.turn, errs[0] = strconv.ParseInt(f[2], 10, 64)
	m.head, errs[1] = journal.ParseHead(f[3])
	m.at, errs[2] = time.Parse(time.RFC3339Nano, f[4])
	m.log.frames, errs[3] = strconv.ParseInt(f[6], 10, 64)
	m.log.salts, m.boot = strings.TrimPrefix(f[5], "-"), strings.TrimPrefix(f[7], "-")
	return m, errors.Join(errs[:]...) == nil
}

// headFile is the open head file.
type headFile struct {
	f      *os.File
	boot   string
	synced bool      // this opening has synced it
	anew   bool      // the next mark replaces any content
	out    time.Time // when the system last began to write it to disk
}

func openHead(dir string, flags int) (*headFile, error) {
	path := filepath.Join(dir, headName)
	if err := checkFile(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	return &headFile{f: f, boot: bootID()}, nil
}

// locked runs f under the lock of the file. The lock is held for some
// microseconds, so locked waits for it as for another writer.
func (h *headFile) locked(lock func(*os.File) error, wait busyBackoff, f func() error) error {
	for {
		err := lock(h.f)
		if err == nil {
			break
		}
		if !errors.Is(err, errLocked) {
			return err
		}
		if err := wait.sleep(); err != nil {
			return fmt.Errorf("%s: %w", headName, err)
		}
	}
	return errors.Join(f(), unlock(h.f))
}

// read returns the newer mark. blank is true if the file is new.
func (h *headFile) read() (m mark, blank bool, err error) {
	data := make([]byte, headSize+1)
	n, _ := h.f.ReadAt(data, 0) // unread bytes count as missing
	if n == 0 {
		return m, true, nil
	}
	found := false
	for at := 0; n == headSize && at < headSize; at += headSlot {
		if is, ok := parseMark(data[at : at+headSlot]); ok && (!found || is.turn > m.turn) {
			m, found = is, true
		}
	}
	if !found {
		return m, false, fmt.Errorf("%w: %s is damaged", ErrIncomplete, headName)
	}
	return m, false, nil
}

func (h *headFile) write(m mark) error {
	_, err := h.f.WriteAt(m.slot(), m.turn%2*headSlot)
	return err
}

// advance writes that more is promised, unless another process has written as
// much. Only the first write is durable at once.
func (h *headFile) advance(to mark, wait busyBackoff) error {
	err := h.locked(lockExclusive, wait, func() error {
		m, _, err := h.read()
		if h.anew {
			h.anew = false
			to.turn, to.boot = m.turn, h.boot
			return h.replace(to)
		}
		if err != nil || m.head.Size > to.head.Size {
			return err
		}
		to.turn, to.boot = m.turn+1, h.boot
		return h.write(to)
	})
	if err == nil && !h.synced {
		//mutant:none an older mark is behind, which is normal
		err = h.f.Sync()
		h.synced = err == nil
	}
	if now := time.Now(); err == nil && now.Sub(h.out) >= writeOutPause {
		h.out = now
		writeOut(h.f)
	}
	return err
}

// writeOutPause is the time for which many appends share one writing of the
// head file: each costs as much as a third of a sync.
const writeOutPause = 5 * time.Millisecond

// begin writes the first mark of a new journal, before any other file exists.
func (h *headFile) begin(wait busyBackoff) error {
	return h.locked(lockExclusive, wait, func() error {
		if _, blank, err := h.read(); err != nil || !blank {
			return err
		}
		return h.replace(mark{head: journal.Tree{}.Head(), at: time.Now(), boot: h.boot})
	})
}

// replace writes the file anew.
func (h *headFile) replace(m mark) error {
	err := h.f.Truncate(0)
	for range 2 {
		if m.turn++; err == nil {
			err = h.write(m)
		}
	}
	if err == nil {
		//mutant:none without it power loss leaves a journal that is refused
		err = h.f.Sync()
	}
	return err
}

func (h *headFile) close() error { return h.f.Close() }

// makeHead creates the head file of a new journal.
func makeHead(dir string, wait busyBackoff) error {
	h, err := openHead(dir, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	if err = errors.Join(h.begin(wait), h.close()); err != nil {
		return err
	}
	return syncFolder(dir)
}

// readHead returns the mark in the head file of a folder. none is true if there
// is no file, or if a process created it and died before it wrote it.
func readHead(dir string, wait busyBackoff) (m mark, none bool, err error) {
	h, err := openHead(dir, os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return m, true, nil
	}
	if err != nil {
		return m, false, err
	}
	err = h.locked(lockShared, wait, func() error {
		m, none, err = h.read()
		return err
	})
	return m, none, errors.Join(err, h.close())
}

// recordCheckpoint writes in the head file that the log was copied into the database, if it
// was. Otherwise an opening that finds no log checks the whole database.
func (j *Journal) recordCheckpoint() error {
	h, err := openHead(j.dir, os.O_RDWR)
	if err != nil {
		return err
	}
	return errors.Join(h.locked(lockExclusive, j.wait, func() error {
		info, err := os.Lstat(filepath.Join(j.dir, databaseName+"-wal"))
		if err == nil && info.Size() > 0 {
			return nil
		}
		m, blank, err := h.read()
		if err != nil || blank || m.log == (logPlace{}) {
			return err
		}
		m.turn, m.log, m.boot = m.turn+1, logPlace{}, h.boot
		//mutant:none an older mark is behind, which is normal
		return errors.Join(h.write(m), h.f.Sync())
	}), h.close())
}
