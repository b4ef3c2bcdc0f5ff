package agent

import (
	"fmt"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// stateFolder is the folder of the journal. It is zero for a journal without a
// folder.
type stateFolder struct {
	record.Root
	id disk.Identity
}

// stateOf returns the state folder of a journal.
func stateOf(h host.Host, j journal.Journal) (s stateFolder, err error) {
	d, ok := j.(interface{ Dir() string })
	if !ok {
		return s, nil
	}
	path, err := realPath(d.Dir())
	if err != nil {
		return s, fmt.Errorf("state folder: %w", err)
	}
	open, err := host.OpenRoot(h, path)
	if err != nil {
		return s, fmt.Errorf("state folder: %w", err)
	}
	s.id = open.Identity()
	if err := open.Close(); err != nil {
		return s, fmt.Errorf("state folder: %w", err)
	}
	s.Name, s.Path = "state", path
	s.Identity, err = canon.Marshal(s.id)
	return s, err
}

// wrote reports whether a session's record was written in this folder. In a
// copy of the folder, or after a move to another file system, it was not. The
// folders that the record names can then belong to another copy.
func (s stateFolder) wrote(opened *record.Session) bool {
	if s.Path == "" || opened.State.Path == "" {
		return true
	}
	var was disk.Identity
	if canon.Decode(opened.State.Identity, &was) != nil {
		return false
	}
	return s.id.Is(was) || s.Path == opened.State.Path && s.id.IsAgain(was)
}
