package sqlite_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// historyCalls is the number of calls in the benchmarks' history: 100,000 with
// REMIT_LONG, else a tenth, for which the ratios are the same.
func historyCalls() int {
	if n, err := strconv.Atoi(os.Getenv("REMIT_HISTORY")); err == nil {
		return n
	}
	if statcheck.Whole() {
		return 100_000
	}
	return 10_000
}

// history writes transactions of 10 calls with four records each, like a run of
// file_write. The last unfinished of them have no end, and neither has the last
// call of each.
func history(tb testing.TB, dir string, calls, unfinished int) {
	tb.Helper()
	j := open(tb, dir)
	defer func() { require.NoError(tb, j.Close()) }()
	h := hosttest.New(1)
	input, decision := json.RawMessage(`{"content":"`+fmt.Sprintf("%0200d", 0)+`","path":"a.txt"}`), json.RawMessage(`{"effect":"allow","reasons":[{"at":"w.rego:13","text":"because"}]}`)
	for n := range calls / 10 {
		txn := fmt.Sprintf("t_%012d", n)
		rec := revert.NewRecorder(j, h, "s_0123456789ab").In(txn)
		write := func(w revert.Write, lines ...revert.CallRecord) {
			w.Records = lines
			require.NoError(tb, rec.Write(tb.Context(), w))
		}
		write(revert.Write{Take: journal.OwnerChange{To: journal.Ownership{Txn: txn, Owner: j.Owner()}}}, revert.CallRecord{Body: &record.Begun{Owner: j.Owner()}})
		end := n < calls/10-unfinished
		for i := range 10 {
			call := fmt.Sprintf("c_%012d", n*10+i)
			write(revert.Write{},
				revert.CallRecord{Call: call, Body: &record.Started{Sequence: i + 1, Key: "k", Tool: record.ToolRef{Name: "file_write"}, Input: input, Class: effect.Reversible, Confinement: "handles", Decision: decision}},
				revert.CallRecord{Call: call, Body: &record.Changed{Change: effect.Change{N: 1, Scheme: "none", Resource: "file://w/a.txt", Kind: "write", Pre: "1", Post: "2", Inverse: json.RawMessage("{}")}}})
			if end || i < 9 {
				write(revert.Write{}, revert.CallRecord{Call: call, Body: &record.Done{Output: json.RawMessage(`"ok"`)}},
					revert.CallRecord{Call: call, Body: &record.Verified{Phase: "call", Presence: "applied", OK: true}})
			}
		}
		if end {
			write(revert.Write{End: true}, revert.CallRecord{Body: &record.Committed{}})
		}
	}
	require.NoError(tb, j.Append(tb.Context(), journal.Batch{Durable: true}))
}

// plainScan reads the rows without any check.
func plainScan(tb testing.TB, dir string) (n int) {
	tb.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "journal.db"))
	require.NoError(tb, err)
	rows, err := db.Query("SELECT key, n, data FROM batches ORDER BY key")
	require.NoError(tb, err)
	var key, entries int64
	var data []byte
	for rows.Next() {
		require.NoError(tb, rows.Scan(&key, &entries, &data))
		n++
	}
	require.NoError(tb, rows.Err())
	require.NoError(tb, rows.Close())
	require.NoError(tb, db.Close())
	return n
}

// noEnvironment returns an empty environment.
func noEnvironment(context.Context, string) (revert.Environment, error) {
	return revert.Environment{}, nil
}

// recovered opens a journal and recovers it.
func recovered(tb testing.TB, dir string) revert.RecoveryReport {
	tb.Helper()
	j := open(tb, dir)
	r := &revert.Reverter{Journal: j, Host: hosttest.New(2), EnvironmentFor: noEnvironment}
	rec, err := r.Recover(tb.Context())
	require.NoError(tb, err)
	require.NoError(tb, j.Close())
	return rec
}

// BenchmarkHistory compares what a process reads at its start with a plain scan
// of the same rows, alternating in each round. "ended" is a history without
// open transactions. "unfinished" is one whose process died in its last ten
// transactions. "check" reads, checks and decodes every row. The ratio is that
// of the medians.
func BenchmarkHistory(b *testing.B) {
	ended, died := filepath.Join(b.TempDir(), "ended"), filepath.Join(b.TempDir(), "died")
	history(b, ended, historyCalls(), 0)
	history(b, died, historyCalls(), 10)
	require.Len(b, recovered(b, died).Abandoned, 10) // recovers one call of each, once
	for _, m := range []struct {
		name, dir string
		run       func(dir string)
	}{
		{"recover ended", ended, func(dir string) { recovered(b, dir) }},
		{"recover unfinished", died, func(dir string) { recovered(b, dir) }},
		{"check", ended, func(dir string) { checkAll(b, dir) }},
	} {
		b.Run(m.name, func(b *testing.B) {
			var scans, runs []time.Duration
			for b.Loop() {
				begin := time.Now()
				plainScan(b, m.dir)
				scanned := time.Now()
				m.run(m.dir)
				scans, runs = append(scans, scanned.Sub(begin)), append(runs, time.Since(scanned))
			}
			slices.Sort(scans)
			slices.Sort(runs)
			b.ReportMetric(float64(runs[len(runs)/2])/float64(scans[len(scans)/2]), "x-scan")
		})
	}
}

// checkAll reads and decodes every entry.
func checkAll(tb testing.TB, dir string) (n int) {
	tb.Helper()
	j := open(tb, dir)
	defer func() { require.NoError(tb, j.Close()) }()
	for e, err := range j.Entries(tb.Context(), journal.Query{}) {
		require.NoError(tb, err)
		_, err := record.Unseal(e)
		require.NoError(tb, err)
		n++
	}
	return n
}

// TestOpeningReadsNoHistory checks that the memory allocated by opening and
// recovery does not depend on the number of ended transactions.
func TestOpeningReadsNoHistory(t *testing.T) {
	used := func(calls int) uint64 {
		dir := filepath.Join(t.TempDir(), "state")
		history(t, dir, calls, 1)
		recovered(t, dir) // recovers unfinished calls, which has its own cost
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		recovered(t, dir)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	few, many := used(100), used(5000)
	require.Less(t, many, 2*few, "%d bytes after 100 calls, %d after 5000", few, many)
}
