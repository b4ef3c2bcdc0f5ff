package journaltest

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

func testQuery(t *testing.T, s store) {
	j := s.fresh(t)
	all := fill(t, j)
	// A kind that is queried and never written, and one entry beyond all.
	kinds := append(someKinds(), record.KindRevertedBy)

	t.Run("every query selects what a filter over everything does", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			q := journal.Query{
				Session: rapid.SampledFrom([]string{"", "", "s1", "s2", "nobody"}).Draw(rt, "session"),
				Txn:     rapid.SampledFrom([]string{"", "", "t1", "t2", "nobody"}).Draw(rt, "txn"),
				Call:    rapid.SampledFrom([]string{"", "", "c1", "c2", "nobody"}).Draw(rt, "call"),
				Kinds:   rapid.SliceOfN(rapid.SampledFrom(kinds), 0, 3).Draw(rt, "kinds"),
				About:   rapid.SliceOfN(rapid.SampledFrom([]string{"1", "\"2", "9}", "nobody", "%"}), 0, 3).Draw(rt, "about"),
				After:   rapid.Int64Range(-1, int64(len(all))+1).Draw(rt, "after"),
				Before:  rapid.Int64Range(0, int64(len(all))+2).Draw(rt, "before"),
				Newest:  rapid.Bool().Draw(rt, "newest"),
				Limit:   rapid.SampledFrom([]int{0, 0, 1, 2, 7, 1000}).Draw(rt, "limit"),
			}
			require.Equal(rt, naive(all, q), read(t, j, q))
		})
	})

	t.Run("IDs are found by their beginning", func(t *testing.T) {
		for prefix, want := range map[string][]string{
			"t": {"t'; --", "t1", "t2"}, "t1": {"t1"}, "c": {"c1", "c2"}, "c2": {"c2"}, "s": nil, "t11": nil, "": {"c1", "c2", "t'; --"},
		} {
			found, err := journal.FindIDs(t.Context(), j, prefix, 3)
			require.NoError(t, err)
			require.Equal(t, want, slices.Clip(append([]string(nil), found...)), prefix)
		}
	})

	t.Run("a reader may stop, and may ask again while it reads", func(t *testing.T) {
		n := 0
		for e, err := range j.Entries(t.Context(), journal.Query{}) {
			require.NoError(t, err)
			for inner, err := range j.Entries(t.Context(), journal.Query{After: e.Pos - 1, Limit: 1}) {
				require.NoError(t, err)
				require.Equal(t, e, inner)
			}
			if n++; n == 20 {
				break
			}
		}
		require.Equal(t, 20, n)
	})

	t.Run("a sequence can be run twice", func(t *testing.T) {
		seq := j.Entries(t.Context(), journal.Query{Limit: 3})
		for range 2 {
			n := 0
			for _, err := range seq {
				require.NoError(t, err)
				n++
			}
			require.Equal(t, 3, n)
		}
	})

	t.Run("entries appended while reading do not disturb", func(t *testing.T) {
		n := 0
		for e, err := range j.Entries(t.Context(), journal.Query{}) {
			require.NoError(t, err)
			if n < len(all) {
				require.Equal(t, all[n], bare(t, e))
				require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: numbered("late", 1)}))
			}
			if n++; n > 3*len(all) {
				break // a reader that follows its own writer never ends
			}
		}
		require.GreaterOrEqual(t, n, len(all))
		require.LessOrEqual(t, n, 2*len(all))
	})
}

func someKinds() []record.Kind {
	return []record.Kind{record.KindInvalid, record.KindRevertNote, record.KindSavepoint, record.KindCommitted}
}

// fill appends entries with every combination of header fields, in batches of
// very different sizes.
func fill(t *testing.T, j journal.Journal) []record.Entry {
	var all []record.Entry
	for _, session := range []string{"", "s1", "s2"} {
		for _, txn := range []string{"", "t1", "t2", "t'; --"} {
			for _, call := range []string{"", "c1", "c2"} {
				var batch []record.Entry
				for i, kind := range someKinds() {
					batch = append(batch, entry(record.Header{Kind: kind, Session: session, Txn: txn, Call: call}, len(all)+i))
				}
				all = append(all, at(int64(len(all)+1), batch)...)
				require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: batch}))
			}
		}
	}
	return all
}

func naive(all []record.Entry, q journal.Query) []record.Entry {
	var found []record.Entry
	for _, e := range all {
		h := e.Header
		wanted := e.Pos > q.After && (q.Before == 0 || e.Pos < q.Before)
		wanted = wanted && (q.Session == "" || h.Session == q.Session)
		wanted = wanted && (q.Txn == "" || h.Txn == q.Txn)
		wanted = wanted && (q.Call == "" || h.Call == q.Call)
		wanted = wanted && (len(q.Kinds) == 0 || slices.Contains(q.Kinds, h.Kind))
		wanted = wanted && (len(q.About) == 0 || slices.ContainsFunc(q.About, func(text string) bool { return bytes.Contains(e.Body, []byte(text)) }))
		if wanted {
			found = append(found, e)
		}
	}
	if q.Newest {
		slices.Reverse(found)
	}
	if q.Limit > 0 && q.Limit < len(found) {
		found = found[:q.Limit]
	}
	return found
}
