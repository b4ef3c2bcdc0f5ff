package agent_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
)

// featureTools is one tool for each thing that a session can be asked for.
func featureTools(t *testing.T, ran *[]string) []tool.Tool {
	var all []tool.Tool
	for name, s := range map[string]tool.Spec{
		"plain": {}, "grouped": {Tags: []string{"office"}},
		"chatty":    {Display: tool.Display{Surfaces: []string{"chat", "voice"}}},
		"seeing":    {Capabilities: []string{"vision", "long_context"}},
		"trusting":  {MinProviderTrust: 700},
		"demanding": {MinProviderTrust: 1000, Tags: []string{"office"}},
	} {
		s.Name, s.EffectClass = name, effect.Pure
		s.Execute = func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			*ran = append(*ran, name)
			return tool.Text("ok"), nil
		}
		tl, err := tool.FromSpec(s)
		all = append(all, mustTool(t, tl, err))
	}
	return all
}

func TestSessionsSeeTheToolsThatAreForThem(t *testing.T) {
	ctx := context.Background()
	var ran []string
	shelved := featureTools(t, &ran)
	rt := newRuntime(t, agent.Tools(shelved...), agent.Policy(allowAll()))
	for _, tt := range []struct {
		name   string
		client perm.ClientFacts
		sees   []string
	}{
		{"nothing is known", perm.ClientFacts{}, []string{"grouped", "plain"}},
		{"surface", perm.ClientFacts{Surface: "voice"}, []string{"chatty", "grouped", "plain"}},
		{"another surface", perm.ClientFacts{Surface: "Chat"}, []string{"grouped", "plain"}},
		{"one capability", perm.ClientFacts{Capabilities: []string{"vision"}}, []string{"grouped", "plain"}},
		{"all capabilities", perm.ClientFacts{Capabilities: []string{"long_context", "vision", "x"}}, []string{"grouped", "plain", "seeing"}},
		{"confidence", perm.ClientFacts{ProviderTrust: 700}, []string{"grouped", "plain", "trusting"}},
		{"less confidence", perm.ClientFacts{ProviderTrust: 699}, []string{"grouped", "plain"}},
		{"all confidence", perm.ClientFacts{ProviderTrust: 1000}, []string{"demanding", "grouped", "plain", "trusting"}},
		{"too much of it is none", perm.ClientFacts{ProviderTrust: 1001}, []string{"grouped", "plain"}},
		{"less than none is none", perm.ClientFacts{ProviderTrust: -1}, []string{"grouped", "plain"}},
		{"a group is off", perm.ClientFacts{Disabled: []string{"office"}, ProviderTrust: 1000}, []string{"plain", "trusting"}},
		{"a tool is off", perm.ClientFacts{Disabled: []string{"plain"}}, []string{"grouped"}},
		{"one is selected", perm.ClientFacts{Selected: []string{"plain"}}, []string{"plain"}},
		{"a group is selected", perm.ClientFacts{Selected: []string{"office"}, ProviderTrust: 1000}, []string{"demanding", "grouped"}},
		{"off wins", perm.ClientFacts{Selected: []string{"office"}, Disabled: []string{"grouped"}}, nil},
		{"none is selected", perm.ClientFacts{Selected: []string{}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ran = nil
			s := newSession(t, rt, agent.ClientProfile(tt.client))
			tools, err := s.Tools(ctx)
			require.NoError(t, err)
			var sees []string
			for _, tl := range tools {
				sees = append(sees, tl.Name())
			}
			require.Equal(t, tt.sees, sees)
			tx := begin(t, s)
			for _, tl := range shelved {
				out, err := tx.Invoke(ctx, tl.Name(), "x")
				if seen := contains(tt.sees, tl.Name()); seen {
					require.NoError(t, err)
					continue
				}
				require.ErrorIs(t, err, tool.ErrDenied, tl.Name())
				require.Contains(t, out.Error.Why, "the session does not see the tool: it ")
				require.Equal(t, "grant", out.Stage)
				_, c, err := revert.LoadCall(ctx, rt.Journal(), out.Call)
				require.NoError(t, err)
				require.Contains(t, c.Denied.Why, "does not see", "the record says why")
			}
			require.ElementsMatch(t, tt.sees, ran)
			out, err := tx.Invoke(ctx, "plein", "x")
			require.ErrorIs(t, err, tool.ErrInvalid)
			for _, tl := range shelved {
				if !contains(tt.sees, tl.Name()) {
					require.NotContains(t, out.Error.Why, tl.Name(), "what it does not see is not named to it")
				}
			}
		})
	}
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// What was handed on is never shown to more than its parent, and a session that another process resumes is what it was.
func TestClientOutlivesItsProcessAndNarrows(t *testing.T) {
	ctx, dir := context.Background(), filepath.Join(t.TempDir(), "state")
	var token, handed string
	life := func(fn func(rt *agent.Runtime)) {
		j, err := sqlite.Open(ctx, dir)
		require.NoError(t, err)
		var ran []string
		rt := newRuntime(t, agent.Tools(featureTools(t, &ran)...), agent.Policy(allowAll()), agent.Journal(j))
		fn(rt)
		require.NoError(t, j.Close())
	}
	sees := func(s *agent.Session) (names []string) {
		tools, err := s.Tools(ctx)
		require.NoError(t, err)
		for _, tl := range tools {
			names = append(names, tl.Name())
		}
		return names
	}
	most := perm.ClientFacts{Surface: "chat", ProviderTrust: 800, Selected: []string{"office", "trusting", "chatty"}, Disabled: []string{"grouped"}}
	life(func(rt *agent.Runtime) {
		s := newSession(t, rt, agent.ClientProfile(most))
		require.Equal(t, []string{"chatty", "trusting"}, sees(s))
		token = s.Token()
		child, err := s.Delegate(ctx, perm.Principal{ID: "helper"})
		require.NoError(t, err)
		require.Equal(t, []string{"chatty", "trusting"}, sees(child))
		more, err := s.Delegate(ctx, perm.Principal{ID: "climber"}, agent.ClientProfile(perm.ClientFacts{ProviderTrust: 1000, Selected: []string{"demanding", "office", "trusting"}}))
		require.NoError(t, err)
		require.Equal(t, []string{"trusting"}, sees(more))
		all, err := s.Delegate(ctx, perm.Principal{ID: "all"}, agent.ClientProfile(perm.ClientFacts{ProviderTrust: 1000}))
		require.NoError(t, err)
		require.Equal(t, []string{"trusting"}, sees(all))
		handed = child.Token()
	})
	life(func(rt *agent.Runtime) {
		for _, tok := range []string{token, handed} {
			s, err := rt.ResumeSession(ctx, tok)
			require.NoError(t, err)
			require.Equal(t, []string{"chatty", "trusting"}, sees(s))
		}
	})
}

// TestPolicyReadsTheClient checks that a policy rule can set a minimum of
// trust. The rule also holds for a session without a client profile.
func TestPolicyReadsTheClient(t *testing.T) {
	ctx := context.Background()
	e := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": `package remit
allow contains "everything"
deny contains "the provider is not trusted enough" if input.session.client.confidence < 900
hide contains "the provider is not trusted enough" if input.session.client.confidence < 900
deny contains "the tool wants more" if input.tool.confidence > 900
deny contains "not by voice" if input.session.client.surface == "voice"
deny contains "nothing was chosen" if not input.session.client.selected
`}})
	var ran []string
	rt := newRuntime(t, agent.Tools(featureTools(t, &ran)...), agent.Policy(e))
	for _, tt := range []struct {
		opts []agent.SessionOption
		name string
		want error
	}{
		{nil, "plain", tool.ErrDenied},
		{[]agent.SessionOption{agent.ClientProfile(perm.ClientFacts{ProviderTrust: 899, Selected: []string{"plain"}})}, "plain", tool.ErrDenied},
		{[]agent.SessionOption{agent.ClientProfile(perm.ClientFacts{ProviderTrust: 900, Selected: []string{"plain"}})}, "plain", nil},
		{[]agent.SessionOption{agent.ClientProfile(perm.ClientFacts{ProviderTrust: 900})}, "plain", tool.ErrDenied},
		{[]agent.SessionOption{agent.ClientProfile(perm.ClientFacts{ProviderTrust: 950, Surface: "voice", Selected: []string{"plain"}})}, "plain", tool.ErrDenied},
		{[]agent.SessionOption{agent.ClientProfile(perm.ClientFacts{ProviderTrust: 1000, Selected: []string{"demanding"}})}, "demanding", tool.ErrDenied},
		{[]agent.SessionOption{agent.ClientProfile(perm.ClientFacts{ProviderTrust: 1000, Selected: []string{"trusting"}})}, "trusting", nil},
	} {
		s := newSession(t, rt, tt.opts...)
		_, err := begin(t, s).Invoke(ctx, tt.name, "x")
		require.ErrorIs(t, err, tt.want)
		tools, err := s.Tools(ctx)
		require.NoError(t, err)
		if tt.opts == nil {
			require.Empty(t, tools)
		}
	}
}

// TestACallThatWaitsIsNotReleasedPastItsSession: a tool that the session does not see any more
// when the transaction commits does not run.
func TestACallThatWaitsIsNotReleasedPastItsSession(t *testing.T) {
	ctx := context.Background()
	sent := 0
	letter := func(surfaces ...string) tool.Tool {
		tl, err := tool.FromSpec(tool.Spec{
			Name: "letter", EffectClass: effect.Deferrable, Display: tool.Display{Surfaces: surfaces},
			Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
				sent++
				return tool.Text("sent"), nil
			},
		})
		return mustTool(t, tl, err)
	}
	later := perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Hold, perm.Details{Reasons: []perm.Reason{{Text: "later"}}}), nil
	})
	rt := newRuntime(t, agent.Tools(letter("chat", "voice")), agent.Policy(later))
	tx := begin(t, newSession(t, rt, agent.ClientProfile(perm.ClientFacts{Surface: "voice"})))
	_, err := tx.Invoke(ctx, "letter", "x")
	require.NoError(t, err)
	require.NoError(t, rt.SetTools(letter("chat")))
	require.ErrorIs(t, tx.Commit(ctx), agent.ErrNotReleased)
	require.Contains(t, tx.Released()[0].Error.Why, "the session does not see the tool any more: it is for sessions of the kind")
	require.Zero(t, sent)
	require.NoError(t, rt.SetTools(letter("voice")))
	require.NoError(t, tx.Commit(ctx), "the control")
	require.Equal(t, 1, sent)
}

// TestCodeThatEndsItsGoroutine checks that a call does not succeed if its code
// ends its goroutine before it returns.
func TestCodeThatEndsItsGoroutine(t *testing.T) {
	leaves := func(context.Context, string) (string, error) {
		runtime.Goexit()
		return "never", nil
	}
	pure, err := tool.Create("pure", "Leaves.", leaves, tool.Pure())
	fires, failed := tool.Create("fires", "Leaves.", leaves, tool.Effect(effect.Pivot))
	rt := newRuntime(t, agent.Tools(mustTool(t, pure, err), mustTool(t, fires, failed)), agent.Policy(allowAll()))
	tx := begin(t, newSession(t, rt))
	_, err = tx.Invoke(t.Context(), "pure", "x")
	require.ErrorIs(t, err, tool.ErrFailed)
	_, err = tx.Invoke(t.Context(), "fires", "x")
	require.ErrorIs(t, err, tool.ErrUnknown)
}
