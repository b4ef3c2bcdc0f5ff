package learn_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing/fstest"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/agent/learn"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// A program writes a policy from what its agents did.
func Example() {
	all, err := rego.Load(rego.Source{FS: fstest.MapFS{"policy.rego": {Data: []byte("package remit\n\nallow contains \"all\"\n")}}})
	if err != nil {
		panic(err)
	}
	ctx, j := context.Background(), journal.Memory()
	greet, err := tool.Create("greet", "Greets.", func(_ context.Context, name string) (string, error) { return "hello " + name, nil }, tool.Pure())
	if err != nil {
		panic(err)
	}
	rt, err := agent.New(agent.Log(slog.New(slog.DiscardHandler)), agent.Journal(j), agent.Tools(greet), agent.Policy(all))
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close() }()
	s, err := rt.Session(ctx, perm.Principal{ID: "greeter"})
	if err != nil {
		panic(err)
	}
	tx, err := s.Begin(ctx)
	if err != nil {
		panic(err)
	}
	if _, err := tx.Invoke(ctx, "greet", "ann"); err != nil {
		panic(err)
	}
	if err := tx.Commit(ctx); err != nil {
		panic(err)
	}
	evidence, err := learn.Collect(ctx, j, agent.RecordedDecisions(ctx, j, s.ID()))
	if err != nil {
		panic(err)
	}
	policy, err := evidence.Policy(ctx, learn.Options{})
	if err != nil {
		panic(err)
	}
	for _, r := range policy.Rules {
		fmt.Println(r.Count, r.Reason)
	}
	// Output: 1 call greet
}
