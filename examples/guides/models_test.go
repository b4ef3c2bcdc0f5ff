package guides_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/wire"
)

func upper(t *testing.T, opts ...tool.Option) tool.Tool {
	t.Helper()
	made, err := tool.Create("upper", "Upper-case a text.",
		func(_ context.Context, in string) (string, error) { return strings.ToUpper(in), nil }, append(opts, tool.Pure())...)
	require.NoError(t, err)
	return made
}

// The output of a model that calls the tool once, and then answers.
const (
	calling = `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"upper","input":{"input":"hi"}}],"stop_reason":"tool_use"}`
	done    = `{"role":"assistant","content":[{"type":"text","text":"It is HI."}],"stop_reason":"end_turn"}`
)

func TestFrameworks(t *testing.T) {
	ctx := t.Context()
	rt, _ := runtime(t, agent.Tools(upper(t)))
	session := session(t, rt)
	_, err := session.Update(ctx, func(tx *agent.Txn) error {
		id, name, arguments := "t1", "upper", json.RawMessage(`{"input":"hi"}`)
		// guide: guides/frameworks.md
		shown, err := session.Tools(ctx)             // what this session is shown
		a, err := wire.New(wire.Anthropic, shown...) // any format will do; the definitions of this one are flat
		raw, err := a.Definitions()                  // name, description, input_schema of each

		// when the framework calls a tool:
		call := a.Call(id, name, arguments) // id is "" if the framework does not pass it
		var outcome tool.Outcome
		if call.Problem == nil {
			var opts []agent.CallOption
			if call.ID != "" {
				opts = append(opts, agent.WithCallID(call.ID))
			}
			outcome, _ = tx.Invoke(ctx, call.Name, call.Input, opts...)
		}
		text, failed := call.Answer(outcome)
		// end of guide
		require.NoError(t, err)
		require.Contains(t, string(raw), "upper")
		require.False(t, failed)
		require.Equal(t, "HI", text)
		return err
	})
	require.NoError(t, err)
}

func TestWire(t *testing.T) {
	ctx := t.Context()
	rt, _ := runtime(t, agent.Tools(upper(t)))
	session := session(t, rt)
	_, err := session.Update(ctx, func(tx *agent.Txn) error {
		body, outcomes := json.RawMessage(calling), make([]tool.Outcome, 1)
		// guide: guides/wire.md
		tools, err := session.Tools(ctx) // what this session is shown
		a, err := wire.New(wire.Anthropic, tools...)
		fields, err := a.Request(wire.ToolChoice{}) // members of the request: tools, and the choice
		// send the request; body is the response
		calls, err := a.Calls(body)
		for i, c := range calls {
			if c.Problem == nil {
				outcomes[i], _ = tx.Invoke(ctx, c.Name, c.Input)
			}
		}
		messages, err := a.Results(calls, outcomes) // to append after the turn
		// end of guide
		require.NoError(t, err)
		require.Contains(t, string(fields["tools"]), "upper")
		require.Len(t, messages, 1)
		require.Contains(t, string(messages[0]), "HI")
		return err
	})
	require.NoError(t, err)
}

func TestLoop(t *testing.T) {
	ctx := t.Context()
	tools := []tool.Tool{upper(t)}
	rt, _ := runtime(t, agent.Tools(tools...))
	session := session(t, rt)
	question := "Shout hi."
	send := func(_ context.Context, messages []json.RawMessage, _ map[string]json.RawMessage) (json.RawMessage, error) {
		if len(messages) == 1 {
			return json.RawMessage(calling), nil
		}
		return json.RawMessage(done), nil
	}
	kept := 0
	save := func(context.Context, agent.Conversation) error { kept++; return nil }
	// guide: guides/loop.md
	a, err := wire.New(wire.Anthropic, tools...) // the provider's shape, and the tools that are offered
	loop := agent.Loop{
		Adapter: a,
		CallModel: func(ctx context.Context, p agent.ModelRequest) (json.RawMessage, error) {
			return send(ctx, p.Messages, p.Tools) // your client: the history, and the members about tools
		},
		Save: save, // makes the conversation durable; may be left out
	}
	var c agent.Conversation
	txn, err := session.Update(ctx, func(tx *agent.Txn) (err error) {
		c, err = loop.Ask(ctx, tx, c, question) // c.Answer is the answer
		return err                              // commits on an answer; reverts on an error; stays open for approval
	})
	// end of guide
	require.NoError(t, err)
	require.NotEmpty(t, txn)
	require.Len(t, c.Messages, 4)
	require.NotEmpty(t, c.Answer)
	require.Positive(t, kept)
}

// TestLoopWithoutModel plays the turns of a model, with an approver in the program.
func TestLoopWithoutModel(t *testing.T) {
	ctx := t.Context()
	tools := []tool.Tool{upper(t)}
	engine := open(t, "package remit\nask contains \"a person looks first\" if input.tool.name == \"upper\"")
	asked := 0
	confirm := func(_ context.Context, name string, _ json.RawMessage, _ []perm.Reason) bool {
		asked++
		return name == "upper" && asked == 1
	}
	// guide: guides/try-loop.md
	approver := ctxperm.ApproverFunc(func(ctx context.Context, a ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
		if !confirm(ctx, a.Tool, a.Input, a.Reasons) { // your own dialogue
			return ctxperm.Deny("ann", "not today"), nil
		}
		return ctxperm.Approve("ann"), nil // the runtime refuses the ID of the principal that asks
	})
	rt, err := agent.New(agent.Tools(tools...), agent.Policy(engine), agent.Approver(approver))
	// end of guide
	require.NoError(t, err)
	// guide: guides/try-loop.md
	play := func(_ context.Context, p agent.ModelRequest) (json.RawMessage, error) {
		if len(p.Messages) == 1 { // the question; each turn of the model adds itself and the results
			return json.RawMessage(`{"role":"assistant","stop_reason":"tool_use","content":[
				{"type":"tool_use","id":"t1","name":"upper","input":{"input":"hi"}}]}`), nil
		}
		return json.RawMessage(`{"role":"assistant","stop_reason":"end_turn","content":[{"type":"text","text":"It is HI."}]}`), nil
	}
	// end of guide
	a, err := wire.New(wire.Anthropic, tools...)
	require.NoError(t, err)
	loop, session := agent.Loop{Adapter: a, CallModel: play}, session(t, rt)
	for _, want := range []string{"HI", "Denied: a person looks first"} {
		_, err = session.Update(ctx, func(tx *agent.Txn) error {
			c, err := loop.Ask(ctx, tx, agent.Conversation{}, "Shout hi.")
			require.Equal(t, "It is HI.", c.Answer)
			require.Contains(t, string(c.Messages[2]), want)
			return err
		})
		require.NoError(t, err)
	}
	require.Equal(t, 2, asked)
}

// TestLoopGoesOn answers a waiting call, and continues the conversation in its
// transaction.
func TestLoopGoesOn(t *testing.T) {
	ctx := t.Context()
	tools := []tool.Tool{upper(t)}
	rt, _ := runtime(t, agent.Tools(tools...), agent.SuspendForApproval(), agent.Policy(open(t, `package remit
		ask contains "a person looks first" if input.tool.name == "upper"`)))
	session := session(t, rt)
	a, err := wire.New(wire.Anthropic, tools...)
	require.NoError(t, err)
	loop := agent.Loop{Adapter: a, CallModel: func(_ context.Context, p agent.ModelRequest) (json.RawMessage, error) {
		if len(p.Messages) == 1 {
			return json.RawMessage(calling), nil
		}
		return json.RawMessage(done), nil
	}}
	c := agent.Conversation{Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"Shout hi."}`)}}
	_, err = session.Update(ctx, func(tx *agent.Txn) (err error) {
		c, err = loop.Run(ctx, tx, c)
		return err
	})
	require.ErrorIs(t, err, tool.ErrPending)
	require.Len(t, c.Waiting, 1)
	require.NoError(t, rt.Answer(ctx, agent.Answer{Call: c.Waiting[0], Approved: true, By: "ann"}))
	// guide: guides/loop.md
	tx, err := rt.ResumeTxn(ctx, c.Txn)
	c, err = loop.Run(ctx, tx, c)
	// end of guide
	require.NoError(t, err)
	require.Len(t, c.Messages, 4)
	require.NoError(t, tx.Commit(ctx))
}

func TestVisibility(t *testing.T) {
	ctx := t.Context()
	rt, _ := runtime(t, agent.Tools(upper(t, func(s *tool.Spec) { s.Tags, s.MinProviderTrust = []string{"files"}, 700 })))
	// guide: guides/visibility.md
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"}, agent.ClientProfile(perm.ClientFacts{
		Surface:       "chat", // the kind of session, in your own words
		Model:         "m-1",
		Capabilities:  []string{"vision"},           // of the model
		ProviderTrust: 800,                          // in the provider, in thousandths
		Selected:      []string{"files", "tickets"}, // names and tags that the user selected; nil: no selection
		Disabled:      []string{"mail"},             // names and tags that are off
	}))
	// end of guide
	require.NoError(t, err)
	shown, err := s.Tools(ctx)
	require.NoError(t, err)
	require.Len(t, shown, 1)
}

// TestLabels checks that the labels of a result deny what a rule then denies to
// the session.
func TestLabels(t *testing.T) {
	letter := "Dear Ann"
	read, err := tool.FromSpec(tool.Spec{Name: "letter", Description: "Reads a letter.", EffectClass: effect.Pure, OutputContent: &provenance.Content{}, Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
		// guide: guides/data-flow.md
		return tool.Result{Text: letter, Labels: []string{"case:7", "secret"}, Requires: []string{"verify"}}, nil
		// end of guide
	}})
	require.NoError(t, err)
	rule := take(t, "guides/visibility.md", "rego", 0) + `allow contains "all" if true`
	rt, _ := runtime(t, agent.Tools(read), agent.Policy(open(t, rule)))
	for confidence, why := range map[int]string{
		800: "the provider of the model is not trusted with this", // the session is labelled private by then
		950: `a result of this session requires "verify"`,         // like the first one
	} {
		s := session(t, rt, agent.ClientProfile(perm.ClientFacts{ProviderTrust: confidence}))
		out, err := call(t, s, "letter", "")
		require.NoError(t, err, out.Text)
		require.Equal(t, letter, out.Text)
		_, err = call(t, s, "letter", "")
		require.ErrorContains(t, err, why)
	}
}

func TestGiven(t *testing.T) {
	ctx, who := t.Context(), perm.Principal{ID: "reader"}
	visit, err := tool.Create("visit", "Reads a page.", func(context.Context, string) (string, error) { return "a page", nil }, tool.Pure())
	require.NoError(t, err)
	engine, err := policy()
	require.NoError(t, err)
	rt, _ := runtime(t, agent.Tools(visit), agent.Policy(engine))
	prompt, nextPrompt := "What does https://example.com/news say?", "And https://example.com/old?"
	s, err := startWithURLs(ctx, rt, who, prompt, nextPrompt)
	require.NoError(t, err)
	for url, denied := range map[string]bool{"https://example.com/news": false, "https://example.com/old": false, "https://example.com/?q=secret": true} {
		_, err = call(t, s, "visit", url)
		require.Equal(t, denied, errors.Is(err, tool.ErrDenied), url)
	}
}

func policy() (*rego.Engine, error) {
	// guide: guides/data-flow.md
	engine, err := rego.Load(
		rego.Source{FS: policies.Workspace(), Prefix: policies.Prefix},
		rego.Source{FS: policies.UserProvided(), Prefix: policies.Prefix},
	)
	// end of guide
	return engine, err
}

func startWithURLs(ctx context.Context, rt *agent.Runtime, who perm.Principal, prompt, nextPrompt string) (*agent.Session, error) {
	// guide: guides/data-flow.md
	s, err := rt.Session(ctx, who, agent.Heard(prompt)) // all URLs in the text of the user
	if err != nil {
		return nil, err
	}
	err = s.Heard(ctx, nextPrompt) // and in later texts; remit run --user-text TEXT
	// end of guide
	return s, err
}

func TestCustomize(t *testing.T) {
	closeTicket, err := tool.Create("close_ticket", "Closes a ticket.", func(_ context.Context, in string) (string, error) { return "closed " + in, nil }, tool.Pure())
	require.NoError(t, err)
	ticketsOf := func(id string) ([]string, error) { return map[string][]string{"coder": {"A-1"}}[id], nil }
	oneOf := func(all []string) json.RawMessage {
		text, err := json.Marshal(map[string]any{"type": "string", "enum": all})
		require.NoError(t, err)
		return text
	}
	// guide: guides/visibility.md
	rt, err := agent.New(agent.Tools(closeTicket), agent.CustomizeTool("close_ticket",
		func(who perm.Principal, s perm.SessionFacts, of tool.Spec) (tool.Spec, error) {
			mine, err := ticketsOf(who.ID)
			of.Input = oneOf(mine) // the schema of an enumeration
			return of, err
		}))
	// end of guide
	require.NoError(t, err)
	defer func() { _ = rt.Close() }()
	s := session(t, rt)
	_, err = call(t, s, "close_ticket", "A-1")
	require.NoError(t, err)
	_, err = call(t, s, "close_ticket", "B-1")
	require.ErrorIs(t, err, tool.ErrInvalid)
}
