package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/history"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// TestHistoryCost asks after 10 and after 10,000 calls: a question must cost the
// same, also one about a file that no call named before.
func TestHistoryCost(t *testing.T) {
	cost := func(calls int) float64 {
		index := pastOf(calls)
		n := 0
		ask := func() {
			h := index.History()
			n++
			fresh := history.Query{Resource: fmt.Sprintf("file://ws/new%d", n)}
			for _, q := range append(slices.Clip(commonQueries()), fresh) {
				_, err := h.Find(q)
				require.NoError(t, err)
			}
		}
		ask() // makes the indexes
		return testing.AllocsPerRun(50, ask)
	}
	few, many := cost(10), cost(10_000)
	// The runtime allocates some too; a question that reads all calls, thousands.
	require.InDelta(t, few, many, few/2, "%v allocations after 10 calls, %v after 10,000", few, many)
}

// pastOf returns the index of a session with calls of seven tools, each with a
// file of its own.
func pastOf(calls int) *agent.Past {
	var index agent.Past
	for i := range calls {
		addTo(&index, i)
	}
	return &index
}

func addTo(index *agent.Past, i int) {
	index.Add(fmt.Sprintf("c_%06d", i), history.Call{
		Tool: fmt.Sprintf("t%d", i%7), Outcome: "done", Effect: "pure", Resources: []string{fmt.Sprintf("file://ws/%d", i)},
		Args: json.RawMessage(`{"amount":0.1}`), At: time.Unix(int64(i), 0),
	})
}

func commonQueries() []history.Query {
	now := time.Unix(20_000, 0)
	return []history.Query{
		{Tool: "t*", Window: "1h", Now: now},
		{Effect: "pure", Resource: "file://ws/**"},
		{Resource: "file://ws/7"},
		{Tool: "t1", Sum: "/amount", Window: "24h", Now: now},
		{Tool: "t*", Sum: "/amount"},
		{Tool: "t2", Window: "5000"},
	}
}

// BenchmarkHistory decides a call by rules about earlier calls, and adds it to
// them.
func BenchmarkHistory(b *testing.B) {
	policy, err := rego.Load(rego.Source{FS: fstest.MapFS{"p.rego": {Data: []byte(`package remit

import data.remit.lib

allow contains "within the budget" if {
	input.tool.name == "t1"
	lib.sum_with({"tool": "t*"}, "/amount", "24h") < 1000000
	lib.count({"tool": "t1"}, "5000") < 1000000
	not lib.before({"tool": "absent"}, {"tool": "t2"})
	not lib.happened({"resource": input.access.resource.text})
}
`)}}})
	require.NoError(b, err)
	for _, calls := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(calls), func(b *testing.B) {
			b.ReportAllocs()
			var index *agent.Past
			next := 0
			for i := range b.N {
				if i%200 == 0 { // so that the session remains as long as the name says
					b.StopTimer()
					index, next = pastOf(calls), calls
					for _, q := range []history.Query{{Tool: "t*", Sum: "/amount"}, {Tool: "t1"}, {Tool: "t2"}} {
						_, err := index.History().Find(q)
						require.NoError(b, err)
					}
					b.StartTimer()
				}
				res, err := perm.ParseResource(fmt.Sprintf("file://ws/%d", next))
				require.NoError(b, err)
				d, err := policy.Decide(context.Background(), perm.Request{
					Purpose: perm.PurposeRun, Tool: perm.ToolFacts{Name: "t1"}, Call: perm.CallFacts{Args: json.RawMessage(`{"amount":0.1}`)},
					Access: perm.AccessFacts{Resource: res.Facts()}, Session: perm.SessionFacts{Past: index.History()}, Time: time.Unix(int64(next), 0),
				})
				if err != nil || d.Effect() != perm.Allow {
					b.Fatal(err, d.Reasons())
				}
				addTo(index, next)
				next++
			}
		})
	}
}
