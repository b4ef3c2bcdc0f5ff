package agent_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/pipeline"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
)

func deep(levels int) any {
	if levels == 0 {
		return 1
	}
	return []any{deep(levels - 1)}
}

// TestLargeInputsAndOutputs: what is over a limit is one call's own trouble. The
// transaction goes on, and the journal holds and gives back what is within it.
func TestLargeInputsAndOutputs(t *testing.T) {
	ctx := context.Background()
	const kib, mib = 1 << 10, 1 << 20
	size := func(_ context.Context, in string) (string, error) { return in, nil }
	echo, err := tool.Create("echo", "", size, tool.Pure())
	require.NoError(t, err)
	shout, err := tool.Create("shout", "", func(context.Context, string) (string, error) { return strings.Repeat("x", 128*kib-100), nil }, tool.Pure())
	require.NoError(t, err)
	roar, err := tool.Create("roar", "", func(context.Context, string) (string, error) { return strings.Repeat("\x01", 32*kib), nil }, tool.Pure())
	require.NoError(t, err)
	list, err := tool.FromSpec(tool.Spec{
		Name: "list", EffectClass: effect.Pure, Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text("ok"), nil
		},
		Input: json.RawMessage(`{"type":"object","properties":{"of":{}},"additionalProperties":false}`),
	})
	require.NoError(t, err)
	tower, err := tool.FromSpec(tool.Spec{
		Name: "tower", EffectClass: effect.Pure,
		Execute: func(_ context.Context, _ ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
			n, err := strconv.Atoi(strings.Trim(string(in), `"`))
			return tool.Result{JSON: json.RawMessage(strings.Repeat("[", n) + strings.Repeat("]", n))}, err
		},
	})
	require.NoError(t, err)
	j, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "state"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	e := mustLoad(t, rego.Options{Modules: map[string]string{"p.rego": "package remit\nallow contains \"pure\" if input.call.effect_class == \"pure\"\n"}})
	rt := newRuntime(t, agent.Tools(echo, shout, roar, list, tower), agent.Policy(e), agent.Journal(j), agent.Limits(tool.Limits{MaxInput: 64 * kib, MaxOutput: 128 * kib}))
	tx := begin(t, newSession(t, rt))
	grows := `{"of":[` + strings.Repeat("1e38,", 4*kib) + `1]}` // 5 bytes that are 39 in canonical form
	for _, tc := range []struct {
		name, tool string
		input      any
		want       tool.Status
		why        string
	}{
		{"as large as it may be", "echo", strings.Repeat("y", 64*kib-2), tool.StatusDone, ""},
		{"one byte more", "echo", strings.Repeat("y", 64*kib-1), tool.StatusInvalid, "the input: invalid JSON at the top: the document is larger than the limit of 65536 bytes"},
		{"by its escapes", "echo", strings.Repeat("\x01", 12*kib), tool.StatusInvalid, "larger than the limit of 65536 bytes"},
		{"in its canonical form", "list", json.RawMessage(grows), tool.StatusInvalid, "larger than the limit of 65536 bytes"},
		{"as deep as it may be", "list", json.RawMessage(`{"of":` + strings.Repeat("[", 119) + strings.Repeat("]", 119) + `}`), tool.StatusDone, ""},
		{"one level more", "list", json.RawMessage(`{"of":` + strings.Repeat("[", 120) + strings.Repeat("]", 120) + `}`), tool.StatusInvalid, "nested deeper than the limit of 120"},
		{"one level more, of Go values", "list", tool.Args{"of": deep(120)}, tool.StatusInvalid, "nested deeper than the limit of 120"},
		{"as deep, of Go values", "list", tool.Args{"of": deep(119)}, tool.StatusDone, ""},
		{"a deep result", "tower", "120", tool.StatusDone, ""},
		{"a deeper one", "tower", "121", tool.StatusFailed, "nested deeper than the limit of 120"},
		{"a large result", "shout", "", tool.StatusDone, ""},
		{"a result over the limit", "roar", "", tool.StatusFailed, "the tool's result has 196619 bytes; the limit is 131072"},
		{"and what comes after", "echo", "hello", tool.StatusDone, ""},
	} {
		out, _ := tx.Invoke(ctx, tc.tool, tc.input)
		require.Equal(t, tc.want, out.Status, "%s: %+v", tc.name, out.Error)
		if tc.why != "" {
			require.Contains(t, out.Error.Why, tc.why, tc.name)
		}
	}
	require.NoError(t, tx.Commit(ctx))
	all, err := revert.Load(ctx, j, tx.ID())
	require.NoError(t, err)
	require.Len(t, all.Calls, 13)
	require.Len(t, all.Calls[10].Done.Output, 128*kib-100+len(`{"text":""}`))

	_, err = agent.New(quiet(), agent.Limits(tool.Limits{MaxDepth: 121}))
	require.ErrorContains(t, err, "tool.Limits.MaxDepth is 121 levels; at most 120")
	for name, l := range map[string]tool.Limits{"MaxInput": {MaxInput: 49 * mib}, "MaxOutput": {MaxOutput: 49 * mib}} {
		_, err := agent.New(quiet(), agent.Limits(l))
		require.ErrorContains(t, err, "tool.Limits."+name+" is 51380224 bytes; at most 50331648 can be kept in a record")
	}
	// A record holds the largest input, and the largest output, that there can be.
	usual := pipeline.WithDefaults(tool.Limits{})
	require.LessOrEqual(t, max(usual.MaxInput, usual.MaxOutput)+8*mib, canon.DefaultLimits().Bytes)
	if !statcheck.Whole() {
		return
	}
	for _, most := range []tool.Limits{{}, {MaxInput: 48 * mib, MaxOutput: 48 * mib}} {
		rt = newRuntime(t, agent.Tools(echo), agent.Policy(e), agent.Limits(most))
		tx = begin(t, newSession(t, rt))
		_, err = tx.Invoke(ctx, "echo", strings.Repeat("y", pipeline.WithDefaults(most).MaxInput-100))
		require.NoError(t, err)
		require.NoError(t, tx.Commit(ctx))
	}
}

// TestReasonsMadeOfWhatIsAsked: a rule that repeats what it was asked about makes no
// record that cannot be kept.
func TestReasonsMadeOfWhatIsAsked(t *testing.T) {
	ctx := context.Background()
	talk, err := tool.FromSpec(tool.Spec{
		Name: "talk", EffectClass: effect.Pure, Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text("ok"), nil
		},
		Input: json.RawMessage(`{"type":"object","properties":{"of":{"type":"array","items":{"type":"string"}}},"additionalProperties":false}`),
	})
	require.NoError(t, err)
	e := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": `package remit
deny contains sprintf("not %s", [x]) if some x in input.call.args.of
hint contains x if some x in input.call.args.of
`}})
	rt := newRuntime(t, agent.Tools(talk), agent.Policy(e))
	tx := begin(t, newSession(t, rt))
	var of []string
	for i := range 120 {
		of = append(of, strings.Repeat(string(rune('a'+i%26)), 20_000)+string(rune('a'+i/26)))
	}
	out, err := tx.Invoke(ctx, "talk", tool.Args{"of": of})
	require.ErrorIs(t, err, tool.ErrDenied)
	require.Len(t, out.Decision.Reasons, 101)
	require.Equal(t, "and 20 more", out.Decision.Reasons[100].Text)
	require.Len(t, out.Decision.Hints, 100)
	require.Less(t, len(out.Decision.Reasons[0].Text), 17<<10)
	_, err = tx.Invoke(ctx, "talk", tool.Args{"of": []string{}})
	require.ErrorIs(t, err, tool.ErrDenied, "the transaction goes on")
	require.NotErrorIs(t, err, agent.ErrTxnEnded)
}
