package filter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/filter"
	"github.com/remit-dev/remit/verify"
)

func TestRedact(t *testing.T) {
	res := tool.Result{
		Text: "key sk-1 and sk-22", JSON: json.RawMessage(`{"a":["sk-3",{"b":"x sk-4 y"}],"n":12,"sk-5":true}`), Meta: map[string]string{"m": "sk-6"},
		Sources: []provenance.Reference{{Title: "sk-7", URL: "https://example.com/sk-8"}},
		Parts:   []tool.Part{{MediaType: "image/png", Data: []byte("..sk-9..")}, {MediaType: "image/png", Data: []byte("clean")}, {MediaType: "text/sk-10", Data: []byte("clean")}},
	}
	keys := must(filter.Redact(regexp.MustCompile(`sk-\d+`)))
	out, err := keys.After(context.Background(), nil, res)
	require.NoError(t, err)
	require.Equal(t, "key (hidden) and (hidden)", out.Text)
	require.JSONEq(t, `{"a":["(hidden)",{"b":"x (hidden) y"}],"n":12,"sk-5":true}`, string(out.JSON))
	require.Equal(t, "(hidden)", out.Meta["m"])
	require.Equal(t, []provenance.Reference{{Title: "(hidden)", URL: "https://example.com/(hidden)"}}, out.Sources)
	require.Equal(t, "(hidden)", string(out.Parts[0].Data))
	require.Equal(t, "clean", string(out.Parts[1].Data))
	require.Equal(t, tool.Part{MediaType: "text/plain", Data: []byte("(hidden)")}, out.Parts[2])
	_, err = keys.After(context.Background(), nil, tool.Result{JSON: json.RawMessage("{")})
	require.Error(t, err, "what cannot be read is not delivered")
}

// TestRedactedNowhere checks that a redacted value reaches no model, log or
// person, regardless of how the tool returns it. In the journal only the input
// and the result can contain it.
func TestRedactedNowhere(t *testing.T) {
	const canary = "sk-31337"
	ctx, leaks := context.Background(), regexp.MustCompile(`sk-\d+`)
	for name, execute := range map[string]tool.Execute{
		"result": func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Result{Text: canary, JSON: json.RawMessage(`{"a":["` + canary + `"]}`), Sources: []provenance.Reference{{URL: "https://x/" + canary}}}, nil
		},
		"error": func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Result{}, tool.NoEffect(errors.New("the key " + canary + " is not known"))
		},
		"error of doubt": func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Result{}, errors.New("the key " + canary + " is not known")
		},
		"refusal": func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Result{}, tool.Blocked("not with " + canary)
		},
		"failed result": func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Result{IsError: true, Text: "no " + canary}, nil
		},
		"finding": func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text("unverified"), nil
		},
		"progress": func(_ context.Context, tc ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
			tc.Progress(1, 2, "with "+canary)
			return tool.Text("fine"), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log, told bytes.Buffer
			tl, err := tool.FromSpec(tool.Spec{
				Name: "leak", EffectClass: effect.Deferrable, Execute: execute,
				Verify: func(_ context.Context, s verify.Subject) verify.Verdict {
					if strings.Contains(string(s.Output), "unverified") {
						return verify.Absent("nothing of " + canary)
					}
					return verify.Applied()
				},
			})
			require.NoError(t, err)
			engine := perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
				return perm.NewDecision(perm.Allow, perm.Details{}), nil
			})
			replace := filter.Filter{Name: "replace", Before: func(_ context.Context, f filter.Call) error {
				f.Replace(string(bytes.Trim(f.Input(), `"`)) + "+") // what is hidden stays so with another input
				return nil
			}}
			rt, err := agent.New(agent.Tools(tl), agent.Policy(engine), agent.Log(slog.New(slog.NewTextHandler(&log, nil))),
				agent.OnProgress(func(p tool.Progress) { told.WriteString(p.Message) }),
				agent.Filters(must(filter.Log(slog.New(slog.NewTextHandler(&log, nil)))), must(filter.Redact(leaks)), replace))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, rt.Close()) })
			s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
			require.NoError(t, err)
			tx, err := s.Begin(ctx)
			require.NoError(t, err)
			out, err := tx.Invoke(ctx, "leak", "x", agent.WithCallID("1"))
			again, _ := tx.Invoke(ctx, "leak", "x", agent.WithCallID("1"))
			require.Equal(t, out.Status, again.Status)
			for _, o := range []tool.Outcome{out, again} {
				shown, err := json.Marshal([]any{o, o.Result})
				require.NoError(t, err)
				told.Write(shown)
			}
			if err != nil {
				told.WriteString(err.Error())
			}
			_, c, err := revert.LoadCall(ctx, rt.Journal(), out.Call)
			require.NoError(t, err)
			if c.Done != nil {
				c.Done.Output = nil // which undo may need
			}
			record, err := json.Marshal(c)
			require.NoError(t, err)
			require.NotContains(t, told.String(), canary)
			require.NotContains(t, log.String(), canary)
			require.NotContains(t, string(record), canary)
			require.Contains(t, told.String()+string(record), "(hidden)")
		})
	}
}
