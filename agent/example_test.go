package agent_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
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

// What a tool holds for a session is reverted with the calls that left it.
func ExampleSession_Revert_state() {
	ctx := context.Background()
	type list struct{ Items []string }
	todo, err := tool.Stateful("todo", "Keep a list of what is to be done.", nil,
		func(context.Context, ctxperm.ToolContext) (list, error) { return list{}, nil },
		func(_ context.Context, _ ctxperm.ToolContext, in string, was list) ([]string, list, error) {
			was.Items = append(was.Items, in)
			return was.Items, was, nil
		}, tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
	if err != nil {
		panic(err)
	}
	rt, err := agent.New(agent.Tools(todo), agent.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close() }()
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	if err != nil {
		panic(err)
	}
	var last string
	for _, what := range []string{"bread", "milk", "nails"} {
		last, err = s.Update(ctx, func(tx *agent.Txn) error {
			out, err := tx.Invoke(ctx, "todo", what)
			fmt.Println(string(out.Output))
			return err
		})
		if err != nil {
			panic(err)
		}
	}
	if _, err = s.Revert(ctx, last, revert.Options{}); err != nil {
		panic(err)
	}
	_, err = s.Update(ctx, func(tx *agent.Txn) error {
		out, err := tx.Invoke(ctx, "todo", "wood")
		fmt.Println(string(out.Output))
		return err
	})
	fmt.Println(err)
	// Output:
	// ["bread"]
	// ["bread","milk"]
	// ["bread","milk","nails"]
	// ["bread","milk","wood"]
	// <nil>
}

// A sub-agent gets a part of what its parent holds. Policies see the chain of who handed it
// on; its transaction is inside the parent's, and goes with it; and so does its grant.
func ExampleSession_Delegate() {
	ctx := context.Background()
	note, err := tool.Stateful("note", "Keep a note.", nil,
		func(context.Context, ctxperm.ToolContext) (string, error) { return "", nil },
		func(_ context.Context, _ ctxperm.ToolContext, in, was string) (string, string, error) {
			return was, in, nil
		},
		tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
	if err != nil {
		panic(err)
	}
	other, err := tool.Create("other", "Do nothing.", func(_ context.Context, in string) (string, error) { return in, nil }, tool.Pure())
	if err != nil {
		panic(err)
	}
	policy := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		fmt.Println("asked by", r.Principal.ID, "of", r.Principal.Chain, "to", r.Purpose, r.Tool.Name)
		return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "all"}}}), nil
	})
	rt, err := agent.New(agent.Tools(note, other), agent.Policy(policy), agent.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close() }()
	parent, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	if err != nil {
		panic(err)
	}
	child, err := parent.Delegate(ctx, perm.Principal{ID: "helper"}, agent.Grant(perm.Access(perm.Call, "tool://note")))
	if err != nil {
		panic(err)
	}
	_, err = parent.Update(ctx, func(tx *agent.Txn) error {
		err := tx.UpdateNested(ctx, child, func(in *agent.Txn) error {
			if _, err := in.Invoke(ctx, "note", "mine"); err != nil {
				return err
			}
			_, err := in.Invoke(ctx, "other", "not granted")
			fmt.Println(errors.Is(err, tool.ErrDenied))
			return nil
		})
		if err != nil {
			return err
		}
		return errors.New("all of it goes")
	})
	fmt.Println(err)
	if err = rt.Revoke(ctx, parent.ID(), "kim", "done"); err != nil {
		panic(err)
	}
	_, err = child.Begin(ctx)
	fmt.Println(errors.Is(err, tool.ErrDenied))
	// Output:
	// asked by helper of [coder] to run note
	// asked by helper of [coder] to verify note
	// asked by helper of [coder] to run other
	// true
	// all of it goes
	// true
}
