package sqlite_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// TestPlan checks that an index serves each query for some kinds, a session, a
// transaction or a call, in journal order and without reading other entries.
// Such queries may run before every call.
func TestPlan(t *testing.T) {
	j := open(t, t.TempDir())
	defer func() { require.NoError(t, j.Close()) }()
	one, two := []record.Kind{record.KindRevoked}, []record.Kind{record.KindRevoked, record.KindRemembered, record.KindRevoked}
	for _, tt := range []struct {
		q     journal.Query
		index string
		times int
	}{
		{journal.Query{Kinds: one}, "entries_kind", 1},
		{journal.Query{Kinds: two}, "entries_kind", 2},
		{journal.Query{Kinds: one, About: []string{"a", "b"}}, "entries_kind", 1},
		{journal.Query{Kinds: two, Session: "s"}, "entries_session", 1},
		{journal.Query{Kinds: two, Session: "s", Txn: "t"}, "entries_txn", 1},
		{journal.Query{Kinds: one, Session: "s", Txn: "t", Call: "c"}, "entries_call", 1},
	} {
		for _, newest := range []bool{false, true} {
			tt.q.Newest = newest
			t.Run(fmt.Sprintf("%+v", tt.q), func(t *testing.T) {
				plan, err := j.Plan(tt.q)
				require.NoError(t, err)
				require.Equal(t, tt.times, strings.Count(plan, "SEARCH entries USING INDEX "+tt.index), plan)
				require.NotContains(t, plan, "SCAN", plan)
				require.NotContains(t, plan, "TEMP B-TREE", plan)
			})
		}
	}
}

// TestPlanWithoutIndex checks that a query for kinds without an index reads in
// order, once for all of its kinds.
func TestPlanWithoutIndex(t *testing.T) {
	j := open(t, t.TempDir())
	defer func() { require.NoError(t, j.Close()) }()
	for _, tt := range []struct {
		kinds  []record.Kind
		search int
	}{
		{[]record.Kind{record.KindBegun}, 0},
		{[]record.Kind{record.KindCommitted, record.KindAborted, record.KindBegun, record.KindRevoked, record.KindStarted, record.KindDone}, 2},
	} {
		for _, newest := range []bool{false, true} {
			plan, err := j.Plan(journal.Query{Kinds: tt.kinds, Newest: newest})
			require.NoError(t, err)
			require.Equal(t, tt.search, strings.Count(plan, "INDEX entries_kind"), plan)
			require.Equal(t, 1, strings.Count(plan, "SEARCH entries USING INTEGER PRIMARY KEY"), plan)
			require.NotContains(t, plan, "TEMP B-TREE", plan)
		}
	}
}
