package revert_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journaltest"
)

func TestMemory(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journaltest.Opener {
		open := revert.MemoryStore()
		return func(*testing.T) revert.Journal { return open() }
	})
}

// TestMemoryStopsReading: where somebody gave up between two entries.
func TestMemoryStopsReading(t *testing.T) {
	l := newLab(t)
	l.worked()
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	n := 0
	for e, err := range l.journal.Entries(ctx, revert.Query{}) {
		if n++; n == 1 {
			require.NoError(t, err)
			cancel(enough)
			continue
		}
		require.ErrorIs(t, err, enough)
		require.Zero(t, e)
	}
	require.Equal(t, 2, n)
}

// A transaction begins, holds a resource and ends, each step one batch.
func ExampleMemory() {
	ctx := context.Background()
	journal := revert.Memory()
	defer func() { _ = journal.Close() }()

	began, err := revert.Seal(revert.Record{
		Header: revert.Header{Kind: revert.KindBegun, Txn: "t_1", At: time.Unix(0, 0)},
		Body:   &revert.Begun{Owner: journal.Owner()},
	}, make([]byte, revert.SaltSize))
	if err != nil {
		fmt.Println(err)
		return
	}
	own := revert.Ownership{Txn: "t_1", Owner: journal.Owner()}
	err = journal.Append(ctx, revert.Batch{
		Entries: []revert.Entry{began},
		Durable: true,
		Take:    revert.Take{To: own},
		Fence:   own,
		Claims:  []string{"file://workspace/a.txt"},
	})
	fmt.Println("appended:", err)

	other := revert.Ownership{Txn: "t_2", Owner: journal.Owner()}
	err = journal.Append(ctx, revert.Batch{
		Take:   revert.Take{To: other},
		Fence:  other,
		Claims: []string{"file://workspace/a.txt"},
	})
	fmt.Println("refused:", err)

	for entry, err := range journal.Entries(ctx, revert.Query{Txn: "t_1"}) {
		fmt.Println(entry.Pos, entry.Header.Kind, err)
	}
	// Output:
	// appended: <nil>
	// refused: file://workspace/a.txt is held by transaction t_1 until it commits or is reverted
	// 1 begun <nil>
}
