package secrets_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/secrets"
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

var internals = handleaccess.SecretsOf[secrets.Secret, secrets.Store]()

const value = "s3cr3t-value-of-a-test"

func storeOf(t *testing.T, sources map[string]secrets.Source) *secrets.Store {
	s, err := secrets.New(sources)
	require.NoError(t, err)
	return s
}

func fixed(v string) secrets.Source {
	return func(context.Context) (string, error) { return v, nil }
}

// during runs code in a tool that needs the use of some secrets.
func during(t *testing.T, engine perm.Engine, needs string, do func(context.Context, ctxperm.ToolContext) error, drivers ...ctxperm.Driver) tool.Outcome {
	made, err := tool.FromSpec(tool.Spec{
		Name: "uses", Description: "Uses.", EffectClass: effect.Pure, Needs: []perm.ResourceAccess{perm.Access(perm.Use, needs)},
		Execute: func(ctx context.Context, tc ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
			return tool.Text("used"), do(ctx, tc)
		},
	})
	require.NoError(t, err)
	opts := []agent.Option{agent.Tools(made), agent.Policy(engine), agent.Log(slog.New(slog.DiscardHandler))}
	for _, d := range drivers {
		opts = append(opts, agent.Driver(d))
	}
	rt, err := agent.New(opts...)
	require.NoError(t, err)
	defer rt.Close()
	s, err := rt.Session(t.Context(), perm.Principal{ID: "agent"})
	require.NoError(t, err)
	tx, err := s.Begin(t.Context())
	require.NoError(t, err)
	out, _ := tx.Invoke(t.Context(), "uses", "x")
	return out
}

// TestHandlePrintsAsItsName checks every format, also inside other values.
func TestHandlePrintsAsItsName(t *testing.T) {
	var kept secrets.Secret
	out := during(t, everything(), "secret://*", func(ctx context.Context, tc ctxperm.ToolContext) error {
		s, err := secrets.Open(ctx, tc, "github")
		kept = s
		if err != nil {
			return err
		}
		got, err := internals.Reveal(s)
		require.Equal(t, value, got)
		inside := struct {
			S     secrets.Secret
			inner secrets.Secret
			P     *secrets.Secret
			M     map[string]secrets.Secret
		}{s, s, &s, map[string]secrets.Secret{"k": s}}
		var all strings.Builder
		for _, v := range []any{s, &s, inside, &inside, []secrets.Secret{s}} {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%t", "%p", "% x", "%08v", "%w"} {
				fmt.Fprintf(&all, verb+"\n", v)
			}
			for _, handler := range []slog.Handler{slog.NewTextHandler(&all, nil), slog.NewJSONHandler(&all, nil)} {
				slog.New(handler).Info("m", "s", v)
			}
			text, jerr := json.Marshal(v)
			require.NoError(t, jerr)
			all.Write(text)
		}
		text, xerr := xml.Marshal(s)
		require.NoError(t, xerr)
		all.Write(text)
		all.WriteString(errors.Join(fmt.Errorf("with %v", s)).Error())
		for how, form := range shown(value) {
			require.NotContains(t, all.String(), form, how)
		}
		require.Equal(t, "secret://github secret://github secret://github secret://github \"secret://github\"",
			fmt.Sprintf("%v %+v %#v %x %q", s, s, s, s, s))
		require.Equal(t, `"secret://github"`, string(must(json.Marshal(s))))
		require.Equal(t, "github", s.Name())
		return err
	}, storeOf(t, map[string]secrets.Source{"github": fixed(value + "\n")}))
	require.Equal(t, tool.StatusDone, out.Status, "%+v", out.Error)
	_, err := internals.Reveal(kept)
	require.ErrorIs(t, err, ctxperm.ErrClosed, "the call has ended")
	_, err = internals.Reveal(secrets.Secret{})
	require.ErrorIs(t, err, ctxperm.ErrClosed)
	require.Equal(t, "secret://", secrets.Secret{}.String())
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}

// TestUseIsAskedFor checks that use is authorized by name, within the needs of
// the tool, before the source is read.
func TestUseIsAskedFor(t *testing.T) {
	read := 0
	store := storeOf(t, map[string]secrets.Source{"a": func(context.Context) (string, error) { read++; return value, nil }, "b": fixed(value)})
	open := func(name string) func(context.Context, ctxperm.ToolContext) error {
		return func(ctx context.Context, tc ctxperm.ToolContext) error {
			_, err := secrets.Open(ctx, tc, name)
			return err
		}
	}
	var asked []string
	only := perm.EngineFunc(func(ctx context.Context, r perm.Request) (perm.Decision, error) {
		asked = append(asked, string(r.Access.Action)+" "+r.Access.Resource.Text)
		if r.Access.Action == perm.Use && r.Access.Resource.Name != "b" {
			return perm.NewDecision(perm.Deny, perm.Details{Reasons: []perm.Reason{{Text: "only b"}}}), nil
		}
		return everything().Decide(ctx, r)
	})
	out := during(t, only, "secret://*", open("a"), store)
	require.Equal(t, tool.StatusDenied, out.Status)
	require.Zero(t, read)
	require.Contains(t, asked, "use secret://a")
	require.Equal(t, tool.StatusDone, during(t, only, "secret://*", open("b"), store).Status)
	out = during(t, everything(), "secret://b", open("a"), store)
	require.Equal(t, tool.StatusDenied, out.Status)
	require.Contains(t, out.Error.Why, "does not declare")
	require.Zero(t, read)
	require.Equal(t, tool.StatusDone, during(t, everything(), "secret://*", open("a"), store).Status, "the control")
	require.Equal(t, 1, read)

	require.Contains(t, during(t, everything(), "secret://*", open("c"), store).Error.Why, `no secret "c"; there is a, b`)
	require.Contains(t, during(t, everything(), "secret://*", open("c"), storeOf(t, nil)).Error.Why, `no secret "c"; there are none`)
	require.Contains(t, during(t, everything(), "secret://*", open("a/b"), store).Error.Why, "bad name")
	require.Contains(t, during(t, everything(), "secret://*", open("a")).Error.Why, "agent.Driver")
	_, err := secrets.Open(t.Context(), ctxperm.ToolContext{}, "a")
	require.ErrorIs(t, err, ctxperm.ErrClosed)
}

// TestSources checks that an invalid secret is refused, and that no error
// repeats a value.
func TestSources(t *testing.T) {
	env := func(name string) (string, bool) { return map[string]string{"TOKEN": value}[name], name == "TOKEN" }
	store := storeOf(t, map[string]secrets.Source{
		"env": secrets.Env("TOKEN", env), "unset": secrets.Env("HOME", env), "short": fixed("1234567\n"), "empty": fixed(""),
		"long": fixed(strings.Repeat("x", secrets.MaxValue+1)), "broken": func(context.Context) (string, error) { return value, errors.New("no bus") },
	})
	require.Equal(t, []string{"broken", "empty", "env", "long", "short", "unset"}, store.Names())
	require.Empty(t, store.Schemes())
	for name, want := range map[string]string{
		"unset": "variable HOME: the secret is not there", "short": "has 7 bytes", "empty": "has 0 bytes", "long": "bytes; valid are 8 to 65536", "broken": "secret broken: no bus",
	} {
		_, err := internals.Read(t.Context(), store, name)
		require.ErrorContains(t, err, want)
	}
	got, err := internals.Read(t.Context(), store, "env")
	require.NoError(t, err)
	require.Equal(t, value, got)
	for _, bad := range []map[string]secrets.Source{{"": fixed(value)}, {"a b": fixed(value)}, {"a": nil}, {"a": secrets.Env("A", nil)}, {"a": secrets.Env("", os.LookupEnv)}} {
		_, err := secrets.New(bad)
		require.Error(t, err)
	}
	require.False(t, bytes.Contains([]byte(fmt.Sprintf("%v %+v", store.Names(), err)), []byte(value)))
}

// Example shows a tool that uses a secret which it cannot see.
func Example() {
	store, err := secrets.New(map[string]secrets.Source{
		"github": secrets.Env("GITHUB_TOKEN", func(string) (string, bool) { return "ghp_0123456789abcdef", true }),
	})
	if err != nil {
		panic(err)
	}
	login, err := tool.CreateWith("login", "Logs in.", []perm.ResourceAccess{perm.Access(perm.Use, "secret://github")},
		func(ctx context.Context, tc ctxperm.ToolContext, _ string) (string, error) {
			token, err := secrets.Open(ctx, tc, "github")
			return fmt.Sprintf("logged in with %v", token), err
		}, tool.Pure())
	if err != nil {
		panic(err)
	}
	rt, err := agent.New(agent.Tools(login), agent.Driver(store), agent.Policy(everything()), agent.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer rt.Close()
	s, err := rt.Session(context.Background(), perm.Principal{ID: "coder"})
	if err != nil {
		panic(err)
	}
	_, err = s.Update(context.Background(), func(tx *agent.Txn) error {
		out, err := tx.Invoke(context.Background(), "login", "now")
		fmt.Println(out.Text)
		return err
	})
	if err != nil {
		panic(err)
	}
	// Output: logged in with secret://github
}
