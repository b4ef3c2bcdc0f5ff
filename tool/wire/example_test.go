package wire_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/wire"
)

// One turn of a conversation with Anthropic's Messages. Its user sends the request, and appends the turn as it came, and then
// the messages, to the history.
func Example() {
	upper, err := tool.Create("upper", "Upper-cases a text.",
		func(_ context.Context, in string) (string, error) { return strings.ToUpper(in), nil }, tool.Pure())
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	rt, err := agent.New(agent.Tools(upper), agent.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close() }()
	session, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	if err != nil {
		panic(err)
	}
	tools, err := session.Tools(ctx)
	if err != nil {
		panic(err)
	}
	a, err := wire.New(wire.Anthropic, tools...)
	if err != nil {
		panic(err)
	}
	request, err := a.Request(wire.ToolChoice{Mode: wire.Auto})
	fmt.Println(string(request["tools"]), string(request["tool_choice"]), err)

	response := json.RawMessage(`{"role":"assistant","stop_reason":"tool_use","content":[
		{"type":"tool_use","id":"toolu_1","name":"upper","input":{"input":"hello"}},
		{"type":"tool_use","id":"toolu_2","name":"lower","input":{"input":"HELLO"}}]}`)
	calls, err := a.Calls(response)
	if err != nil {
		panic(err)
	}
	outcomes := make([]tool.Outcome, len(calls))
	_, err = session.Update(ctx, func(tx *agent.Txn) error {
		for i, c := range calls {
			if c.Problem == nil { // else Results says what it is
				outcomes[i], _ = tx.Invoke(ctx, c.Name, c.Input) // the outcome says how it went
			}
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	messages, err := a.Results(calls, outcomes)
	for _, m := range messages {
		fmt.Println(strings.ReplaceAll(string(m), `},{"content"`, "},\n  {\"content\""), err)
	}
	// Output:
	// [{"description":"Upper-cases a text.","input_schema":{"additionalProperties":false,"properties":{"input":{"type":"string"}},"required":["input"],"type":"object"},"name":"upper"}] {"type":"auto"} <nil>
	// {"content":[{"content":[{"text":"HELLO","type":"text"}],"tool_use_id":"toolu_1","type":"tool_result"},
	//   {"content":[{"text":"Not a valid call: there is no tool \"lower\". There are: upper. Repeating it unchanged cannot help.","type":"text"}],"is_error":true,"tool_use_id":"toolu_2","type":"tool_result"}],"role":"user"} <nil>
}
