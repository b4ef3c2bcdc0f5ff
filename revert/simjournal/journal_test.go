package simjournal_test

import (
	"testing"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/simjournal"
)

func TestJournal(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journaltest.Opener {
		store := simjournal.NewStore()
		return func(*testing.T) revert.Journal { return store.Open() }
	})
}
