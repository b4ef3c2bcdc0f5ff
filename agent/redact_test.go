package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

const secret = `hunter2"<ü`

// secretive redacts a token of the arguments and one of the output, and a reason
// that repeats the first.
const secretive = `package remit
redact contains "/args/token" if true
redact contains "/output/issued/0" if true
hint contains sprintf("not with %v", [input.call.args.token]) if input.tool.name == "refused"
deny contains sprintf("token %v is refused", [input.call.args.token]) if input.tool.name == "refused"
ask contains "somebody looks" if input.tool.name == "asked"
allow contains sprintf("token %v is fine", [input.call.args.token]) if true
`

// leakingTools makes tools that tell their token wherever they can.
func leakingTools(t *testing.T, saw *[]string) []tool.Tool {
	make := func(name string, change func(*tool.Spec)) tool.Tool {
		s := tool.Spec{
			Name: name, Description: "Tells.", EffectClass: effect.Pure, Destination: tool.NoDestination,
			Input: json.RawMessage(`{"type":"object","properties":{"token":{"type":"string"},"n":{"type":"integer"}},"additionalProperties":false}`),
			Execute: func(_ context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
				var args struct{ Token string }
				if err := json.Unmarshal(in, &args); err != nil {
					return tool.Result{}, err
				}
				tc.Progress(1, 2, "with "+args.Token)
				*saw = append(*saw, args.Token)
				out, err := json.Marshal(map[string]any{"issued": []string{"key-4711", "public"}, "echo": "got " + args.Token, "of " + args.Token: 1})
				return tool.Result{
					Text: "key-4711 for " + args.Token, JSON: out, Meta: map[string]string{"m": args.Token, "m " + args.Token: "x"},
					Parts:   []tool.Part{{MediaType: "text/plain", Data: []byte("p " + args.Token)}, {MediaType: "text/" + args.Token, Data: []byte("x")}},
					Sources: []provenance.Reference{{Title: "of " + args.Token, URL: "https://example.com/?key=key-4711"}},
				}, err
			},
		}
		change(&s)
		made, err := tool.FromSpec(s)
		return mustTool(t, made, err)
	}
	return []tool.Tool{
		make("told", func(*tool.Spec) {}), make("refused", func(*tool.Spec) {}), make("asked", func(*tool.Spec) {}),
		make("fails", func(s *tool.Spec) {
			s.Execute = func(_ context.Context, _ ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
				return tool.Result{}, fmt.Errorf("cannot do %s", in)
			}
		}),
		make("checked", func(s *tool.Spec) {
			s.Verify = func(_ context.Context, v verify.Subject) verify.Verdict {
				if !strings.Contains(string(v.Input), "hunter2") || !strings.Contains(string(v.Output), "key-4711") {
					return verify.Absent("it looks at something else than what was given")
				}
				return verify.Absent("seen " + string(v.Input))
			}
		}),
		make("undoes", func(s *tool.Spec) {
			s.EffectClass = effect.Compensable
			s.Revert = func(context.Context, tool.RevertContext) error { return nil }
		}),
	}
}

// raw is everything that is in a folder.
func raw(t *testing.T, dir string) string {
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all.Write(data)
		return err
	}))
	return all.String()
}

func TestWhatIsRedactedIsNowhere(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	j, err := sqlite.Open(ctx, dir)
	require.NoError(t, err)
	var saw []string
	var asks []ctxperm.ApprovalRequest
	approver := ctxperm.ApproverFunc(func(_ context.Context, a ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
		asks = append(asks, a)
		return ctxperm.Approve("boss"), nil
	})
	e := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": secretive}})
	var reported strings.Builder
	rt := newRuntime(t, agent.Journal(j), agent.Tools(leakingTools(t, &saw)...), agent.Policy(e), agent.Approver(approver),
		agent.OnProgress(func(p tool.Progress) { reported.WriteString(p.Message) }))
	tx := begin(t, newSession(t, rt))
	in := tool.Args{"token": secret, "n": 7}
	for name, want := range map[string]tool.Status{
		"told": tool.StatusDone, "asked": tool.StatusDone, "refused": tool.StatusDenied,
		"fails": tool.StatusFailed, "checked": tool.StatusVerifyFailed, "undoes": tool.StatusDenied,
	} {
		out, err := tx.Invoke(ctx, name, in)
		require.Equal(t, want, out.Status, "%s: %+v %v", name, out.Error, err)
		shown, err := json.Marshal(out)
		require.NoError(t, err)
		everything := fmt.Sprintf("%+v %s %v", out, shown, out.Err())
		require.NotContains(t, everything, "hunter2", name)
		require.NotContains(t, everything, "key-4711", name)
		require.JSONEq(t, `{"token":"(hidden)","n":7}`, string(out.Input), name)
		if want == tool.StatusDone {
			require.JSONEq(t, `{"issued":["(hidden)","public"],"echo":"got (hidden)","of (hidden)":1}`, string(out.Output))
			require.Equal(t, "(hidden) for (hidden)", out.Text)
		}
	}
	require.NotEmpty(t, saw, "the tools saw it")
	require.Contains(t, reported.String(), "with (hidden)")
	require.NotContains(t, reported.String(), "hunter2")
	for _, s := range saw {
		require.Equal(t, secret, s)
	}
	require.Len(t, asks, 1)
	require.JSONEq(t, `{"token":"(hidden)","n":7}`, string(asks[0].Input))
	require.NoError(t, tx.Commit(ctx))
	require.NoError(t, rt.Close())
	require.NoError(t, j.Close())
	bytes := raw(t, dir)
	require.Contains(t, bytes, "token (hidden) is fine")
	require.Contains(t, bytes, "token (hidden) is refused")
	require.Contains(t, bytes, "public", "the journal is not compressed: what follows shows something")
	require.NotContains(t, bytes, "hunter2")
	require.NotContains(t, bytes, "key-4711")
}

// What is not kept cannot be worked with later: such a call is refused at once,
// and not when it has to be reverted.
func TestARedactedCallThatMustBeKeptIsRefused(t *testing.T) {
	ctx := context.Background()
	e := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": secretive}})
	var saw []string
	rt := newRuntime(t, agent.Tools(leakingTools(t, &saw)...), agent.Policy(e), agent.SuspendForApproval())
	tx := begin(t, newSession(t, rt))
	out, err := tx.Invoke(ctx, "asked", tool.Args{"token": secret})
	require.ErrorIs(t, err, tool.ErrDenied)
	require.Contains(t, out.Error.Why, "redacts /args/token, /output/issued/0, so the call cannot be kept until a person approves it")
	out, err = tx.Invoke(ctx, "undoes", tool.Args{"token": secret})
	require.ErrorIs(t, err, tool.ErrDenied)
	require.Contains(t, out.Error.Why, "the tool's own Revert would need it")
	out, err = tx.Invoke(ctx, "asked", tool.Args{"n": 1})
	require.ErrorIs(t, err, tool.ErrPending, "there is nothing to hide: %+v", out.Error)
	require.Empty(t, saw)
}

// A call that the grant refuses, or that the policy cannot decide about, is
// written down too.
func TestARefusedCallIsRedactedToo(t *testing.T) {
	ctx := context.Background()
	broken := errors.New("out of order")
	for name, c := range map[string]struct {
		engine perm.EngineFunc
		input  string
	}{
		"grant": {func(context.Context, perm.Request) (perm.Decision, error) {
			return perm.NewDecision(perm.Allow, perm.Details{Redact: []string{"/args/token"}}), nil
		}, `{"n":7,"token":"(hidden)"}`},
		"broken": {func(context.Context, perm.Request) (perm.Decision, error) { return perm.Decision{}, broken }, `"(hidden)"`},
	} {
		t.Run(name, func(t *testing.T) {
			var saw []string
			var opts []agent.SessionOption
			if name == "grant" {
				opts = append(opts, agent.Grant())
			}
			rt := newRuntime(t, agent.Tools(leakingTools(t, &saw)...), agent.Policy(c.engine))
			tx := begin(t, newSession(t, rt, opts...))
			out, err := tx.Invoke(ctx, "told", tool.Args{"token": secret, "n": 7})
			require.ErrorIs(t, err, tool.ErrDenied)
			require.Equal(t, c.input, string(out.Input))
			_, call, err := revert.LoadCall(ctx, rt.Journal(), out.Call)
			require.NoError(t, err)
			require.Equal(t, c.input, string(call.Denied.Input))
		})
	}
}

// The id that a host gave answers again with what was shown before.
func TestARedactedCallIsAnsweredAgain(t *testing.T) {
	ctx := context.Background()
	e := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": secretive}})
	var saw []string
	rt := newRuntime(t, agent.Tools(leakingTools(t, &saw)...), agent.Policy(e))
	tx := begin(t, newSession(t, rt))
	first, err := tx.Invoke(ctx, "told", tool.Args{"token": secret}, agent.WithCallID("one"))
	require.NoError(t, err)
	again, err := tx.Invoke(ctx, "told", tool.Args{"token": secret}, agent.WithCallID("one"))
	require.NoError(t, err)
	require.Equal(t, first, again)
	_, err = tx.Invoke(ctx, "told", tool.Args{"token": "(hidden)"}, agent.WithCallID("one"))
	require.ErrorIs(t, err, tool.ErrInvalid, "another input is another call")
	require.Len(t, saw, 1)
}
