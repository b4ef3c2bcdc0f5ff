package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
	"github.com/remit-dev/remit/verify"
)

// oddities is a tool for each way a call can end.
func oddities(t *testing.T, ran *atomic.Int32) []tool.Tool {
	made := func(tl tool.Tool, err error) tool.Tool { return mustTool(t, tl, err) }
	counted := func(ctx context.Context, in string) (string, error) { ran.Add(1); return in, nil }
	wrong := verify.Verifier(func(context.Context, verify.Subject) verify.Verdict { return verify.Absent("nothing is there") })
	return []tool.Tool{
		made(tool.Create("fine", "Answers.", counted, tool.Pure())),
		made(tool.Create("fails", "Fails.", func(_ context.Context, in string) (string, error) {
			ran.Add(1)
			return "", tool.NoEffect(errors.New("it did not like " + in))
		}, tool.Pure())),
		made(tool.Create("blind", "Fails after nobody knows what.", func(context.Context, string) (string, error) {
			ran.Add(1)
			return "", errors.New("the pipe broke")
		}, tool.Effect(effect.Pivot))),
		made(tool.FromSpec(tool.Spec{
			Name: "wrong", Description: "Does not verify.", EffectClass: effect.Pure, Verify: wrong,
			Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
				ran.Add(1)
				return tool.Text("done"), nil
			},
		})),
	}
}

func TestSameCallIDIsTheSameCall(t *testing.T) {
	ctx, ran := context.Background(), &atomic.Int32{}
	engine := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		effect := perm.Allow
		switch {
		case strings.Contains(string(r.Call.Args), "secret"):
			effect = perm.Deny
		case strings.Contains(string(r.Call.Args), "ask"):
			effect = perm.Ask
		}
		return perm.NewDecision(effect, perm.Details{Revision: "r1", Reasons: []perm.Reason{{Set: "deny", Text: "by what it says", At: "p.rego:1"}}}), nil
	})
	rt := newRuntime(t, agent.Tools(oddities(t, ran)...), agent.Tools(builtin.Files()...), agent.Root("workspace", t.TempDir()),
		agent.Policy(engine), agent.SuspendForApproval())
	s := newSession(t, rt)
	cases := []struct {
		tool  string
		input any
		want  tool.Status
	}{
		{"fine", "a", tool.StatusDone},
		{"fine", "a result that repeats its argument", tool.StatusDone},
		{"fine", "secret", tool.StatusDenied},
		{"fine", "ask", tool.StatusPending},
		{"fine", tool.Args{"x": 1}, tool.StatusInvalid},
		{"fails", "anything", tool.StatusFailed},
		{"blind", "b", tool.StatusUnknown},
		{"wrong", "c", tool.StatusVerifyFailed},
		{"file_write", tool.Args{"path": "a.txt", "content": "x"}, tool.StatusDone},
		{"file_read", tool.Args{"path": "none.txt"}, tool.StatusFailed},
	}
	for i, c := range cases {
		t.Run(fmt.Sprint(c.tool, " ", c.want), func(t *testing.T) {
			id := fmt.Sprint("toolu_", i)
			tx := begin(t, s)
			first, firstErr := tx.Invoke(ctx, c.tool, c.input, agent.WithCallID(id))
			require.Equal(t, c.want, first.Status, "%+v", first.Error)
			require.Equal(t, s.CallID(id), first.Call)
			after := ran.Load()
			for _, where := range []*agent.Txn{tx, begin(t, s)} {
				again, err := where.Invoke(ctx, c.tool, c.input, agent.WithCallID(id))
				require.Equal(t, after, ran.Load(), "it must not run again")
				require.Equal(t, firstErr == nil, err == nil)
				if first.Error != nil {
					require.NotNil(t, again.Error)
					again.Error.Fix = first.Error.Fix
				}
				require.Equal(t, first, again)
			}
			other, err := tx.Invoke(ctx, c.tool, "something else", agent.WithCallID(id))
			require.ErrorIs(t, err, tool.ErrInvalid)
			require.NotEqual(t, tool.StatusDone, other.Status)
			require.Equal(t, after, ran.Load())
			_, err = tx.Invoke(ctx, "fine", "something else", agent.WithCallID(id))
			require.ErrorIs(t, err, tool.ErrInvalid)
		})
	}
}

func TestCallIDTellsThatItWasReverted(t *testing.T) {
	ctx := context.Background()
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", t.TempDir()), agent.Policy(allowAll()))
	s := newSession(t, rt)
	tx := begin(t, s)
	write := tool.Args{"path": "a.txt", "content": "x"}
	_, err := tx.Invoke(ctx, "file_write", write, agent.WithCallID("1"))
	require.NoError(t, err)
	_, err = tx.Revert(ctx, revert.Options{})
	require.NoError(t, err)
	again, err := begin(t, s).Invoke(ctx, "file_write", write, agent.WithCallID("1"))
	require.NoError(t, err, "that is how it ended")
	require.Equal(t, "all", again.Reverted)
	fresh, err := begin(t, newSession(t, rt)).Invoke(ctx, "file_write", write, agent.WithCallID("1"))
	require.NoError(t, err)
	require.NotEqual(t, again.Call, fresh.Call, "ids are a session's own")
}

func TestOneCallIDRunsOnce(t *testing.T) {
	ctx, ran := context.Background(), &atomic.Int32{}
	rt := newRuntime(t, agent.Tools(oddities(t, ran)...), agent.Policy(allowAll()))
	s := newSession(t, rt)
	txns := []*agent.Txn{begin(t, s), begin(t, s)}
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			out, err := txns[i%2].Invoke(ctx, "fine", "x", agent.WithCallID("same"))
			if err != nil || out.Result.Text != "x" {
				t.Errorf("call %d: %v %+v", i, err, out)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, ran.Load())
}

func TestBadCallID(t *testing.T) {
	rt := newRuntime(t, agent.Tools(oddities(t, &atomic.Int32{})...), agent.Policy(allowAll()))
	tx := begin(t, newSession(t, rt))
	for _, id := range []string{"", "\xff", "a\x00b", strings.Repeat("x", 257)} {
		_, err := tx.Invoke(context.Background(), "fine", "x", agent.WithCallID(id))
		require.ErrorIs(t, err, tool.ErrInvalid)
		require.ErrorContains(t, err, "1 to 256 bytes")
	}
}

// TestCallIDOfADocument: a result that only had to fit a schema is given again, also
// where the input was filled in with a default, and no policy had a postcondition.
func TestCallIDOfADocument(t *testing.T) {
	ctx, ran := context.Background(), 0
	tl, err := tool.FromSpec(tool.Spec{
		Name: "full", EffectClass: effect.Pure, Output: json.RawMessage(`{"type":"object"}`),
		Input: json.RawMessage(`{"type":"object","properties":{"v":{"type":"string","default":"x"}},"additionalProperties":false}`),
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			ran++
			return tool.Result{JSON: json.RawMessage(`{}`)}, nil
		},
	})
	e := mustLoad(t, rego.Options{Modules: map[string]string{"p.rego": "package remit\nallow contains \"all\" if true"}})
	rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Policy(e))
	tx := begin(t, newSession(t, rt))
	for range 2 {
		out, err := tx.Invoke(ctx, "full", tool.Args{}, agent.WithCallID("1"))
		require.NoError(t, err)
		require.JSONEq(t, `{}`, string(out.Output))
		require.Equal(t, 1, ran)
	}
}
