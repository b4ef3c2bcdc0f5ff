package agent_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// The workspace policy runs a pure tool, and refuses one that does not say what
// can be done about its effects.
func Example() {
	ctx := context.Background()
	shout := func(_ context.Context, in string) (string, error) { return strings.ToUpper(in), nil }
	upper, err := tool.Create("upper", "Upper-case a text.", shout, tool.Pure())
	if err != nil {
		panic(err)
	}
	vague, err := tool.Create("vague", "Says nothing of its effects.", shout)
	if err != nil {
		panic(err)
	}
	rt, err := agent.New(agent.Tools(upper, vague), agent.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close() }()
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	if err != nil {
		panic(err)
	}
	_, err = s.Update(ctx, func(tx *agent.Txn) error {
		out, err := tx.Invoke(ctx, "upper", "hi")
		if err != nil {
			return err
		}
		fmt.Println(out.Status, out.Text)
		out, err = tx.Invoke(ctx, "vague", "hi")
		fmt.Println(out.Status, errors.Is(err, tool.ErrDenied))
		return nil
	})
	fmt.Println(err)
	// Output:
	// done HI
	// denied true
	// <nil>
}
