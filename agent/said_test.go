package agent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
	"github.com/remit-dev/remit/tool/filter"
)

// TestReasonsOfDenials: a tool that refuses a call and a grant that does not hold an access say why, and the model is
// told, at first and from the journal.
func TestReasonsOfDenials(t *testing.T) {
	ctx := context.Background()
	shut, err := tool.CreateWith("pay", "", nil, func(context.Context, ctxperm.ToolContext, string) (string, error) {
		return "", tool.Blocked("the shop is shut until Monday")
	}, tool.Pure())
	rt := newRuntime(t, agent.Tools(append(builtin.Files(), mustTool(t, shut, err))...), agent.Policy(allowAll()), agent.Root("workspace", workspace(t)))
	tx := begin(t, newSession(t, rt, agent.Grant(perm.Access(perm.Call, "tool://pay"), perm.Access(perm.Read, "file://workspace/**"))))
	for says, call := range map[string]agent.BatchCall{
		"Denied: the shop is shut until Monday. ":                                {Tool: "pay", Input: "ten", ID: "1"},
		"Denied: the session was not granted to write file://workspace/‹path›. ": {Tool: "file_write", Input: tool.Args{"path": "notes.txt", "content": "x"}, ID: "2"},
	} {
		for range 2 {
			out, err := tx.Invoke(ctx, call.Tool, call.Input, agent.WithCallID(call.ID))
			require.ErrorIs(t, err, tool.ErrDenied)
			require.True(t, strings.HasPrefix(out.Text, says), out.Text)
		}
	}
}

// TestSensitiveInErrors checks that neither the outcome nor the journal repeats
// a sensitive argument outside the input. This holds even if the tool's error,
// its Verify or its Revert repeats it.
func TestSensitiveInErrors(t *testing.T) {
	ctx := context.Background()
	type in struct {
		User     string `json:"user"`
		Password string `json:"password"`
	}
	login, err := tool.CreateTyped("login", "Logs in.", nil, func(_ context.Context, tc ctxperm.ToolContext, in in) (string, error) {
		tc.Progress(1, 2, "with "+in.Password)
		return "", tool.NoEffect(fmt.Errorf("no user %s with password %q", in.User, in.Password))
	}, tool.Pure())
	require.NoError(t, err)
	login, err = login.Modify(func(s *tool.Spec) { s.Hints.Sensitive = []string{"password"} })
	require.NoError(t, err)
	var said []string
	rt := newRuntime(t, agent.Tools(login), agent.Policy(allowAll()), agent.OnProgress(func(p tool.Progress) { said = append(said, p.Message) }))
	tx := begin(t, newSession(t, rt))
	out, err := tx.Invoke(ctx, "login", tool.Args{"user": "anna", "password": "swordfish"})
	require.ErrorIs(t, err, tool.ErrFailed)
	require.Equal(t, `no user anna with password "(hidden)"`, out.Error.Why)
	_, c, lerr := revert.LoadCall(ctx, rt.Journal(), out.Call)
	require.NoError(t, lerr)
	for _, text := range append(said, out.Text, err.Error(), c.Failed.Why) {
		require.NotContains(t, text, "swordfish")
	}
	require.NotEmpty(t, said)
}

// TestFiltersSeeDeniedCalls: a filter is told of a call that is denied before it came to it, by the policy or by a filter
// before it, and knows who asked for what; the log has a line for it.
func TestFiltersSeeDeniedCalls(t *testing.T) {
	ctx, heard := context.Background(), []string{}
	never := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		if strings.Contains(string(r.Call.Args), "never") {
			return perm.NewDecision(perm.Deny, perm.Details{Reasons: []perm.Reason{{Text: "never", At: "p.rego:3"}}}), nil
		}
		return perm.NewDecision(perm.Allow, perm.Details{}), nil
	})
	strict := filter.Filter{Name: "strict", Before: func(_ context.Context, f filter.Call) error {
		if strings.Contains(string(f.Input()), "not") {
			return errors.New("not now")
		}
		return nil
	}}
	ear := filter.Filter{Name: "ear", Denied: func(_ context.Context, f filter.Call, o tool.Outcome) {
		heard = append(heard, fmt.Sprintf("%s %s of %s for %s: %s by %s", f.Tool().Name(), f.Input(), f.Principal().ID, f.Session()[:2], f.Decision().Effect, o.Stage))
	}, Ended: func(_ context.Context, f filter.Call, o tool.Outcome) {
		heard = append(heard, fmt.Sprintf("%s %s: %s", f.Tool().Name(), f.Input(), o.Status))
	}}
	var text bytes.Buffer
	ran := false
	log, err := filter.Log(slog.New(slog.NewTextHandler(&text, nil)))
	require.NoError(t, err)
	rt := newRuntime(t, agent.Tools(pureTool(t, &ran)), agent.Policy(never), agent.Filters(log, strict, ear))
	tx := begin(t, newSession(t, rt))
	for _, in := range []string{"never", "not", "now"} {
		_, _ = tx.Invoke(ctx, "look", in)
	}
	require.Equal(t, []string{
		`look "never" of coder for s_: deny by policy`,
		`look "not" of coder for s_: allow by filter`,
		`look "now": done`,
	}, heard)
	require.Equal(t, 3, strings.Count(text.String(), "call ended"), text.String())
	require.Contains(t, text.String(), "status=denied class=pure changes=0 stage=policy")
}
