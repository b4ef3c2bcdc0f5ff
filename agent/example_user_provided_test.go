package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/tool"
)

// A model may visit what its person named, and nothing that it made up.
func ExampleUserProvided() {
	ctx := context.Background()
	visit, err := tool.Create("visit", "Reads a page.", func(context.Context, string) (string, error) { return "a page", nil }, tool.Pure())
	if err != nil {
		panic(err)
	}
	engine, err := rego.Load(
		rego.Source{FS: policies.Workspace(), Prefix: policies.Prefix},
		rego.Source{FS: policies.UserProvided(), Prefix: policies.Prefix},
	)
	if err != nil {
		panic(err)
	}
	rt, err := agent.New(agent.Tools(visit), agent.Policy(engine), agent.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close() }()
	s, err := rt.Session(ctx, perm.Principal{ID: "reader"}, agent.Heard("What does https://example.com/news say?"))
	if err != nil {
		panic(err)
	}
	for _, url := range []string{"https://EXAMPLE.com:443/news", "https://example.com/news?and=what+it+read"} {
		_, err = s.Update(ctx, func(tx *agent.Txn) error {
			_, err := tx.Invoke(ctx, "visit", url)
			return err
		})
		fmt.Println(err == nil, errors.Is(err, tool.ErrDenied))
	}
	// Output:
	// true false
	// false true
}

// Each user closes their own tickets, and is offered no others.
func ExampleCustomizeTool() {
	ctx := context.Background()
	tickets := map[string][]string{"ann": {"A-1", "A-2"}}
	closing, err := tool.Create("close_ticket", "Closes a ticket.", func(_ context.Context, in string) (string, error) { return "closed " + in, nil }, tool.Pure())
	if err != nil {
		panic(err)
	}
	rt, err := agent.New(agent.Tools(closing), agent.Log(slog.New(slog.DiscardHandler)), agent.CustomizeTool("close_ticket",
		func(who perm.Principal, _ perm.SessionFacts, of tool.Spec) (tool.Spec, error) {
			mine, ok := tickets[who.ID]
			if !ok {
				return of, errors.New("there are no tickets of " + who.ID)
			}
			var err error
			of.Input, err = json.Marshal(map[string]any{"type": "string", "enum": mine})
			return of, err
		}))
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close() }()
	for _, who := range []string{"ann", "bob"} {
		s, err := rt.Session(ctx, perm.Principal{ID: who})
		if err != nil {
			panic(err)
		}
		tools, err := s.Tools(ctx)
		if err != nil {
			panic(err)
		}
		why, err := s.ToolHiddenReason(ctx, "close_ticket")
		fmt.Println(len(tools), why, err)
	}
	// Output:
	// 1  <nil>
	// 0 it could not be made for this session: there are no tickets of bob <nil>
}
