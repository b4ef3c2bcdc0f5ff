package filter_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/filter"
)

// TestBudgetIsNotSpentTwice: of many calls at once exactly as many run as there is
// left, in each session and over all of them.
func TestBudgetIsNotSpentTwice(t *testing.T) {
	w := newFilterSetup(t, must(filter.Budget{Runtime: filter.Usage{Calls: 7}, Session: filter.Usage{Calls: 5}}.Filter()))
	var all sync.WaitGroup
	var done [2]atomic.Int64
	for i, tx := range []*agent.Txn{w.session("coder"), w.session("other")} {
		for n := range 12 {
			all.Go(func() {
				if out := w.call(tx, "look", fmt.Sprint(n)); out.Status == tool.StatusDone {
					done[i].Add(1)
				}
			})
		}
	}
	all.Wait()
	require.EqualValues(t, 7, w.ran.Load())
	require.EqualValues(t, 7, done[0].Load()+done[1].Load())
	require.LessOrEqual(t, max(done[0].Load(), done[1].Load()), int64(5))
}

func TestBudgetSettlesWhatWasUsed(t *testing.T) {
	dear := filter.Budget{
		Session: filter.Usage{Time: 10 * time.Second, Cost: 100, Output: 1000}, WarnPercent: -1,
		EstimateUsage: func(f filter.Call) filter.Usage { return filter.Usage{Cost: 60, Time: 2 * time.Second} },
		Cost:          func(filter.Call, tool.Outcome) int64 { return 25 },
	}
	w := newFilterSetup(t, must(dear.Filter()))
	tx := w.session("coder")
	require.Equal(t, tool.StatusDone, w.call(tx, "look", "sss").Status, "25 of 100, 3 s of 10")
	require.Equal(t, tool.StatusFailed, w.call(tx, "look", "fail").Status, "50: it ran")
	over := w.call(tx, "look", "x")
	require.Contains(t, over.Error.Why, "50 of cost of 100 of cost used", "60 do not fit beside 50, though 25 would have")
	require.NotEmpty(t, over.EndLoop)
	require.EqualValues(t, 2, w.ran.Load())

	w = newFilterSetup(t, must(filter.Budget{Session: filter.Usage{Time: 5 * time.Second}, WarnPercent: -1}.Filter()))
	tx = w.session("coder")
	require.Equal(t, tool.StatusDone, w.call(tx, "look", "ssssssss").Status, "nothing was reserved")
	require.Contains(t, w.call(tx, "look", "x").Error.Why, "of 5s used")

	w = newFilterSetup(t, must(filter.Budget{Session: filter.Usage{Output: 10}, WarnPercent: -1}.Filter()))
	tx = w.session("coder")
	require.Equal(t, tool.StatusDone, w.call(tx, "look", "x").Status)
	require.Equal(t, tool.StatusDone, w.call(tx, "look", "x").Status)
	require.Contains(t, w.call(tx, "look", "x").Error.Why, "10 bytes")
}

// TestBudgetOfCallsThatWait: a denied or waiting call uses up nothing, a held one is
// paid for when it is held and runs when it is released.
func TestBudgetOfCallsThatWait(t *testing.T) {
	ctx := context.Background()
	w := newFilterSetup(t, must(filter.Budget{Session: filter.Usage{Calls: 2}}.Filter()), filter.Filter{
		Name: "strict", Before: func(_ context.Context, f filter.Call) error {
			if strings.Contains(string(f.Input()), "never") {
				return errors.New("never")
			}
			return nil
		},
	})
	tx := w.session("coder")
	for range 3 {
		require.Equal(t, "strict", w.call(tx, "look", "never").Filter)
	}
	w.effect = perm.Ask
	waiting := w.call(tx, "look", "asked")
	require.Equal(t, tool.StatusPending, waiting.Status)
	w.effect = perm.Hold
	require.Equal(t, tool.StatusHeld, w.call(tx, "send", "a").Status)
	require.Equal(t, tool.StatusHeld, w.call(tx, "send", "b").Status)
	require.Equal(t, "budget", w.call(tx, "send", "c").Filter)
	require.Zero(t, w.ran.Load())
	require.NoError(t, tx.Commit(ctx))
	require.EqualValues(t, 2, w.ran.Load())
	for _, o := range tx.Released() {
		require.Equal(t, tool.StatusDone, o.Status)
	}
}

// TestBudgetOfNumbersThatAreTooGreat: no sum of them comes out below its bound.
func TestBudgetOfNumbersThatAreTooGreat(t *testing.T) {
	var both sync.WaitGroup // calls of b are in flight together
	both.Add(2)
	together := filter.Filter{Name: "together", Before: func(_ context.Context, f filter.Call) error {
		if strings.Contains(string(f.Input()), "b") {
			both.Done()
			both.Wait()
		}
		return nil
	}}
	dear := filter.Budget{
		Session: filter.Usage{Cost: 100}, WarnPercent: -1,
		EstimateUsage: func(f filter.Call) filter.Usage {
			if strings.Contains(string(f.Input()), "dear") {
				return filter.Usage{Cost: math.MaxInt64}
			}
			return filter.Usage{Cost: 1}
		},
		Cost: func(f filter.Call, _ tool.Outcome) int64 {
			if strings.Contains(string(f.Input()), "b") {
				return math.MaxInt64
			}
			return 1
		},
	}
	w := newFilterSetup(t, must(dear.Filter()), together)
	tx := w.session("coder")
	require.Equal(t, tool.StatusDone, w.call(tx, "look", "a").Status)
	require.Equal(t, tool.StatusDenied, w.call(tx, "look", "dear").Status, "it does not fit beside 1")
	for _, out := range tx.InvokeAll(context.Background(), []agent.BatchCall{{Tool: "look", Input: "b1"}, {Tool: "look", Input: "b2"}}) {
		require.Equal(t, tool.StatusDone, out.Status)
	}
	require.Equal(t, tool.StatusDenied, w.call(tx, "look", "c").Status)
}

// TestBudgetGivesBack checks that no reservation remains after a call has ended
// in any way. Sequential calls are never refused because of others in flight.
// As many calls run as the budget allows.
func TestBudgetGivesBack(t *testing.T) {
	statcheck.Checks(t, 100, 3000)
	rapid.Check(t, func(r *rapid.T) {
		var goes string
		ways := rapid.SampledFrom([]string{"done", "fail", "refused later", "panics later", "not delivered", "answered", "cost panics", "told panics", "asked", "invalid"})
		after := filter.Filter{
			Name: "after",
			Before: func(_ context.Context, f filter.Call) error {
				switch goes {
				case "refused later":
					return errors.New("no")
				case "panics later":
					panic("no")
				case "answered":
					f.Answer(tool.Text("x"))
				}
				return nil
			},
			After: func(_ context.Context, _ filter.Call, r tool.Result) (tool.Result, error) {
				if goes == "not delivered" {
					return r, errors.New("no")
				}
				return r, nil
			},
			Ended: func(context.Context, filter.Call, tool.Outcome) {
				if goes == "told panics" {
					panic("no")
				}
			},
		}
		const calls, cost = 6, 20
		budget := filter.Budget{
			Runtime: filter.Usage{Calls: calls}, Session: filter.Usage{Cost: cost}, WarnPercent: -1,
			EstimateUsage: func(filter.Call) filter.Usage { return filter.Usage{Cost: 5} },
			Cost: func(_ filter.Call, o tool.Outcome) int64 {
				if goes == "cost panics" {
					panic("nobody knows")
				}
				return 2
			},
		}
		w := newFilterSetup(t, must(budget.Filter()), after)
		tx := w.session("coder")
		spent, used := int64(0), int64(0)
		for range 20 {
			goes = ways.Draw(r, "goes")
			input, name := goes, "look"
			w.effect = perm.Allow
			switch goes {
			case "asked":
				w.effect = perm.Ask
			case "invalid":
				name = "nothing"
			}
			out := w.call(tx, name, input)
			fits := spent+5 <= cost && used+1 <= calls
			switch {
			case goes == "asked":
				require.Equal(r, tool.StatusPending, out.Status)
			case goes == "invalid":
				require.Equal(r, tool.StatusInvalid, out.Status)
			case !fits:
				require.Equal(r, "budget", out.Filter, goes)
				require.Contains(r, out.Error.Why, "has too little left")
			case goes == "refused later" || goes == "panics later":
				require.Equal(r, "after", out.Filter)
			default:
				require.NotEqual(r, tool.StatusDenied, out.Status, "%s: %+v", goes, out.Error)
				used++
				if spent += 2; goes == "cost panics" {
					spent += 3 // what was reserved
				}
			}
		}
	})
}
