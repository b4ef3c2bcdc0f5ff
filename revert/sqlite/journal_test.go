package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

func TestJournal(t *testing.T) {
	journaltest.Run(t, func(t *testing.T) journaltest.Opener {
		dir := t.TempDir()
		return func(t *testing.T) journal.Journal { return open(t, dir) }
	})
}

func TestDurableAppendsAreSynced(t *testing.T) {
	j := open(t, t.TempDir())
	defer func() { _ = j.Close() }()
	for _, durable := range []bool{true, false, false, true, true, false, true} {
		for _, entries := range [][]record.Entry{one("t"), append(one("t"), one("t")...)} {
			require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: entries, Durable: durable}))
			level, err := j.SyncLevel()
			require.NoError(t, err)
			require.Equal(t, map[bool]int{true: 2, false: 1}[durable], level)
		}
	}
}

func open(t testing.TB, dir string) *sqlite.Journal {
	t.Helper()
	j, err := sqlite.Open(context.Background(), dir)
	require.NoError(t, err)
	return j
}

// The next opening reads what an earlier one appended.
func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "state")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	first, err := sqlite.Open(ctx, dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	e := journaltest.Entry(record.Header{Txn: "t_1", Call: "c_1"}, "file_write")
	fmt.Println(first.Append(ctx, journal.Batch{Entries: []record.Entry{e}, Durable: true}))
	fmt.Println(first.Close())

	second, err := sqlite.Open(ctx, dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = second.Close() }()
	for e, err := range second.Entries(ctx, journal.Query{}) {
		fmt.Println(e.Pos, e.Header.Kind, e.Header.Call, err)
	}
	// Output:
	// <nil>
	// <nil>
	// 1 invalid c_1 <nil>
}
