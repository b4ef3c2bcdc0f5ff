package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// RunCommand returns remit run.
func RunCommand(a *cli.App) *cobra.Command {
	var f startup.Flags
	cmd := &cobra.Command{
		Use:   "run [flags] SCRIPT.jsonl | -",
		Short: "Run a script of calls, one per line",
		Long: "Runs the calls of a script in a transaction. Each line is one JSON object:\n\n" +
			`  {"tool":"file_write","args":{"path":"a.txt","content":"hi"}}` + "\n" +
			`  {"parallel":[{"tool":…,"args":…},…]}      calls that run at once` + "\n" +
			`  {"savepoint":"a"}, {"revert_to":"a"}      revert what came after` + "\n" +
			`  {"commit":true}, {"revert":true}          end the transaction; a later call begins the next` + "\n\n" +
			"remit reads a file to its end before the first call runs. If a line is not a step, nothing of the file runs (exit code 5;\n" +
			"--keep-going runs the other lines). From standard input (-), remit runs each line when it arrives, up to the first line\n" +
			"that is not a step.\n\n" +
			"Exit codes: 0 all done; 1 internal; 2 usage; 3 a call was denied; 4 a call waits for approval; 5 a call failed, was\n" +
			"invalid or did not verify; 6 not everything could be reverted; 7 an outcome is unknown. The most serious one wins:\n" +
			"1, 2, 7, 6, 5, 4, 3.",
		Args: cli.WantArgs(1, 1, "one script, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.AsSet = cmd.Flags().Changed("principal")
			if f.SessionFile == "" && cmd.Flags().Changed("session") {
				return cli.UsageProblem("--session names no file; is a variable not set?")
			}
			f.RestCommand = restCommand(&f, cmd, args[0])
			return runScript(cmd.Context(), a, f, args[0])
		},
	}
	state.AddFlags(cmd, &f.Workspace)
	state.AddDatabaseFlag(cmd, &f.Workspace)
	state.AddServiceFlags(cmd, &f.Services)
	state.AddDeclarationFlags(cmd, &f.Declared)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.Roots, "root", nil, "another root for calls, as `NAME=DIR`")
	flags.StringArrayVar(&f.Policies, "policy", nil, "policy `PATH`: a .rego file, a folder of such files, or builtin:PACK (default: the workspace policy)")
	flags.StringVar(&f.As, "principal", "agent", "`ID` of the principal: the agent or person that makes the calls")
	flags.StringVar(&f.SessionFile, "session", "", "`FILE` with the secret of a session: the run continues the session, with its counters, labels and approvals; remit creates a missing file, for a new session")
	flags.StringArrayVar(&f.Roles, "role", nil, "role `R` of the principal")
	startup.AddDataFlags(cmd, &f.Data)
	flags.StringVar(&f.OnAsk, "on-ask", "deny", "`MODE` for calls that need approval: deny denies them, wait lets them wait for remit approve, prompt asks you at the terminal, approve-unsafe approves them all in your name")
	flags.StringVar(&f.AtEnd, "at-end", "commit", "`END` of the transaction after the last call: commit, revert or leave-open")
	startup.AddSandboxFlag(cmd, &f.Workspace)
	startup.AddLimitFlags(cmd, &f.Limits)
	flags.StringArrayVar(&f.UserTexts, "user-text", nil, "`TEXT` of the user, such as a prompt; its URLs are user-provided, and its values are the user's: docs/guides/data-flow.md")
	flags.DurationVar(&f.ClaimTimeout, "claim-timeout", 0, "`TIME` for which a call waits for a file that another open transaction claims, such as 30s (default: the call fails immediately and names that transaction)")
	flags.BoolVar(&f.Atomic, "atomic", false, "revert everything and end the script at the first call that is not done")
	flags.BoolVar(&f.KeepGoing, "keep-going", false, "continue after a line that is not a step, and run a file that contains one")
	flags.BoolVar(&f.JSON, "json", false, "write one JSON object per line")
	return cmd
}

func runScript(ctx context.Context, a *cli.App, f startup.Flags, script string) (err error) {
	if err := f.Check(); err != nil {
		return err
	}
	in, closeScript, err := openScript(a, script)
	if err != nil {
		return err
	}
	defer closeScript()
	done := make(chan struct{})
	defer close(done)
	lines := readLines(in, done)
	var rest func(after int) []line
	if script != "-" {
		whole := collect(ctx, lines)
		if refused, err := refuseInvalid(a, &f, whole); refused || err != nil {
			return err
		}
		lines = replay(whole)
		rest = func(after int) []line {
			return slices.DeleteFunc(slices.Clone(whole), func(l line) bool { return l.n <= after })
		}
	}
	rt, err := startup.Open(ctx, a, &f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	warnOfHalfApplied(ctx, a, rt.Runtime, &f.Workspace)
	session, err := startup.OpenSession(ctx, a, rt.Runtime, &f)
	if err == nil {
		err = startup.Announce(ctx, a, &f, rt.Journal())
	}
	if err != nil {
		return err
	}
	r := &runner{session: session, journal: rt.Journal(), flags: f, results: newResultWriter(a, &f, rt.Tools()), sum: newSummary(), now: a.Progress.Show, rest: rest}
	err = r.script(ctx, lines)
	a.ExitWith(r.code)
	return err
}

// refuseInvalid checks every line of a script before the first one runs. One
// invalid line rejects the whole script, because other lines can depend on it.
// --keep-going skips the check.
func refuseInvalid(a *cli.App, f *startup.Flags, lines []line) (bool, error) {
	r := &runner{flags: *f, results: newResultWriter(a, f, tool.Registry{}), sum: newSummary()}
	for _, l := range lines {
		if l.err != nil {
			return false, l.unread()
		}
		if _, err := l.step(); err != nil && !f.KeepGoing {
			r.answer(l.n, call{}, notAStep(l.n, err, ", nothing was run"))
		}
	}
	if r.code == cli.ExitOK {
		return false, nil
	}
	r.results.end(r.sum)
	a.ExitWith(r.code)
	return true, nil
}

func openScript(a *cli.App, name string) (io.Reader, func(), error) {
	if name == "-" {
		return a.In, func() {}, nil
	}
	f, err := os.Open(name)
	if err == nil {
		var info os.FileInfo
		if info, err = f.Stat(); err == nil && info.IsDir() {
			err = errors.New("it is a folder")
		}
	}
	if err != nil {
		return nil, nil, &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("the script %q cannot be read", name), Why: cli.PlainError(err)}
	}
	return f, func() { _ = f.Close() }, nil
}

func newResultWriter(a *cli.App, f *startup.Flags, tools tool.Registry) resultWriter {
	if f.JSON {
		return jsonResults{cli.NewJSON(a.Out)}
	}
	return textWriter{w: a.Out, paint: a.Style(), where: &f.Workspace, commit: f.CommitHint, later: f.RestCommand, tools: tools, left: new(bool)}
}

// warnOfHalfApplied warns about a transaction whose process died during a call: files
// can be half changed. An unreadable journal does not stop the command here.
func warnOfHalfApplied(ctx context.Context, a *cli.App, rt *agent.Runtime, p *state.Workspace) {
	_ = state.Interrupted(ctx, rt, func(t *revert.Txn) (bool, error) {
		cut := t
		if of := t.Reverts + t.Redoes; of != "" {
			var err error
			if cut, err = rt.Load(ctx, of); err != nil {
				return false, err
			}
		}
		if len(cut.InFlight()) == 0 {
			return false, nil
		}
		_, _ = fmt.Fprintf(a.Err, "remit: transaction %s has no owner any more, and its files can be half changed: %s\n", t.ID, p.Hint("recover"))
		return true, nil
	})
}
