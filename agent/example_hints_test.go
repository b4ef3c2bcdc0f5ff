package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing/fstest"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// What the author of a tool says of it: policies read the hints, the system prompt has the usage, and the media type comes
// with the result.
func Example_hints() {
	ctx := context.Background()
	policy, err := rego.Load(rego.Source{FS: fstest.MapFS{"hints.rego": {Data: []byte(`package remit

deny contains "no call of high risk here" if input.tool.risk == "high"

deny contains "its author advises approval, and nobody is here" if input.tool.approval

allow contains "a second call has no second effect" if input.tool.idempotent
`)}}})
	if err != nil {
		panic(err)
	}
	make := func(name string, h tool.Hints) tool.Tool {
		made, err := tool.FromSpec(tool.Spec{
			Name: name, Description: "Writes a page.", Usage: "Call " + name + " once, when the text is final.", EffectClass: effect.Pure, Hints: h,
			Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
				return tool.Result{Text: "# Done", MediaType: "text/markdown"}, nil
			},
		})
		if err != nil {
			panic(err)
		}
		return made
	}
	rt, err := agent.New(agent.Policy(policy), agent.Log(slog.New(slog.DiscardHandler)), agent.Tools(
		make("draft", tool.Hints{Idempotent: true, Risk: perm.RiskLow}),
		make("publish", tool.Hints{Idempotent: true, Risk: perm.RiskHigh}),
		make("send", tool.Hints{Idempotent: true, Approval: true}),
	))
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close() }()
	session, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"draft", "publish", "send"} {
		out, _ := session.Call(ctx, name, "x")
		fmt.Println(name, out.Status, out.MediaType, out.Text)
	}
	usage, err := session.Usage(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(usage[:55])
	// Output:
	// draft done text/markdown # Done
	// publish denied  Denied: no call of high risk here. Repeating the call cannot help.
	// send denied  Denied: its author advises approval, and nobody is here. Repeating the call cannot help.
	// ## draft
	//
	// Call draft once, when the text is final.
	//
	// ##
}
