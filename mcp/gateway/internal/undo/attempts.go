package undo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert"
)

// Attempts records which compensations were sent to a server. The gateway
// does not send one again if it does not know whether the first arrived.
type Attempts struct {
	folder string // empty: only in memory

	mu   sync.Mutex // never held across a wait
	seen map[string]bool
}

// OpenAttempts opens the records in a state folder. Without a folder, they are
// in memory.
func OpenAttempts(state string) (*Attempts, error) {
	a := &Attempts{seen: map[string]bool{}}
	if state == "" {
		return a, nil
	}
	a.folder = filepath.Join(state, "gateway-undo")
	return a, os.MkdirAll(a.folder, 0o700)
}

func (a *Attempts) path(key string) string {
	sum := string(canon.SumBytes([]byte(key)))
	return filepath.Join(a.folder, strings.TrimPrefix(sum, "sha256:"))
}

// begin records that a compensation is about to be sent. Done reports that it
// was sent and got a response. If it was sent and got none, begin returns an
// error, as the effect is unknown.
func (a *Attempts) begin(key string) (done bool, err error) {
	a.mu.Lock()
	ended, begun := a.seen[key]
	a.mu.Unlock()
	if !begun && a.folder != "" {
		raw, err := os.ReadFile(a.path(key))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		begun, ended = err == nil, string(raw) == "done\n"
	}
	switch {
	case ended:
		return true, nil
	case begun:
		return false, fmt.Errorf("%w: it was sent to the server before, and no answer came; look at what the server has", revert.ErrRevertUnknown)
	}
	return false, a.write(key, false)
}

func (a *Attempts) end(key string) error { return a.write(key, true) }

// drop removes the record of a compensation that did not reach the server.
func (a *Attempts) drop(key string) error {
	a.mu.Lock()
	delete(a.seen, key)
	a.mu.Unlock()
	if a.folder == "" {
		return nil
	}
	return os.Remove(a.path(key))
}

func (a *Attempts) write(key string, done bool) error {
	a.mu.Lock()
	a.seen[key] = done
	a.mu.Unlock()
	if a.folder == "" {
		return nil
	}
	f, err := os.OpenFile(a.path(key), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if done {
		_, err = f.WriteString("done\n")
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if dir, err := os.Open(a.folder); err == nil {
		_ = dir.Sync() // if the system cannot sync folders, the record can be lost and a compensation sent twice
		_ = dir.Close()
	}
	return nil
}
