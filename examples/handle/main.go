package main

import (
	"context"
	"fmt"
	"log"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

func main() {
	if err := run(context.Background(), &settings{values: map[string]string{"lamp": "off"}}); err != nil {
		log.Fatal(err)
	}
}

// choice is the model's input.
type choice struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// newRuntime has one tool, which acts through the handle, and the scheme that
// reverts its changes.
func newRuntime(world *settings, journal journal.Journal) (*agent.Runtime, error) {
	set, err := tool.CreateTyped("setting_set", "Change a setting.",
		[]perm.ResourceAccess{perm.Access(perm.Write, prefix+"{name}")},
		func(ctx context.Context, tc ctxperm.ToolContext, in choice) (string, error) {
			return "set", world.set(ctx, tc, in.Name, value{in.Value, true})
		},
		tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
	if err != nil {
		return nil, err
	}
	return agent.New(agent.Tools(set), agent.Scheme(scheme{world}), agent.Policy(perm.EngineFunc(lampPolicy)), agent.Journal(journal))
}

// lampPolicy is the whole policy.
func lampPolicy(_ context.Context, r perm.Request) (perm.Decision, error) {
	if r.Access.Action == perm.Write && r.Access.Resource.Table == "lamp" {
		return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "the lamp may be switched"}}}), nil
	}
	return perm.NewDecision(perm.Deny, perm.Details{Reasons: []perm.Reason{{Text: "nothing but the lamp"}}}), nil
}

func run(ctx context.Context, world *settings) error {
	rt, err := newRuntime(world, journal.Memory())
	if err != nil {
		return err
	}
	defer rt.Close()
	s, err := rt.Session(ctx, perm.Principal{ID: "housekeeper"})
	if err != nil {
		return err
	}
	id, err := s.Update(ctx, func(tx *agent.Txn) error {
		_, err := tx.Invoke(ctx, "setting_set", tool.Args{"name": "lamp", "value": "on"})
		return err
	})
	if err != nil {
		return err
	}
	fmt.Println("lamp:", world.get("lamp").Text)
	report, err := s.Revert(ctx, id, revert.Options{})
	fmt.Println(report.State, "lamp:", world.get("lamp").Text)
	return err
}
