package sqlite_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/sqlite"
)

// countIn closes a journal after a collection, and counts a text in its files.
func countIn(t *testing.T, j *sqlite.Journal, text string) (n int) {
	t.Helper()
	report, err := j.CollectGarbage(t.Context(), nil)
	if err != nil || report.Waiting != "" {
		t.Fatalf("collect: %v %s", err, report.Waiting)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"journal.db", "journal.db-wal"} {
		data, err := os.ReadFile(filepath.Join(j.Dir(), name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		n += bytes.Count(data, []byte(text))
	}
	return n
}

func openIn(t *testing.T) *sqlite.Journal {
	t.Helper()
	j, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "j"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func mustAppend(t *testing.T, j *sqlite.Journal, b journal.Batch) {
	t.Helper()
	if err := j.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// No file has the names of released claims after a collection, also if SQLite
// moved their rows between pages.
func TestReleasedClaimsAreDestroyed(t *testing.T) {
	j := openIn(t)
	txns := make([]journal.Ownership, 20)
	for n := range txns {
		txns[n] = journal.Ownership{Txn: fmt.Sprintf("t%d", n), Owner: j.Owner()}
		b := journal.Batch{Take: journal.OwnerChange{To: txns[n]}, Fence: txns[n]}
		word := []string{"SECRET", "KEPT"}[n%2]
		for i := range 60 {
			b.Claims = append(b.Claims, fmt.Sprintf("file:///%04d/%s-%d-%d", (n*7919+i*104729)%10000, word, n, i))
		}
		mustAppend(t, j, b)
	}
	for n := 0; n < len(txns); n += 2 {
		mustAppend(t, j, journal.Batch{Fence: txns[n], End: true})
		if n%4 == 0 {
			if _, err := j.CollectGarbage(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := countIn(t, j, "SECRET"); n > 0 {
		t.Errorf("%d names of released claims remain", n)
	}
}
