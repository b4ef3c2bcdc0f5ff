package stats_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/stats"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/tool"
)

func ExampleRead() {
	ctx := context.Background()
	upper, err := tool.Create("upper", "Upper-case a text.", func(_ context.Context, in string) (string, error) { return strings.ToUpper(in), nil }, tool.Pure())
	if err != nil {
		fmt.Println(err)
		return
	}
	rt, err := agent.New(agent.Tools(upper), agent.Log(slog.New(slog.DiscardHandler)), agent.Policy(perm.EngineFunc(
		func(context.Context, perm.Request) (perm.Decision, error) {
			return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "all"}}}), nil
		},
	)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = rt.Close() }()
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = s.Update(ctx, func(tx *agent.Txn) error {
		out, err := tx.Invoke(ctx, "upper", "a")
		if err == nil {
			_, err = s.Feedback(ctx, out.Call, provenance.Good, "short and right")
		}
		return err
	})
	rows, failed := stats.Read(ctx, rt.Journal())
	fmt.Println(err, failed)
	for _, r := range rows {
		fmt.Println(r.Name, r.Calls, r.Done, r.Feedback)
	}
	// Output:
	// <nil> <nil>
	// upper 1 1 map[good:1]
}
