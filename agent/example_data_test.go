package agent_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing/fstest"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/tool"
)

// One policy serves all tasks: the session says which order its task is about.
func ExampleData() {
	ctx := context.Background()
	refund, err := tool.Create("refund", "Refunds an order.", func(_ context.Context, order string) (string, error) { return "refunded " + order, nil }, tool.Pure())
	if err != nil {
		panic(err)
	}
	engine, err := rego.Load(rego.Source{FS: fstest.MapFS{"refund.rego": {Data: []byte(`package remit

allow contains "the order of the task" if input.call.args == input.session.data.order
`)}}})
	if err != nil {
		panic(err)
	}
	rt, err := agent.New(agent.Tools(refund), agent.Policy(engine), agent.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close() }()
	s, err := rt.Session(ctx, perm.Principal{ID: "support"}, agent.Data(map[string]string{"order": "A-17"}))
	if err != nil {
		panic(err)
	}
	for _, id := range []string{"A-17", "B-2"} {
		_, err = s.Update(ctx, func(tx *agent.Txn) error {
			_, err := tx.Invoke(ctx, "refund", id)
			return err
		})
		fmt.Println(id, err == nil, errors.Is(err, tool.ErrDenied))
	}
	// Output:
	// A-17 true false
	// B-2 false true
}
