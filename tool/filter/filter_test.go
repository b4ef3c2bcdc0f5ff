package filter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/filter"
)

// world is a runtime with filters, on a clock of its own.
type world struct {
	*testing.T
	host     *hosttest.Host
	rt       *agent.Runtime
	ran      atomic.Int64
	revision string
	effect   perm.Effect
}

func newWorld(t *testing.T, filters ...tool.Filter) *world {
	w := &world{T: t, host: hosttest.New(1), revision: "r1", effect: perm.Allow}
	engine := perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(w.effect, perm.Details{Revision: w.revision}), nil
	})
	var err error
	w.rt, err = agent.New(agent.On(w.host), agent.Log(slog.New(slog.DiscardHandler)), agent.Policy(engine), agent.Filters(filters...), agent.Wait(),
		agent.Tools(w.tool("look", revert.Pure), w.tool("send", revert.Deferrable), w.tool("read", revert.Pure, perm.Access(perm.Connect, "https://api.example.com/**"))))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.rt.Close()) })
	return w
}

// tool takes a second of the clock for each "s" of its input.
func (w *world) tool(name string, class revert.EffectClass, needs ...perm.ResourceAccess) tool.Tool {
	tl, err := tool.FromSpec(tool.Spec{
		Name: name, EffectClass: class, Needs: needs,
		Execute: func(_ context.Context, _ ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
			n := w.ran.Add(1)
			w.host.Advance(time.Duration(strings.Count(string(in), "s")) * time.Second)
			if strings.Contains(string(in), "fail") {
				return tool.Result{}, tool.NoEffect(errors.New("it failed"))
			}
			return tool.Text(fmt.Sprint("ran ", n)), nil
		},
	})
	require.NoError(w, err)
	return tl
}

func (w *world) session(who string) *agent.Txn {
	s, err := w.rt.Session(context.Background(), perm.Principal{ID: who})
	require.NoError(w, err)
	tx, err := s.Begin(context.Background())
	require.NoError(w, err)
	return tx
}

func (w *world) call(tx *agent.Txn, name, in string) tool.Outcome {
	out, _ := tx.Invoke(context.Background(), name, in)
	return out
}

func TestCacheAnswersOnlyWhatFollowsFromTheInput(t *testing.T) {
	w := newWorld(t, filter.Cache{Entries: 2, Keep: time.Minute}.Filter())
	tx := w.session("coder")
	first := w.call(tx, "look", "x")
	again := w.call(tx, "look", "x")
	require.Equal(t, first.Text, again.Text)
	require.Equal(t, "cache", again.Filter)
	require.Empty(t, first.Filter)
	for name, out := range map[string]func() tool.Outcome{
		"another input":     func() tool.Outcome { return w.call(tx, "look", "y") },
		"another principal": func() tool.Outcome { return w.call(w.session("other"), "look", "x") },
		"a tool with needs": func() tool.Outcome { w.call(tx, "read", "x"); return w.call(tx, "read", "x") },
		"a failed call":     func() tool.Outcome { w.call(tx, "look", "fail"); return w.call(tx, "look", "fail") },
		"another policy": func() tool.Outcome {
			w.revision = "r2"
			defer func() { w.revision = "r1" }()
			return w.call(tx, "look", "x")
		},
		"a policy without a revision": func() tool.Outcome {
			w.revision = ""
			defer func() { w.revision = "r1" }()
			w.call(tx, "look", "z")
			return w.call(tx, "look", "z")
		},
	} {
		before := w.ran.Load()
		require.Empty(t, out().Filter, name)
		require.Greater(t, w.ran.Load(), before, name)
	}
	w.call(tx, "look", "1")
	w.call(tx, "look", "2")
	w.call(tx, "look", "3")
	require.Equal(t, "cache", w.call(tx, "look", "2").Filter)
	require.Empty(t, w.call(tx, "look", "1").Filter, "it was displaced")
	w.host.Advance(time.Minute)
	require.Empty(t, w.call(tx, "look", "2").Filter, "it is too old")

	w = newWorld(t, filter.Cache{Bytes: 1}.Filter())
	tx = w.session("coder")
	w.call(tx, "look", "x")
	require.Empty(t, w.call(tx, "look", "x").Filter, "no result fits")
}

func TestRate(t *testing.T) {
	for _, shared := range []bool{false, true} {
		w := newWorld(t, filter.Rate{Calls: 2, Per: time.Minute, Shared: shared}.Filter())
		one, two := w.session("coder"), w.session("other")
		require.Equal(t, tool.StatusDone, w.call(one, "look", "a").Status)
		w.host.Advance(30 * time.Second)
		require.Equal(t, tool.StatusDone, w.call(one, "look", "b").Status)
		refused := w.call(one, "look", "c")
		require.Equal(t, tool.StatusDenied, refused.Status)
		require.Contains(t, refused.Text, "the next one may in 29.9")
		require.Equal(t, shared, w.call(two, "look", "c").Status == tool.StatusDenied)
		w.host.Advance(30 * time.Second)
		require.Equal(t, tool.StatusDone, w.call(one, "look", "d").Status)
		require.Equal(t, tool.StatusDenied, w.call(one, "look", "e").Status)
	}
	w := newWorld(t, filter.Rate{}.Filter())
	require.Equal(t, tool.StatusDenied, w.call(w.session("coder"), "look", "a").Status, "the zero Rate refuses")
}

// TestBudgetIsNotSpentTwice: of many calls at once exactly as many run as there is
// left, in each session and over all of them.
func TestBudgetIsNotSpentTwice(t *testing.T) {
	w := newWorld(t, filter.Budget{Runtime: filter.Amounts{Calls: 7}, Session: filter.Amounts{Calls: 5}}.Filter())
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
		Session: filter.Amounts{Time: 10 * time.Second, Cost: 100, Output: 1000}, Notice: -1,
		Most: func(f *tool.Filtered) filter.Amounts { return filter.Amounts{Cost: 60, Time: 2 * time.Second} },
		Cost: func(*tool.Filtered, tool.Outcome) int64 { return 25 },
	}
	w := newWorld(t, dear.Filter())
	tx := w.session("coder")
	require.Equal(t, tool.StatusDone, w.call(tx, "look", "sss").Status, "25 of 100, 3 s of 10")
	require.Equal(t, tool.StatusFailed, w.call(tx, "look", "fail").Status, "50: it ran")
	over := w.call(tx, "look", "x")
	require.Contains(t, over.Error.Why, "50 of cost of 100 of cost used", "60 do not fit beside 50, though 25 would have")
	require.NotEmpty(t, over.Ends)
	require.EqualValues(t, 2, w.ran.Load())

	w = newWorld(t, filter.Budget{Session: filter.Amounts{Time: 5 * time.Second}, Notice: -1}.Filter())
	tx = w.session("coder")
	require.Equal(t, tool.StatusDone, w.call(tx, "look", "ssssssss").Status, "nothing was reserved")
	require.Contains(t, w.call(tx, "look", "x").Error.Why, "of 5s used")

	w = newWorld(t, filter.Budget{Session: filter.Amounts{Output: 10}, Notice: -1}.Filter())
	tx = w.session("coder")
	require.Equal(t, tool.StatusDone, w.call(tx, "look", "x").Status)
	require.Equal(t, tool.StatusDone, w.call(tx, "look", "x").Status)
	require.Contains(t, w.call(tx, "look", "x").Error.Why, "10 bytes")
}

// TestBudgetOfCallsThatWait: a denied or waiting call uses up nothing, a held one is
// paid for when it is held and runs when it is released.
func TestBudgetOfCallsThatWait(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, filter.Budget{Session: filter.Amounts{Calls: 2}}.Filter(), tool.Filter{
		Name: "strict", Before: func(_ context.Context, f *tool.Filtered) error {
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

func TestRedact(t *testing.T) {
	res := tool.Result{
		Text: "key sk-1 and sk-22", JSON: json.RawMessage(`{"a":["sk-3",{"b":"x sk-4 y"}],"n":12,"sk-5":true}`), Meta: map[string]string{"m": "sk-6"},
		Sources: []provenance.Reference{{Title: "sk-7", URL: "https://example.com/sk-8"}},
		Parts:   []tool.Part{{MediaType: "image/png", Data: []byte("..sk-9..")}, {MediaType: "image/png", Data: []byte("clean")}},
	}
	out, err := filter.Redact(regexp.MustCompile(`sk-\d+`), nil).After(context.Background(), nil, res)
	require.NoError(t, err)
	require.Equal(t, "key (hidden) and (hidden)", out.Text)
	require.JSONEq(t, `{"a":["(hidden)",{"b":"x (hidden) y"}],"n":12,"sk-5":true}`, string(out.JSON))
	require.Equal(t, "(hidden)", out.Meta["m"])
	require.Equal(t, []provenance.Reference{{Title: "(hidden)", URL: "https://example.com/(hidden)"}}, out.Sources)
	require.Equal(t, "(hidden)", string(out.Parts[0].Data))
	require.Equal(t, "clean", string(out.Parts[1].Data))
	_, err = filter.Redact().After(context.Background(), nil, tool.Result{JSON: json.RawMessage("{")})
	require.Error(t, err, "what cannot be read is not delivered")
}

func TestLog(t *testing.T) {
	var text bytes.Buffer
	w := newWorld(t, filter.Log(slog.New(slog.NewTextHandler(&text, nil))), filter.Rate{Calls: 1, Per: time.Hour}.Filter())
	tx := w.session("coder")
	w.call(tx, "look", "ss private")
	w.call(tx, "look", "x")
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], "level=INFO")
	require.Contains(t, lines[0], "tool=look status=done class=pure changes=0 took=2.0")
	require.Contains(t, lines[1], "level=WARN")
	require.Contains(t, lines[1], "stage=filter filter=rate")
	require.NotContains(t, text.String(), "private")
}
