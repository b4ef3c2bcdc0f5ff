package journal

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
)

// EraseCommand returns remit erase.
func EraseCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	var yes, asJSON bool
	var why string
	cmd := &cobra.Command{
		Use: "erase CALL --why TEXT", Short: "Destroy the content in the records of a call, which then cannot be reverted",
		Long: "Destroys input, output, notes and stored content of one call and of its reverts. The journal keeps the tool, the\n" +
			"outcome and your name, and can still be checked, also with a head from another place. The transaction of the call must\n" +
			"have ended. On a terminal, the command lists what is lost and asks for confirmation; --yes confirms it. The command\n" +
			"does not change copies elsewhere, such as backups, or what the call itself wrote.",
		Args: cli.WantIDs(1, 1, "the id of one call"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(why) == "" {
				return cli.UsageProblem("--why must say what it is erased for")
			}
			return runErase(cmd.Context(), a, &p, args[0], why, yes, asJSON)
		},
	}
	state.AddFlags(cmd, &p)
	cmd.Flags().StringVar(&why, "why", "", "`TEXT` with the reason, which the journal keeps")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

func runErase(ctx context.Context, a *cli.App, p *state.Workspace, call, why string, yes, asJSON bool) error {
	who, err := a.Person()
	if err != nil {
		return err
	}
	return startup.WithRuntime(ctx, a, p, func(rt *agent.Runtime) error {
		call, err := state.FullID(ctx, rt.Journal(), call)
		if err != nil {
			return err
		}
		t, c, err := revert.LoadCall(ctx, rt.Journal(), call)
		if err != nil {
			return err
		}
		if t.End == "" {
			return &cli.Problem{
				Code: cli.ExitUsage, What: "nothing was erased", Why: "transaction " + t.ID + " of the call has not ended",
				Fix: p.Hint("resume", t.ID, "--at-end", "commit") + " keeps what it did, " + p.Hint("revert", t.ID) + " reverts it",
			}
		}
		if !asJSON {
			writeToErase(a.Style(), a.Out, c)
		}
		if !yes && c.Phase != revert.PhaseErased {
			if err := confirmErase(a, c); err != nil {
				return err
			}
		}
		done, err := rt.Erase(ctx, call, who, why)
		if err != nil {
			return err
		}
		if done.Waiting != "" {
			a.ExitWith(cli.ExitPartial)
		}
		if asJSON {
			a.WriteJSON(done)
		} else {
			writeErasure(a.Style(), a.Out, done, p)
		}
		return nil
	})
}

// confirmErase asks the user at the terminal. Only "y" or "yes" confirms.
func confirmErase(a *cli.App, c *revert.Call) error {
	tty, err := a.OpenTTY()
	if err != nil {
		return &cli.Problem{Code: cli.ExitUsage, What: "nothing was erased", Why: "there is no terminal to ask for confirmation", Fix: "add --yes to confirm"}
	}
	_, err = fmt.Fprintf(tty, "erase call %s for good? [y/N] ", c.Ref.Call)
	said, _ := bufio.NewReader(tty).ReadString('\n') // an unreadable answer does not confirm
	if closing := tty.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(said)) {
	case "y", "yes":
		return nil
	}
	return &cli.Problem{Code: cli.ExitUsage, What: "nothing was erased", Why: "the answer was not yes", Fix: "say y, or add --yes"}
}

// writeToErase describes what an erasure deletes, before it happens.
func writeToErase(p cli.Style, w io.Writer, c *revert.Call) {
	name := p.Bold(c.Ref.Call) + " " + cli.Printable(c.Tool.Name)
	switch {
	case c.Phase == revert.PhaseErased:
		_, _ = fmt.Fprintf(w, "%s was erased before\n", name)
	case c.HasEffects():
		_, _ = fmt.Fprintf(w, "%s: %s\n", name, p.Doubt("its effects can no longer be reverted"))
	case c.IsReverted():
		_, _ = fmt.Fprintf(w, "%s: it was reverted, and %s\n", name, p.Doubt("can no longer be redone"))
	default:
		_, _ = fmt.Fprintf(w, "%s: it had nothing to revert\n", name)
	}
}

func writeErasure(p cli.Style, w io.Writer, e revert.EraseReport, where *state.Workspace) {
	if e.Records > 0 {
		_, _ = fmt.Fprintf(w, "%s erased; dropped %s, %s\n", p.Good("✓"), cli.Count(int(e.Blobs), "content"), cli.Bytes(e.Bytes))
	}
	if len(e.Shared) > 0 {
		_, _ = fmt.Fprintf(w, "  %s is kept: other calls name the same\n", cli.Count(len(e.Shared), "content"))
	}
	if e.Waiting != "" {
		_, _ = fmt.Fprintf(w, "%s %s\n     %s\n", p.Doubt("?"), e.Waiting, "again  "+where.Hint("erase", e.Call, "--why", "again"))
	}
}

func erasedWords(e *erasedRecord) string {
	if e.Cause == "retention" {
		return "its records were dropped by age"
	}
	return "erased by " + cli.Printable(e.By)
}
