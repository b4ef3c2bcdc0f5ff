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
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/filter"
)

// filterSetup is a runtime with filters, on a clock of its own.
type filterSetup struct {
	*testing.T
	host     *hosttest.Host
	rt       *agent.Runtime
	ran      atomic.Int64
	revision string
	effect   perm.Effect
}

// must is for filters of valid settings.
func must(f filter.Filter, err error) filter.Filter {
	if err != nil {
		panic(err)
	}
	return f
}

func newFilterSetup(t *testing.T, filters ...filter.Filter) *filterSetup {
	w := &filterSetup{T: t, host: hosttest.New(1), revision: "r1", effect: perm.Allow}
	engine := perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(w.effect, perm.Details{Revision: w.revision}), nil
	})
	var err error
	w.rt, err = agent.New(agent.Host(w.host), agent.Log(slog.New(slog.DiscardHandler)), agent.Policy(engine), agent.Filters(filters...), agent.SuspendForApproval(),
		agent.Tools(w.tool("look", effect.Pure), w.tool("send", effect.Deferrable), w.tool("read", effect.Pure, perm.Access(perm.Connect, "https://api.example.com/**")), w.trusted("now")))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.rt.Close()) })
	return w
}

// tool takes a second of the clock for each "s" of its input.
func (w *filterSetup) tool(name string, class effect.Class, needs ...perm.ResourceAccess) tool.Tool {
	tl, err := tool.FromSpec(tool.Spec{
		Name: name, EffectClass: class, Needs: needs, Confinement: tool.Handles,
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

// trusted is a tool that nothing keeps from looking at a clock.
func (w *filterSetup) trusted(name string) tool.Tool {
	tl, err := w.tool(name, effect.Pure).Modify(func(s *tool.Spec) { s.Confinement = tool.Trusted })
	require.NoError(w, err)
	return tl
}

func (w *filterSetup) session(who string) *agent.Txn {
	s, err := w.rt.Session(context.Background(), perm.Principal{ID: who})
	require.NoError(w, err)
	tx, err := s.Begin(context.Background())
	require.NoError(w, err)
	return tx
}

func (w *filterSetup) call(tx *agent.Txn, name, in string) tool.Outcome {
	out, _ := tx.Invoke(context.Background(), name, in)
	return out
}

func TestRate(t *testing.T) {
	for _, shared := range []bool{false, true} {
		w := newFilterSetup(t, must(filter.Rate{MaxCalls: 2, Window: time.Minute, Shared: shared}.Filter()))
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
}

// TestConstructorsRefuse checks that no filter starts with settings that make it
// do nothing, or something else than they say.
func TestConstructorsRefuse(t *testing.T) {
	made := func(f filter.Filter, err error) error {
		require.Equal(t, err != nil, f.Check() != nil, "either a filter or an error")
		return err
	}
	for want, err := range map[string]error{
		"filter rate: MaxCalls 0: must be at least 1":                     made(filter.Rate{Window: time.Second}.Filter()),
		"filter rate: Window 0s: must be more than 0":                     made(filter.Rate{MaxCalls: 1}.Filter()),
		"filter budget: Session: a bound must not be negative":            made(filter.Budget{Session: filter.Usage{Cost: -1}}.Filter()),
		"filter budget: Runtime: a bound must not be negative":            made(filter.Budget{Runtime: filter.Usage{Time: -1}}.Filter()),
		"filter budget: WarnPercent 101: must be at most 100":             made(filter.Budget{WarnPercent: 101}.Filter()),
		"filter cache: MaxEntries, MaxBytes and TTL must not be negative": made(filter.Cache{TTL: -1}.Filter()),
		"filter redact: needs patterns, and none of them nil":             made(filter.Redact(regexp.MustCompile("a"), nil)),
		"filter log: the logger is nil":                                   made(filter.Log(nil)),
	} {
		require.EqualError(t, err, want)
	}
	require.Error(t, made(filter.Redact()))
}

// TestRateWhenTheClockIsSetBack checks that a call waits at most for the window
// after the clock was set back. The filter still counts the calls that began
// before.
func TestRateWhenTheClockIsSetBack(t *testing.T) {
	w := newFilterSetup(t, must(filter.Rate{MaxCalls: 2, Window: time.Minute}.Filter()))
	tx := w.session("coder")
	require.Equal(t, tool.StatusDone, w.call(tx, "look", "a").Status)
	w.host.Advance(-24 * time.Hour)
	require.Equal(t, tool.StatusDone, w.call(tx, "look", "b").Status)
	refused := w.call(tx, "look", "c")
	require.Equal(t, tool.StatusDenied, refused.Status, "two began, whatever the clock says")
	require.Contains(t, refused.Text, "the next one may in 59.9")
	w.host.Advance(time.Minute)
	require.Equal(t, tool.StatusDone, w.call(tx, "look", "d").Status)
	require.Equal(t, tool.StatusDone, w.call(tx, "look", "e").Status)
	require.Equal(t, tool.StatusDenied, w.call(tx, "look", "f").Status)
}

func TestLog(t *testing.T) {
	var text bytes.Buffer
	w := newFilterSetup(t, must(filter.Log(slog.New(slog.NewTextHandler(&text, nil)))), must(filter.Rate{MaxCalls: 1, Window: time.Hour}.Filter()))
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
