package console_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/console"
	"github.com/remit-dev/remit/revert/journal"
)

// nodeJournal is a journal that a node opened.
type nodeJournal struct {
	journal.Journal
	id, dir string
}

func (j nodeJournal) NodeID() string { return j.id }
func (j nodeJournal) Dir() string    { return j.dir }

// TestDifferenceOfAnotherNode: a folder of this machine says nothing about a
// call on another one, also if it is at the same path.
func TestDifferenceOfAnotherNode(t *testing.T) {
	open := journal.SharedMemory()
	p := newPlace(t, console.Options{}, agent.Journal(nodeJournal{open(), "n_1", t.TempDir()}))
	p.own("a.txt", "as it is\n")
	out := p.write("a.txt", "wanted\n")
	require.Contains(t, p.page("/approve?id="+out.Call), "as it is", "on the node that has the folder")
	there := newPlace(t, console.Options{}, agent.Journal(nodeJournal{open(), "n_2", t.TempDir()}))
	page := there.page("/approve?id=" + out.Call)
	require.NotContains(t, page, "as it is")
	require.Contains(t, page, "no difference can be shown")
}
