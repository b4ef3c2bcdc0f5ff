package agent_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// A tool that wants the model's provider to be trusted is neither listed nor run where it is not.
func ExampleClientProfile() {
	ctx := context.Background()
	read := func(_ context.Context, in string) (string, error) { return "the letter of " + in, nil }
	letter, err := tool.Create("letter", "Reads a letter.", read, tool.Pure())
	if err != nil {
		panic(err)
	}
	if letter, err = letter.Modify(func(s *tool.Spec) { s.MinProviderTrust = 700 }); err != nil {
		panic(err)
	}
	rt, err := agent.New(agent.Tools(letter), agent.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close() }()
	for _, confidence := range []int{600, 700} {
		s, err := rt.Session(ctx, perm.Principal{ID: "clerk"}, agent.ClientProfile(perm.ClientFacts{ProviderTrust: confidence}))
		if err != nil {
			panic(err)
		}
		tools, err := s.Tools(ctx)
		if err != nil {
			panic(err)
		}
		_, err = s.Update(ctx, func(tx *agent.Txn) error {
			_, err := tx.Invoke(ctx, "letter", "Monday")
			return err
		})
		fmt.Println(len(tools), errors.Is(err, tool.ErrDenied), err == nil)
	}
	// Output:
	// 0 true false
	// 1 false true
}
