package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
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

// closer closes tickets in a list, and opens them again.
func closer(t *testing.T, closed map[string]bool) tool.Tool {
	named := func(in json.RawMessage) string {
		var name string
		require.NoError(t, json.Unmarshal(in, &name))
		return name
	}
	made, err := tool.FromSpec(tool.Spec{
		Name: "close_ticket", Description: "Closes a ticket.", EffectClass: effect.Compensable, Destination: tool.Configured, UndoVersion: "1",
		Execute: func(_ context.Context, _ ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
			closed[named(in)] = true
			return tool.Text("closed"), nil
		},
		Revert: func(_ context.Context, rc tool.RevertContext) error {
			delete(closed, named(rc.Input))
			return nil
		},
	})
	return mustTool(t, made, err)
}

// only limits the tool to the tickets of the principal that calls it.
func only(tickets map[string][]string) agent.ToolCustomizer {
	return func(who perm.Principal, _ perm.SessionFacts, of tool.Spec) (tool.Spec, error) {
		mine, ok := tickets[who.ID]
		if !ok {
			return of, errors.New("there is nobody of that name")
		}
		if who.ID == "panics" {
			panic("no")
		}
		text, err := json.Marshal(map[string]any{"type": "string", "enum": mine})
		of.Input = text
		return of, err
	}
}

func TestToolsAreCustomized(t *testing.T) {
	ctx, closed := context.Background(), map[string]bool{}
	base := closer(t, closed)
	rt := newRuntime(t, agent.Tools(base), agent.Policy(allowAll()),
		agent.CustomizeTool("close_ticket", only(map[string][]string{"ann": {"A-1", "A-2"}, "bob": {"B-1"}, "panics": {}})))
	open := func(id string) *agent.Session {
		s, err := rt.Session(ctx, perm.Principal{ID: id})
		require.NoError(t, err)
		return s
	}
	ann, bob := open("ann"), open("bob")
	listed := func(s *agent.Session) []tool.Tool {
		tools, err := s.Tools(ctx)
		require.NoError(t, err)
		return tools
	}
	require.Contains(t, string(listed(ann)[0].InputSchema()), "A-2")
	digests := []string{base.Digest(), listed(ann)[0].Digest(), listed(bob)[0].Digest()}
	slices.Sort(digests)
	require.Len(t, slices.Compact(digests), 3)
	tx := begin(t, ann)
	out, err := tx.Invoke(ctx, "close_ticket", "A-1")
	require.NoError(t, err)
	_, err = tx.Invoke(ctx, "close_ticket", "B-1")
	require.ErrorIs(t, err, tool.ErrInvalid)
	_, c, err := revert.LoadCall(ctx, rt.Journal(), out.Call)
	require.NoError(t, err)
	require.Equal(t, listed(ann)[0].Digest(), c.Tool.Digest, "the record names what was made for the session")
	require.Empty(t, why(t, ann, "close_ticket"))

	for id, says := range map[string]string{"eve": "nobody of that name", "panics": "panicked (string)"} {
		s := open(id)
		require.Empty(t, listed(s))
		require.Contains(t, why(t, s, "close_ticket"), says)
		_, err := begin(t, s).Invoke(ctx, "close_ticket", "A-1")
		require.ErrorIs(t, err, tool.ErrInvalid)
		require.ErrorContains(t, err, says)
	}
	require.Equal(t, map[string]bool{"A-1": true}, closed)
}

func why(t *testing.T, s *agent.Session, name string) string {
	t.Helper()
	text, err := s.ToolHiddenReason(context.Background(), name)
	require.NoError(t, err)
	return text
}

func TestWhatCannotBeCustomized(t *testing.T) {
	ctx := context.Background()
	base := closer(t, map[string]bool{})
	cut := func(change func(*tool.Spec)) agent.ToolCustomizer {
		return func(_ perm.Principal, _ perm.SessionFacts, of tool.Spec) (tool.Spec, error) {
			change(&of)
			return of, nil
		}
	}
	for says, change := range map[string]func(*tool.Spec){
		"its name or its version":    func(s *tool.Spec) { s.Name = "other" },
		"name or its version would":  func(s *tool.Spec) { s.Version = "9" },
		"its undo version":           func(s *tool.Spec) { s.UndoVersion = "9" },
		"whether it has a Revert":    func(s *tool.Spec) { s.Revert, s.EffectClass = nil, effect.Pivot },
		"it would have settings":     func(s *tool.Spec) { s.Settings = tool.Params{{Name: "key", Type: "string"}} },
		"input schema":               func(s *tool.Spec) { s.Input = json.RawMessage(`{"type":7}`) },
		"it could not be made for t": func(s *tool.Spec) { s.Execute = nil },
	} {
		rt := newRuntime(t, agent.Tools(base), agent.Policy(allowAll()), agent.CustomizeTool("close_ticket", cut(change)))
		s := newSession(t, rt)
		require.Contains(t, why(t, s, "close_ticket"), says)
		_, err := s.ToolHiddenReason(ctx, "nothing")
		require.ErrorContains(t, err, `no tool "nothing"`)
	}
	same := cut(func(*tool.Spec) {})
	for says, opts := range map[string][]agent.Option{
		`no tool "nothing"`:            {agent.CustomizeTool("nothing", same)},
		`"close_ticket" is customized`: {agent.CustomizeTool("close_ticket", same), agent.CustomizeTool("close_ticket", same)},
		"is nil":                       {agent.CustomizeTool("close_ticket", nil)},
	} {
		_, err := agent.New(append(opts, quiet(), agent.Tools(base))...)
		require.ErrorContains(t, err, says)
	}
}

// TestCallsOfACustomizedToolAreReverted: by another process, where the function fails by then.
func TestCallsOfACustomizedToolAreReverted(t *testing.T) {
	ctx, state, closed := context.Background(), filepath.Join(t.TempDir(), "state"), map[string]bool{}
	var txn string
	for life, tickets := range []map[string][]string{{"coder": {"A-1"}}, {}} {
		j, err := sqlite.Open(ctx, state)
		require.NoError(t, err)
		rt, err := agent.New(quiet(), agent.Tools(closer(t, closed)), agent.Policy(allowAll()), agent.Journal(j), agent.CustomizeTool("close_ticket", only(tickets)))
		require.NoError(t, err)
		if life == 0 {
			txn, err = newSession(t, rt).Update(ctx, func(tx *agent.Txn) error {
				_, err := tx.Invoke(ctx, "close_ticket", "A-1")
				return err
			})
			require.NoError(t, err)
			require.NotEmpty(t, closed)
		} else {
			_, err := rt.Revert(ctx, txn, revert.Options{})
			require.NoError(t, err)
			require.Empty(t, closed)
		}
		require.NoError(t, rt.Close())
		require.NoError(t, j.Close())
	}
}

// TestAnApprovalIsOfTheCustomizedTool: what was asked about another declaration does not go on.
func TestAnApprovalIsOfTheCustomizedTool(t *testing.T) {
	ctx, tickets := context.Background(), map[string][]string{"coder": {"A-1"}}
	e := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": "package remit\nask contains \"a person looks\" if input.purpose == \"run\""}})
	rt := newRuntime(t, agent.Tools(closer(t, map[string]bool{})), agent.Policy(e), agent.SuspendForApproval(), agent.CustomizeTool("close_ticket", only(tickets)))
	tx := begin(t, newSession(t, rt))
	ask := func() string {
		out, err := tx.Invoke(ctx, "close_ticket", "A-1")
		require.ErrorIs(t, err, tool.ErrPending)
		require.NoError(t, rt.Answer(ctx, agent.Answer{Call: out.Call, Approved: true, By: "kim"}))
		return out.Call
	}
	first := ask()
	_, err := tx.Resume(ctx, first)
	require.NoError(t, err)
	second := ask()
	tickets["coder"] = []string{"A-1", "A-2"}
	_, err = tx.Resume(ctx, second)
	require.ErrorIs(t, err, tool.ErrDenied)
}

// TestCustomizeSeesTheSession: labels count from the next request on, and the newest version alone goes by its name.
func TestCustomizeSeesTheSession(t *testing.T) {
	of := func(version string) tool.Tool {
		return answering(t, "read", func(string) tool.Result { return tool.Result{Text: "x", Labels: []string{"secret"}} }, func(s *tool.Spec) { s.Version = version })
	}
	cut := func(_ perm.Principal, s perm.SessionFacts, of tool.Spec) (tool.Spec, error) {
		of.Description = s.Client.Surface + " " + strings.Join(s.Labels, ",")
		return of, nil
	}
	rt := newRuntime(t, agent.Tools(of("one"), of("two")), agent.Policy(allowAll()), agent.CustomizeTool("read", cut))
	s := newSession(t, rt, agent.ClientProfile(perm.ClientFacts{Surface: "chat"}))
	described := func() string {
		tools, err := s.Tools(context.Background())
		require.NoError(t, err)
		require.Len(t, tools, 1)
		require.Equal(t, "two", tools[0].Spec().Version)
		return tools[0].Spec().Description
	}
	require.Equal(t, "chat ", described())
	does(t, s, "read@one", "x")
	require.Equal(t, "chat secret", described())
	require.Equal(t, "there is a newer version; a call may name it", why(t, s, "read@one"))
}
