package compose_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/compose"
)

// Two tools, one after the other, are one tool.
func ExampleChain() {
	ctx := context.Background()
	pure := func(name string, f func(string) string) compose.Part {
		t, err := tool.Create(name, "Change a text.", func(_ context.Context, in string) (string, error) { return f(in), nil }, tool.Pure())
		if err != nil {
			panic(err)
		}
		return compose.Part{Tool: t}
	}
	shout, err := compose.Chain(compose.Declaration{Name: "shout", Description: "Say it loud."},
		pure("trim", strings.TrimSpace), pure("upper", strings.ToUpper))
	if err != nil {
		panic(err)
	}
	rt, err := agent.New(agent.Tools(shout), agent.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close() }()
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	if err != nil {
		panic(err)
	}
	_, err = s.Update(ctx, func(tx *agent.Txn) error {
		out, err := tx.Invoke(ctx, "shout", "  hi ")
		fmt.Println(out.Status, out.Text)
		return err
	})
	fmt.Println(shout.Class(), err)
	// Output:
	// done HI
	// pure <nil>
}
