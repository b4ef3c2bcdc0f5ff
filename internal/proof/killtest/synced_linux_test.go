package killtest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool"
)

// TestContentIsSynced checks a process that creates a journal and deletes a
// large file. It must have synced the stored content of that file, and each
// folder in which it created a name for it.
func TestContentIsSynced(t *testing.T) {
	if elsewhere(t) {
		return
	}
	l := &testEnv{self: self(), disk: t.TempDir(), kinds: []*workKind{{workers: 1, calls: 1}}}
	var err error
	l.memory, err = place(l.disk)
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(l.memory) })
	s := faultTask{does: "work", steps: []step{{"file_delete", tool.Args{"path": "w0/c.txt"}}, {Tool: "commit"}}, fresh: true}
	if !canTrap(t, l, s) {
		t.Skip("this kernel does not report system calls to a parent")
	}
	c, err := s.prepare(t.Context(), l, 1)
	require.NoError(t, err)
	defer c.end()
	r, err := s.strike(t.Context(), l, c, nil, 0)
	require.NoError(t, err)
	require.Zero(t, r.code, r.complained)
	t.Log(r.dirty)
	for _, name := range r.dirty {
		content := strings.HasPrefix(name, "state/blobs") && name != "state/blobs/new" // from its temporary name to its final one
		require.False(t, content || name == "state", name)
	}
}
