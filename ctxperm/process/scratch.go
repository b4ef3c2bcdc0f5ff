package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/remit-dev/remit/internal/sandbox"
)

// runPrefix is the prefix of folders in the scratch folder, one per run.
const runPrefix = "remit-run-"

// scratch is the folder of one run. Its process locks it, so that another
// process can remove the folders of dead ones.
type scratch struct {
	dir  string
	lock *os.File
}

// newScratch creates a folder for a run, and removes those of dead processes.
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
	if err := lock(gate, true); err != nil { // else another process could remove a folder before it is locked
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

// clear removes the folders of dead processes. It ignores what it cannot
// remove.
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

// part creates a folder for the changes in one root.
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
