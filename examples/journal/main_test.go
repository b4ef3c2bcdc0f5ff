package main

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/sqlite"
)

// TestSuite runs the tests that every journal must pass.
func TestSuite(t *testing.T) {
	open := func(t *testing.T, place string) journal.Journal {
		stored, err := sqlite.Open(t.Context(), filepath.Join(place, "state"))
		require.NoError(t, err)
		return headCheckedJournal{stored, func(journal.Head) error { return nil }}
	}
	// guide: guides/journal.md
	journaltest.Run(t, func(t *testing.T) journaltest.Opener {
		place := t.TempDir() // what a second opening finds again
		return func(t *testing.T) journal.Journal { return open(t, place) }
	})
	// end of guide
}

// TestHeadCheck checks that the stored head is the journal's head, and that
// losing it loses nothing else.
func TestHeadCheck(t *testing.T) {
	var kept []journal.Head
	j := headCheckedJournal{journal.Memory(), func(h journal.Head) error {
		kept = append(kept, h)
		return errors.New("nobody answers")
	}}
	require.NoError(t, j.Append(t.Context(), journal.Batch{}))
	require.Empty(t, kept)
	require.NoError(t, j.Append(t.Context(), journal.Batch{Durable: true}))
	head, err := j.Head(t.Context())
	require.NoError(t, err)
	require.Equal(t, []journal.Head{head}, kept)
	main()
}
