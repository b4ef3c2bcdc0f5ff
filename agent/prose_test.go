package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// TestErrorOfAnyBytes: what a tool, its Verify or its Revert says may be no text,
// or a very long one. It keeps no record from being written, and what is shown is
// what was recorded.
func TestErrorOfAnyBytes(t *testing.T) {
	odd := "caf\xe9 " + strings.Repeat("é", 1<<20)
	opts := []tool.Option{
		tool.Effect(effect.Compensable),
		tool.RevertWith("1", func(context.Context, tool.RevertContext) error { return errors.New(odd) }),
	}
	fails, err := tool.Create("fails", "", func(context.Context, string) (string, error) { return "", tool.NoEffect(errors.New(odd)) }, opts...)
	fails = mustTool(t, fails, err)
	lies, err := tool.Create("lies", "", func(context.Context, string) (string, error) { return "done", nil },
		append(opts, tool.VerifyWith(func(context.Context, verify.Subject) verify.Verdict { return verify.Partial(odd) }))...)
	lies = mustTool(t, lies, err)
	rt := newRuntime(t, agent.Tools(fails, lies), agent.Policy(allowAll()))
	tx := begin(t, newSession(t, rt))
	for name, want := range map[string]tool.Status{"fails": tool.StatusFailed, "lies": tool.StatusVerifyFailed} {
		out, err := tx.Invoke(t.Context(), name, "x")
		require.Error(t, err)
		require.Equal(t, want, out.Status, name)
		require.True(t, utf8.ValidString(out.Error.Why), name)
		require.Contains(t, out.Error.Why, "caf%E9", name)
		require.Less(t, len(out.Error.Why), 20<<10, name)
		_, c, err := revert.LoadCall(t.Context(), rt.Journal(), out.Call)
		require.NoError(t, err)
		if c.Failed != nil {
			require.Equal(t, c.Failed.Why, out.Error.Why)
		}
		for _, res := range out.RevertResults {
			require.True(t, utf8.ValidString(res.Why))
		}
	}
}
