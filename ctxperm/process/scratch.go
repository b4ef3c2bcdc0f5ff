package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/remit-dev/remit/internal/sandbox"
)

// runPrefix begins the names of folders in the scratch folder, each of one run.
const runPrefix = "remit-run-"

// scratch is the folder of one run. It is locked as long as its process lives, so
// that the next one can clear away what a death left.
type scratch struct {
	dir  string
	lock *os.File
}

// newScratch makes a folder for a run, and clears away those of processes that died.
func (d *Driver) newScratch() (*scratch, error) {
	if err := os.MkdirAll(d.cfg.Scratch, 0o700); err != nil {
		return nil, err
	}
	if err := private(d.cfg.Scratch); err != nil {
		return nil, err
	}
	gate, err := os.OpenFile(filepath.Join(d.cfg.Scratch, "remit-runs.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = gate.Close() }()      // unlocks
	if err := lock(gate, true); err != nil { // else a folder could be cleared away before it is locked
		return nil, err
	}
	d.sweep.Do(d.clear)
	dir, err := os.MkdirTemp(d.cfg.Scratch, runPrefix)
	if err != nil {
		return nil, err
	}
	s := &scratch{dir: dir}
	if s.lock, err = os.Open(dir); err == nil {
		err = lock(s.lock, true)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// clear removes the folders of runs that no process owns any more. What cannot be
// removed is only in the way.
func (d *Driver) clear() {
	found, err := os.ReadDir(d.cfg.Scratch)
	if err != nil {
		return
	}
	for _, e := range found {
		if !strings.HasPrefix(e.Name(), runPrefix) || !e.IsDir() {
			continue
		}
		dir := filepath.Join(d.cfg.Scratch, e.Name())
		f, err := os.Open(dir)
		if err != nil {
			continue
		}
		if lock(f, false) == nil {
			_ = sandbox.Discard(dir)
		}
		_ = f.Close()
	}
}

// part makes a folder for what is written in one root.
func (s *scratch) part(n int) (string, error) {
	dir := filepath.Join(s.dir, fmt.Sprint(n))
	return dir, os.Mkdir(dir, 0o700)
}

func (s *scratch) close() {
	if s == nil {
		return
	}
	_ = sandbox.Discard(s.dir)
	if s.lock != nil {
		_ = s.lock.Close()
	}
}
