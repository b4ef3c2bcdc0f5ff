package filter_test

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/filter"
)

// A runtime that takes keys out of what is delivered, and lets each session make three
// calls.
func Example() {
	look, err := tool.Create("look", "Looks something up.", func(_ context.Context, in string) (string, error) {
		return in + " has the key sk-4711", nil
	}, tool.Pure())
	if err != nil {
		fmt.Println(err)
		return
	}
	keys, err := filter.Redact(regexp.MustCompile(`sk-\d+`))
	if err != nil {
		fmt.Println(err)
		return
	}
	budget, err := filter.Budget{Session: filter.Usage{Calls: 3}}.Filter()
	if err != nil {
		fmt.Println(err)
		return
	}
	rt, err := agent.New(agent.Tools(look), agent.Log(slog.New(slog.DiscardHandler)), agent.Filters(keys, budget))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = rt.Close() }()
	ctx := context.Background()
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = s.Update(ctx, func(tx *agent.Txn) error {
		for range 4 {
			out, _ := tx.Invoke(ctx, "look", "the attic")
			fmt.Printf("%s: %q %q\n", out.Status, out.Text, out.EndLoop)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// done: "the attic has the key (hidden)" ""
	// done: "the attic has the key (hidden)" ""
	// done: "the attic has the key (hidden)\n\n[0 calls left of 3 calls for the session. No further call will run: answer with what there is.]" "0 calls left of 3 calls for the session"
	// denied: "Denied: filter budget: the budget of the session has too little left: 3 calls of 3 calls used. Repeating the call cannot help." "the budget of the session has too little left: 3 calls of 3 calls used"
	// <nil>
}
