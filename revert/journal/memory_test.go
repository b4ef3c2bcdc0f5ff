package journal_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/record"
)

func TestMemory(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journaltest.Opener {
		open := journal.SharedMemory()
		return func(*testing.T) journal.Journal { return open() }
	})
}

// A transaction begins, claims a resource and ends. Each step is one batch.
func ExampleMemory() {
	ctx := context.Background()
	j := journal.Memory()
	defer func() { _ = j.Close() }()

	began, err := record.Seal(record.Record{
		Header: record.Header{Kind: record.KindBegun, Txn: "t_1", At: time.Unix(0, 0)},
		Body:   &record.Begun{Owner: j.Owner()},
	}, make([]byte, record.SaltSize))
	if err != nil {
		fmt.Println(err)
		return
	}
	own := journal.Ownership{Txn: "t_1", Owner: j.Owner()}
	err = j.Append(ctx, journal.Batch{
		Entries: []record.Entry{began},
		Durable: true,
		Take:    journal.OwnerChange{To: own},
		Fence:   own,
		Claims:  []string{"file://workspace/a.txt"},
	})
	fmt.Println("appended:", err)

	other := journal.Ownership{Txn: "t_2", Owner: j.Owner()}
	err = j.Append(ctx, journal.Batch{
		Take:   journal.OwnerChange{To: other},
		Fence:  other,
		Claims: []string{"file://workspace/a.txt"},
	})
	fmt.Println("refused:", err)

	for entry, err := range j.Entries(ctx, journal.Query{Txn: "t_1"}) {
		fmt.Println(entry.Pos, entry.Header.Kind, err)
	}
	// Output:
	// appended: <nil>
	// refused: file://workspace/a.txt is held by transaction t_1 until it commits or is reverted
	// 1 begun <nil>
}
