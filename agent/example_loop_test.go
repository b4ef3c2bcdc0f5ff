package agent_test

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

// A model that calls one tool and then answers; a real one is asked over the network.
func ExampleLoop() {
	ctx := context.Background()
	upper, err := tool.Create("upper", "Upper-case a text.",
		func(_ context.Context, in string) (string, error) { return strings.ToUpper(in), nil }, tool.Pure())
	if err != nil {
		panic(err)
	}
	rt, err := agent.New(agent.Tools(upper), agent.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close() }()
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	if err != nil {
		panic(err)
	}
	adapter, err := wire.New(wire.Anthropic, upper)
	if err != nil {
		panic(err)
	}
	loop := agent.Loop{
		Adapter: adapter,
		CallModel: func(_ context.Context, p agent.ModelRequest) (json.RawMessage, error) {
			if len(p.Messages) == 1 {
				return json.RawMessage(`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"upper","input":{"input":"hi"}}],"stop_reason":"tool_use"}`), nil
			}
			return json.RawMessage(`{"role":"assistant","content":[{"type":"text","text":"It is HI."}],"stop_reason":"end_turn"}`), nil
		},
	}
	c := agent.Conversation{Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"Shout hi."}`)}}
	_, err = s.Update(ctx, func(tx *agent.Txn) (err error) {
		c, err = loop.Run(ctx, tx, c)
		return err
	})
	for _, m := range c.Messages {
		fmt.Println(string(m))
	}
	fmt.Println(err)
	// Output:
	// {"role":"user","content":"Shout hi."}
	// {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"upper","input":{"input":"hi"}}]}
	// {"content":[{"content":[{"text":"HI","type":"text"}],"tool_use_id":"t1","type":"tool_result"}],"role":"user"}
	// {"role":"assistant","content":[{"type":"text","text":"It is HI."}]}
	// <nil>
}
