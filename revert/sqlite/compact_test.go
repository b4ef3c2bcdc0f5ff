package sqlite_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	mrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

func sealedFor(t *testing.T, call string, body record.Body, kind record.Kind) []record.Entry {
	t.Helper()
	salt := make([]byte, record.SaltSize)
	_, _ = rand.Read(salt)
	e, err := record.Seal(record.Record{Header: record.Header{Kind: kind, Session: "s", Call: call, At: time.Now()}, Body: body}, salt)
	if err != nil {
		t.Fatal(err)
	}
	return []record.Entry{e}
}

// The pages of erased rows become free: docs/explanation/journal.md, "Space".
func TestErasedRowsFreeTheirPages(t *testing.T) {
	j := openIn(t)
	var calls []string
	for i := range 500 {
		calls = append(calls, fmt.Sprintf("c%d", i))
		body := &record.RevertNote{Key: "k", Value: []byte(`"` + strings.Repeat("x", 3000) + `"`)}
		mustAppend(t, j, journal.Batch{Entries: sealedFor(t, calls[i], body, record.KindRevertNote)})
	}
	before, err := j.CollectGarbage(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for len(calls) > 0 {
		mustAppend(t, j, journal.Batch{Erase: calls[:25]})
		calls = calls[25:]
	}
	after, err := j.CollectGarbage(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if after.Size > before.Size/2 {
		t.Errorf("%d bytes before, %d after every body was erased", before.Size, after.Size)
	}
}

// TestErasedBodiesLeaveNoCopy erases calls in a random order, with a collection
// after some of them: no byte of an erased body may be left in a place to which
// SQLite moved its row before.
func TestErasedBodiesLeaveNoCopy(t *testing.T) {
	const calls = 150
	for seed := range uint64(4) {
		j := openIn(t)
		r := mrand.New(mrand.NewPCG(seed, 2))
		for i := range calls {
			text := strings.Repeat(fmt.Sprintf("WORD-%d.", i), 1+r.IntN(300))
			mustAppend(t, j, journal.Batch{Entries: sealedFor(t, fmt.Sprint("c", i), &record.RevertNote{Key: "k", Value: []byte(`"` + text + `"`)}, record.KindRevertNote)})
		}
		order := r.Perm(calls)
		if seed%2 == 0 { // runs of neighbors, as a prune erases them
			slices.Sort(order[:calls/2])
		}
		for len(order) > 0 {
			n := min(len(order), 1+r.IntN(20))
			var batch journal.Batch
			for _, i := range order[:n] {
				batch.Erase = append(batch.Erase, fmt.Sprint("c", i))
			}
			mustAppend(t, j, batch)
			if _, err := j.CollectGarbage(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(filepath.Join(j.Dir(), "journal.db"))
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range order[:n] {
				if bytes.Contains(data, fmt.Appendf(nil, "WORD-%d.", i)) {
					t.Fatalf("seed %d: a body of call %d is left", seed, i)
				}
			}
			order = order[n:]
		}
	}
}
