package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// BenchmarkReaders runs each kind of query on a journal of 100,000 entries. In
// "first", each query is the first one of an opening, as in a command.
func BenchmarkReaders(b *testing.B) {
	const calls = 25_000
	dir := filepath.Join(b.TempDir(), "state")
	history(b, dir, calls, 10)
	queries := []struct {
		name  string
		query func(n int) journal.Query
	}{
		{"call", func(n int) journal.Query { return journal.Query{Call: fmt.Sprintf("c_%012d", n*7919%calls)} }},
		{"transaction", func(n int) journal.Query { return journal.Query{Txn: fmt.Sprintf("t_%012d", n*7919%(calls/10))} }},
		{"session and kind, newest", func(int) journal.Query {
			return journal.Query{Session: "s_0123456789ab", Kinds: []record.Kind{record.KindBegun}, Newest: true, Limit: 20}
		}},
		{"rare kinds", func(int) journal.Query {
			return journal.Query{Kinds: []record.Kind{record.KindRevoked, record.KindRemembered}}
		}},
		{"frequent kind, newest", func(int) journal.Query {
			return journal.Query{Kinds: []record.Kind{record.KindBegun}, Newest: true, Limit: 20}
		}},
		{"resource", func(int) journal.Query {
			return journal.Query{Kinds: []record.Kind{record.KindChanged}, After: 4 * calls * 9 / 10, About: []string{"file://w/a.txt"}}
		}},
		{"everything", func(int) journal.Query { return journal.Query{} }},
	}
	for _, q := range queries {
		b.Run(q.name, func(b *testing.B) {
			j := open(b, dir)
			defer func() { require.NoError(b, j.Close()) }()
			for n := 0; b.Loop(); n++ {
				consume(b, j, q.query(n))
			}
		})
		b.Run("first/"+q.name, func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				j := open(b, dir)
				consume(b, j, q.query(n))
				require.NoError(b, j.Close())
			}
		})
	}
}

func consume(b *testing.B, j journal.Journal, q journal.Query) {
	b.Helper()
	for _, err := range j.Entries(b.Context(), q) {
		require.NoError(b, err)
	}
}
