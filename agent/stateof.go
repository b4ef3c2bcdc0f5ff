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
	if n, ok := j.(interface{ NodeID() string }); ok {
		s.Node = n.NodeID()
	}
	s.Identity, err = canon.Marshal(s.id)
	return s, err
}

// wrote reports whether a session's record was written in this folder. In a
// copy of the folder, or after a move to another file system, it was not. The
// folders that the record names can then belong to another copy.
func (s stateFolder) wrote(opened *record.Session) bool {
	if s.Path == "" || opened.State.Path == "" {
		return s.Node == opened.State.Node
	}
	if s.Node != opened.State.Node {
		return false
	}
	var was disk.Identity
	if canon.Decode(opened.State.Identity, &was) != nil {
		return false
	}
	return s.id.Is(was) || s.Path == opened.State.Path && s.id.IsAgain(was)
}

// isRecorded reports whether the folder at a path is the recorded one. A folder
// of another node is not, even if it looks the same, as in copies of a system.
// The device number can have changed since, but only if the path is the same: at
// another path it would be a snapshot.
func (s stateFolder) isRecorded(open disk.Root, path string, rec record.Root) bool {
	var was disk.Identity
	//mutant:check
	if s.Node != rec.Node || canon.Decode(rec.Identity, &was) != nil {
		return false
	}
	return open.Identity().Is(was) || path == rec.Path && open.Identity().IsAgain(was)
}
