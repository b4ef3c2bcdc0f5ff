package sqlite_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// TestPlan checks that each query for some kinds, a session, a transaction or a
// call reads the places of one name in their order, and the batches that these
// name: such queries may run before every call.
func TestPlan(t *testing.T) {
	j := open(t, t.TempDir())
	defer func() { require.NoError(t, j.Close()) }()
	one, two := []record.Kind{record.KindRevoked}, []record.Kind{record.KindRevoked, record.KindRemembered, record.KindRevoked}
	for _, tt := range []struct {
		q     journal.Query
		times int
	}{
		{journal.Query{Kinds: one}, 1},
		{journal.Query{Kinds: two}, 2},
		{journal.Query{Kinds: one, About: []string{"a", "b"}}, 1},
		{journal.Query{Kinds: two, Session: "s"}, 1},
		{journal.Query{Kinds: two, Session: "s", Txn: "t"}, 1},
		{journal.Query{Kinds: one, Session: "s", Txn: "t", Call: "c"}, 1},
	} {
		for _, newest := range []bool{false, true} {
			tt.q.Newest = newest
			t.Run(fmt.Sprintf("%+v", tt.q), func(t *testing.T) {
				plan, err := j.Plan(tt.q)
				require.NoError(t, err)
				require.Equal(t, tt.times, strings.Count(plan, "SEARCH places USING PRIMARY KEY (name=? AND key>? AND key<?)"), plan)
				require.Equal(t, tt.times, strings.Count(plan, "SEARCH batches USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"), plan)
				require.NotContains(t, plan, "SCAN", plan)
				require.NotContains(t, plan, "TEMP B-TREE", plan)
			})
		}
	}
}

// TestPlanWithoutPlaces checks that a query for kinds that every call leaves
// reads the batches in order, once for all of its kinds.
func TestPlanWithoutPlaces(t *testing.T) {
	j := open(t, t.TempDir())
	defer func() { require.NoError(t, j.Close()) }()
	for _, kinds := range [][]record.Kind{{record.KindDone}, {record.KindCommitted, record.KindStarted, record.KindDone}, nil} {
		for _, newest := range []bool{false, true} {
			plan, err := j.Plan(journal.Query{Kinds: kinds, Newest: newest})
			require.NoError(t, err)
			require.Equal(t, "SEARCH batches USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)", plan)
		}
	}
}
