package web_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/remit-dev/remit/agent"
	handle "github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	builtin "github.com/remit-dev/remit/tool/builtin/web"
)

// ExampleHTTPCall makes a tool of a pair of requests of a service: one makes an item,
// the other takes it back.
func ExampleHTTPCall() {
	shop := &service{etags: true, keys: true}
	shop.start()
	defer shop.Close()
	order, err := builtin.HTTPCall(builtin.Call{
		Name: "order_create", Description: "Order something.", Method: "POST", URL: shop.URL + "/items",
		Input: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`),
		Keyed: true,
		Undo:  &handle.Compensation{Item: shop.URL + "/items/{id}", Find: shop.URL + "/items?key={key}", FindIn: "data"},
	})
	if err != nil {
		panic(err)
	}
	rt, err := agent.New(append(shop.parts(shop.URL, shop.Listener.Addr().String()), agent.Tools(order))...)
	if err != nil {
		panic(err)
	}
	defer rt.Close()
	ctx := context.Background()
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	if err != nil {
		panic(err)
	}
	id, err := s.Update(ctx, func(tx *agent.Txn) error {
		out, err := tx.Invoke(ctx, "order_create", tool.Args{"name": "tea"})
		fmt.Println(out.Status, out.Verdict.Presence, shop.state())
		return err
	})
	if err != nil {
		panic(err)
	}
	report, err := s.Revert(ctx, id, revert.Options{})
	fmt.Println(report.State, shop.state(), err)
	// Output:
	// done applied {"i1":{"id":"i1","name":"tea"}}
	// reverted {} <nil>
}
