package approve

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
)

// SettleCommand returns remit resolve. The outcome has no default: the command
// must not guess it.
func SettleCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	var why string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "resolve CALL applied|absent --why TEXT", Short: "Resolve a call with an unknown outcome",
		Long: "Records what you found: applied, the effect is there and can be reverted like any other; or absent, the effect is not\n" +
			"there. The record has your name, as the operating system reports it. There is no default. As for an approval, you must\n" +
			"not be the person who asked for the call, and the terminal must not be one that the agent started.",
		Args: cli.WantIDs(2, 2, "the id of one call, and applied or absent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] != "applied" && args[1] != "absent" {
				return cli.UsageProblem(fmt.Sprintf("%q is not an answer; say applied or absent", args[1]))
			}
			if strings.TrimSpace(why) == "" {
				return cli.UsageProblem("--why must say what you looked at")
			}
			who, err := a.Person()
			if err != nil {
				return err
			}
			return startup.WithRuntime(cmd.Context(), a, &p, func(rt *agent.Runtime) error {
				id, err := state.FullID(cmd.Context(), rt.Journal(), args[0])
				if err != nil {
					return err
				}
				_, call, err := revert.LoadCall(cmd.Context(), rt.Journal(), id)
				if err != nil {
					return err
				}
				asked, err := approval.PendingOn(cmd.Context(), rt.Journal())
				if err != nil {
					return err
				}
				rules, err := approval.RulesFor(cmd.Context(), &p, rt.Journal(), id)
				if err != nil {
					return err
				}
				if err := approval.CheckApprover(a, &p, rules, append(asked, call)...); err != nil { // otherwise an agent could resolve its own call
					return err
				}
				err = rt.ResolveUnknown(cmd.Context(), id, record.Decided{Applied: args[1] == "applied", By: who, Why: why})
				if err != nil {
					return answerProblem(err, &p, id)
				}
				if asJSON {
					a.WriteJSON(answerOutput{id, args[1], who, why, ""})
					return nil
				}
				_, _ = fmt.Fprintf(a.Out, "call %s is resolved: %s, by %s\n", cli.Printable(id), args[1], cli.Printable(who))
				return nil
			})
		},
	}
	state.AddFlags(cmd, &p)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	cmd.Flags().StringVar(&why, "why", "", "`TEXT` with the evidence that you checked")
	return cmd
}
