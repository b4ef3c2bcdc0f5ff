package simjournal_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/remit-dev/remit/internal/proof/simjournal"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/record"
)

func TestJournal(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journaltest.Opener {
		store := simjournal.NewStore()
		return func(*testing.T) journal.Journal { return store.Open() }
	})
}

// A record without a barrier survives its process, but not a power failure.
func Example() {
	ctx := context.Background()
	store := simjournal.NewStore()
	entry := journaltest.Entry(record.Header{Txn: "t"}, "some_tool")
	if err := store.Open().Append(ctx, journal.Batch{Entries: []record.Entry{entry}}); err != nil {
		fmt.Println(err)
	}
	count := func() (n int) {
		for _, err := range store.Open().Entries(ctx, journal.Query{}) {
			if err == nil {
				n++
			}
		}
		return n
	}
	store.Crash()
	fmt.Println("after the death of its process:", count())
	store.Cut(store.Pending())
	fmt.Println("after a power cut:", count())
	// Output:
	// after the death of its process: 1
	// after a power cut: 0
}
