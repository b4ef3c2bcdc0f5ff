package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/record"
)

// TestManyReaders checks that the journal has few descriptors for any number of
// readers, and that nested reads do not deadlock.
func TestManyReaders(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	defer func() { require.NoError(t, j.Close()) }()
	for i := range 50 {
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: []record.Entry{journaltest.Entry(record.Header{Session: "s"}, fmt.Sprint(i))}}))
	}
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			for outer, err := range j.Entries(t.Context(), journal.Query{Session: "s"}) {
				if err != nil {
					t.Error(err)
				}
				for _, err := range j.Entries(t.Context(), journal.Query{After: outer.Pos - 1, Limit: 1}) {
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	found, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	n := 0
	for _, fd := range found {
		name, _ := os.Readlink(filepath.Join("/proc/self/fd", fd.Name()))
		if strings.HasPrefix(name, filepath.Join(dir, "journal.db")) {
			n++
		}
	}
	require.LessOrEqual(t, n, 2*8+4, "two for each reader, and those of the writer")
}
