package filter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/filter"
)

// TestCacheKeepsWhatReadsNothing, and of that no more than its bounds let it.
func TestCacheKeepsWhatReadsNothing(t *testing.T) {
	w := newFilterSetup(t, must(filter.Cache{MaxEntries: 2, TTL: time.Minute}.Filter()))
	tx := w.session("coder")
	first := w.call(tx, "look", "x")
	again := w.call(tx, "look", "x")
	require.Equal(t, first.Text, again.Text)
	require.Equal(t, "cache", again.Filter)
	require.Empty(t, first.Filter)
	for name, out := range map[string]func() tool.Outcome{
		"a tool with needs":      func() tool.Outcome { w.call(tx, "read", "x"); return w.call(tx, "read", "x") },
		"a tool that is trusted": func() tool.Outcome { w.call(tx, "now", "x"); return w.call(tx, "now", "x") },
		"a failed call":          func() tool.Outcome { w.call(tx, "look", "fail"); return w.call(tx, "look", "fail") },
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
	w.host.Advance(-time.Second)
	require.Empty(t, w.call(tx, "look", "2").Filter, "it is of a time to come")
	w.host.Advance(time.Minute)
	require.Empty(t, w.call(tx, "look", "2").Filter, "it is too old")

	w = newFilterSetup(t, must(filter.Cache{MaxBytes: 1}.Filter()))
	tx = w.session("coder")
	w.call(tx, "look", "x")
	require.Empty(t, w.call(tx, "look", "x").Filter, "no result fits")
}

// TestCacheKeepsNoAnswerOfAnother filter: that may follow from anything.
func TestCacheKeepsNoAnswerOfAnother(t *testing.T) {
	answers := 0
	other := filter.Filter{Name: "other", Before: func(_ context.Context, f filter.Call) error {
		answers++
		f.Answer(tool.Text(fmt.Sprint("answer ", answers)))
		return nil
	}}
	w := newFilterSetup(t, must(filter.Cache{}.Filter()), other)
	tx := w.session("coder")
	require.Equal(t, "answer 1", w.call(tx, "look", "x").Text)
	require.Equal(t, "answer 2", w.call(tx, "look", "x").Text)
	require.Zero(t, w.ran.Load())
}

// situation is all that the answer to a call may depend on.
type situation struct {
	who, session, client, labels, revision, tool, input string
}

// identifyingTools are tools of one name: another description, other code behind the same
// declaration, and one with settings, configured in two ways. Each says which it is.
func identifyingTools(t *testing.T, run func() int) map[string]tool.Tool {
	made := func(name string, s tool.Spec) tool.Tool {
		s.Name, s.EffectClass, s.Confinement = "look", effect.Pure, tool.Handles
		s.Execute = func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text(fmt.Sprintf("%s ran %d", name, run())), nil
		}
		tl, err := tool.FromSpec(s)
		require.NoError(t, err)
		return tl
	}
	all := map[string]tool.Tool{
		"plain": made("plain", tool.Spec{}), "other code": made("other code", tool.Spec{}), "other words": made("other words", tool.Spec{Description: "Looks."}),
	}
	unit := made("set", tool.Spec{Settings: tool.Params{{Name: "unit", Type: "string"}}})
	for _, value := range []string{"a", "b"} {
		set, _, err := unit.Configure(context.Background(), json.RawMessage(`{"unit":"`+value+`"}`))
		require.NoError(t, err)
		all["set to "+value] = set
	}
	require.Equal(t, all["plain"].Digest(), all["other code"].Digest())
	require.Equal(t, all["set to a"].Digest(), all["set to b"].Digest())
	return all
}

// TestCacheSharesNothing: of calls in any order, two get one answer if and only if all
// that it may depend on is the same.
func TestCacheSharesNothing(t *testing.T) {
	ctx, hits, misses := context.Background(), 0, 0
	principals := map[string]perm.Principal{
		"a": {ID: "a"}, "b": {ID: "b"}, "user": {ID: "a", Kind: "user"}, "role": {ID: "a", Roles: []string{"r"}}, "handed": {ID: "a", Chain: []string{"boss"}},
	}
	clients := map[string]perm.ClientFacts{"chat": {Surface: "chat"}, "editor": {Surface: "editor"}}
	names := func(words ...string) *rapid.Generator[string] { return rapid.SampledFrom(words) }
	statcheck.Checks(t, 100, 3000)
	rapid.Check(t, func(r *rapid.T) {
		runs, revision := 0, ""
		engine := perm.EngineFunc(func(_ context.Context, q perm.Request) (perm.Decision, error) {
			d := perm.Details{Revision: revision}
			if q.Tool.Name == "mark" {
				d.Labels = []string{strings.Trim(string(q.Call.Args), `"`)}
			}
			return perm.NewDecision(perm.Allow, d), nil
		})
		mark, err := tool.Create("mark", "", func(_ context.Context, in string) (string, error) { return in, nil }, tool.Pure())
		require.NoError(r, err)
		variants := identifyingTools(t, func() int { runs++; return runs })
		rt, err := agent.New(agent.Host(hosttest.New(1)), agent.Log(slog.New(slog.DiscardHandler)), agent.Policy(engine), agent.Filters(must(filter.Cache{}.Filter())),
			agent.Tools(mark, variants["plain"]))
		require.NoError(r, err)
		defer func() { require.NoError(r, rt.Close()) }()
		sessions, labels, answers := map[string]*agent.Txn{}, map[string]map[string]bool{}, map[situation]string{}
		for range 40 {
			now := situation{
				who: names("a", "b", "user", "role", "handed").Draw(r, "who"), session: names("1", "2").Draw(r, "session"), client: names("chat", "editor").Draw(r, "client"),
				revision: names("r1", "r1", "r2").Draw(r, "revision"), tool: names("plain", "plain", "other code", "other words", "set to a", "set to b").Draw(r, "tool"),
				input: names("x", "y").Draw(r, "input"),
			}
			id := now.who + now.session + now.client
			if sessions[id] == nil {
				s, err := rt.Session(ctx, principals[now.who], agent.ClientProfile(clients[now.client]))
				require.NoError(r, err)
				sessions[id], err = s.Begin(ctx)
				require.NoError(r, err)
				labels[id] = map[string]bool{}
			}
			revision = now.revision
			if label := names("", "", "", "red", "blue").Draw(r, "label"); label != "" {
				_, err := sessions[id].Invoke(ctx, "mark", label)
				require.NoError(r, err)
				labels[id][label] = true
			}
			now.labels = fmt.Sprint(labels[id])
			require.NoError(r, rt.SetTools(mark, variants[now.tool]))
			out, err := sessions[id].Invoke(ctx, "look", now.input)
			require.NoError(r, err)
			if was, ok := answers[now]; ok {
				hits++
				require.Equal(r, was, out.Text, "%+v", now)
				require.Equal(r, "cache", out.Filter)
				continue
			}
			misses++
			require.Empty(r, out.Filter, "%+v", now)
			require.Equal(r, fmt.Sprintf("%s ran %d", strings.Split(now.tool, " to ")[0], runs), out.Text)
			answers[now] = out.Text
		}
	})
	require.Positive(t, hits)
	require.Positive(t, misses)
}
