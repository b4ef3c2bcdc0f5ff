package replay_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing/fstest"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/agent/replay"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// A program tries a new policy on what its agents did.
func Example() {
	load := func(text string) *rego.Engine {
		e, err := rego.Load(rego.Source{FS: fstest.MapFS{"policy.rego": {Data: []byte("package remit\n\n" + text)}}})
		if err != nil {
			panic(err)
		}
		return e
	}
	ctx, j := context.Background(), journal.Memory()
	greet, err := tool.Create("greet", "Greets.", func(_ context.Context, name string) (string, error) { return "hello " + name, nil }, tool.Pure())
	if err != nil {
		panic(err)
	}
	rt, err := agent.New(agent.Log(slog.New(slog.DiscardHandler)), agent.Journal(j), agent.Tools(greet), agent.Policy(load(`allow contains "all"`)))
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
	for _, name := range []string{"ann", "bob", "eve"} {
		if _, err := tx.Invoke(ctx, "greet", name); err != nil {
			panic(err)
		}
	}
	stricter := load("allow contains \"all\"\n\ndeny contains \"twice is enough\" if input.session.tools.greet.run >= 2\n")
	o := replay.Options{New: stricter}
	report, err := replay.Run(ctx, replay.Decisions(ctx, j, s.ID(), o), o)
	if err != nil {
		panic(err)
	}
	for _, c := range report.Changes {
		fmt.Println(c.Before, "to", c.After, c.Count, c.Is[0].Text)
	}
	// Output: allow to deny 1 twice is enough
}
