package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/record"
)

// BenchmarkAppend appends durable batches like a run: one entry under the fence
// of the caller's transaction.
func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprint(callers, " callers"), func(b *testing.B) {
			j := open(b, b.TempDir())
			defer func() { require.NoError(b, j.Close()) }()
			entries := benchEntries(1)
			share(b, callers, func(caller int) func() error {
				own := journal.Ownership{Txn: fmt.Sprint("t", caller), Owner: j.Owner()}
				require.NoError(b, j.Append(b.Context(), journal.Batch{Take: journal.OwnerChange{To: own}, Durable: true}))
				return func() error {
					return j.Append(b.Context(), journal.Batch{Entries: entries, Fence: own, Durable: true})
				}
			})
		})
	}
}

// BenchmarkCall appends the records of one call of a tool that writes a file:
// two barriers, four entries, a claim.
func BenchmarkCall(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprint(callers, " callers"), func(b *testing.B) {
			j := open(b, b.TempDir())
			defer func() { require.NoError(b, j.Close()) }()
			entries := benchEntries(2)
			share(b, callers, func(caller int) func() error {
				own := journal.Ownership{Txn: fmt.Sprint("t", caller), Owner: j.Owner()}
				require.NoError(b, j.Append(b.Context(), journal.Batch{Take: journal.OwnerChange{To: own}, Durable: true}))
				n := 0
				return func() error {
					n++
					claims := []string{fmt.Sprint("file://w/", caller, "/", n%10)}
					if err := j.Append(b.Context(), journal.Batch{Entries: entries, Fence: own, Claims: claims, Durable: true}); err != nil {
						return err
					}
					return j.Append(b.Context(), journal.Batch{Entries: entries, Fence: own, Durable: true})
				}
			})
		})
	}
}

// BenchmarkNotDurable appends without waiting for a sync.
func BenchmarkNotDurable(b *testing.B) {
	j := open(b, b.TempDir())
	defer func() { require.NoError(b, j.Close()) }()
	entries := benchEntries(1)
	for b.Loop() {
		require.NoError(b, j.Append(b.Context(), journal.Batch{Entries: entries}))
	}
}

// BenchmarkSync is the minimum time of a durable append on this disk: a write
// of the same size and fdatasync. It uses a growing file, and one of constant
// size, like SQLite's log in most cases.
func BenchmarkSync(b *testing.B) {
	for name, size := range map[string]int64{"growing": 0, "in place": 4 << 20} {
		b.Run(name, func(b *testing.B) {
			f, err := os.Create(filepath.Join(b.TempDir(), "log"))
			require.NoError(b, err)
			defer f.Close()
			_, err = f.Write(make([]byte, size))
			require.NoError(b, err)
			require.NoError(b, f.Sync())
			line, at := make([]byte, 512), int64(0)
			for b.Loop() {
				_, err := f.WriteAt(line, at)
				require.NoError(b, err)
				require.NoError(b, syncData(f))
				if at += int64(len(line)); size > 0 {
					at %= size
				}
			}
		})
	}
}

// BenchmarkEntries reads and checks a thousand entries.
func BenchmarkEntries(b *testing.B) {
	j := open(b, b.TempDir())
	defer func() { require.NoError(b, j.Close()) }()
	require.NoError(b, j.Append(b.Context(), journal.Batch{Entries: benchEntries(1000)}))
	for b.Loop() {
		for _, err := range j.Entries(b.Context(), journal.Query{}) {
			require.NoError(b, err)
		}
	}
}

// BenchmarkOpen opens a journal beside a live writer.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	j := open(b, dir)
	defer func() { require.NoError(b, j.Close()) }()
	require.NoError(b, j.Append(b.Context(), journal.Batch{Entries: benchEntries(100), Durable: true}))
	for b.Loop() {
		require.NoError(b, open(b, dir).Close())
	}
}

func benchEntries(n int) []record.Entry {
	all := make([]record.Entry, n)
	for i := range all {
		h := record.Header{Session: "s_0123456789ab", Txn: "t_0123456789ab", Call: fmt.Sprintf("c_%012d", i)}
		all[i] = journaltest.Entry(h, string(make([]byte, 60)))
	}
	return all
}

// share runs b.N operations on several goroutines.
func share(b *testing.B, callers int, caller func(n int) func() error) {
	ops := make([]func() error, callers)
	for i := range ops {
		ops[i] = caller(i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	for _, op := range ops {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if err := op(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}
