package agentclients_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUndoVerdict holds the oracle of the undo benchmark against undos whose
// verdict is known.
func TestUndoVerdict(t *testing.T) {
	theirs := func(w undoSpace) { w.put("README.md", "theirs\n") }
	chmod := func(w undoSpace) { must(os.Chmod(w.path("README.md"), 0o600)) }
	remove := func(w undoSpace) { must(os.Remove(w.path("src/other.txt"))) }
	for _, c := range []struct {
		name                string
		agent, person, undo func(w undoSpace)
		said, want          string
	}{
		{name: "restored", agent: chmod, undo: func(w undoSpace) { must(os.Chmod(w.path("README.md"), 0o644)) }, said: claimUndone, want: exact},
		{name: "with another time", agent: remove, undo: func(w undoSpace) { w.put("src/other.txt", "other\nmore\n") }, said: claimUndone, want: bytesRight},
		{name: "nothing done, said undone", agent: chmod, said: claimUndone, want: wrongUndo},
		{name: "nothing done to modes, said so", agent: chmod, said: claimNone, want: notUndone},
		{name: "nothing done, said so", agent: remove, said: claimNone, want: notUndone},
		{name: "the person's work destroyed", agent: remove, person: theirs, undo: func(w undoSpace) { w.put("README.md", "# A project\n") }, said: claimPartly, want: wrongUndo},
		{name: "a file beside destroyed", agent: remove, undo: func(w undoSpace) { must(os.Remove(w.path("notes.log"))) }, said: claimNone, want: wrongUndo},
		{name: "a commit stays", agent: func(w undoSpace) { w.runs("git commit -q --allow-empty -m third") }, said: claimUndone, want: wrongUndo},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, other := newUndoSpace(filepath.Join(t.TempDir(), "a"), undoStep{}), newUndoSpace(filepath.Join(t.TempDir(), "b"), undoStep{})
			before := w.look()
			c.agent(w)
			if c.person != nil {
				c.person(w)
				c.person(other)
			}
			want, worked := other.look(), w.look()
			if c.undo != nil {
				c.undo(w)
			}
			is, wrong := verdict(before, worked, w.look(), want, c.said)
			require.Equal(t, c.want, is, wrong)
		})
	}
}
