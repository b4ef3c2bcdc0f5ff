package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/tool"
)

// run runs the command, without the process around it.
func run(ctx context.Context, args []string, w cli.Env) (code int) {
	a := cli.NewApp(w)
	// An uncaught panic would exit with code 2, which means wrong usage here.
	defer func() {
		if p := recover(); p != nil {
			_, _ = fmt.Fprintf(a.Err, "remit: internal error: %v\n%s", p, debug.Stack())
			code = int(cli.ExitInternal)
		}
	}()
	cmd := commandTree(a)
	cmd.SetArgs(args)
	stop := a.Progress.Start(ctx)
	defer stop()
	ran, err := cmd.ExecuteContextC(ctx)
	err = errors.Join(err, a.Close())
	if err != nil {
		a.ExitWith(complain(a, ran, err))
	}
	switch {
	case a.Output.Failure == nil:
	case enough(ran, a.Output.Failure):
		a.ExitWith(cli.ExitInternal)
	default:
		a.ExitWith(complain(a, ran, lost(ran, a.Output.Failure)))
	}
	return int(a.Code)
}

func runCommand(a *cli.App) *cobra.Command {
	var f startup.Flags
	cmd := &cobra.Command{
		Use:   "run [flags] SCRIPT.jsonl | -",
		Short: "Run a script of calls, one a line",
		Long: "Runs the calls of a script in a transaction. Each line is one JSON object:\n\n" +
			`  {"tool":"file_write","args":{"path":"a.txt","content":"hi"}}` + "\n" +
			`  {"parallel":[{"tool":…,"args":…},…]}      calls that run at once` + "\n" +
			`  {"savepoint":"a"}, {"revert_to":"a"}      take back what came after` + "\n" +
			`  {"commit":true}, {"revert":true}          end the transaction; a later call begins the next` + "\n\n" +
			"A file is read to its end before its first call runs: with a line that is no step, nothing of it is run (exit code 5;\n" +
			"--keep-going runs the other lines). From - lines are run as they come, up to the first that is no step.\n\n" +
			"Exit codes: 0 all done; 1 internal; 2 usage; 3 a call was denied; 4 a call waits for approval; 5 a call failed, was\n" +
			"invalid or did not verify; 6 not everything could be taken back; 7 an outcome is unknown. The most serious one wins:\n" +
			"1, 2, 7, 6, 5, 4, 3.",
		Args: cli.WantArgs(1, 1, "one script, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.AsSet = cmd.Flags().Changed("as")
			if f.SessionFile == "" && cmd.Flags().Changed("session") {
				return cli.UsageProblem("--session names no file; is a variable not set?")
			}
			if err := f.Client.ReadFlags(cmd); err != nil {
				return err
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
	flags.StringArrayVar(&f.Roots, "root", nil, "another folder that calls may be granted parts of, as `NAME=DIR`")
	flags.StringArrayVar(&f.Policies, "policy", nil, "policy `PATH`, a .rego file, a folder of them or builtin:PACK (default: the workspace policy)")
	flags.StringVar(&f.As, "as", "agent", "`ID` of who asks")
	flags.StringVar(&f.SessionFile, "session", "", "`FILE` that keeps a secret by which the next run goes on in the same session, with its counts, labels and approvals; made where it is not there")
	flags.StringArrayVar(&f.Roles, "role", nil, "role `R` of who asks")
	flags.StringVar(&f.OnAsk, "on-ask", "deny", "what happens when the policy asks: deny, wait for remit approve, prompt, or approve-unsafe, which approves everything in your name")
	flags.StringVar(&f.AtEnd, "at-end", "commit", "what becomes of the transaction at the end: commit, revert or keep")
	startup.AddSandboxFlag(cmd, &f.Workspace)
	startup.AddLimitFlags(cmd, &f.Limits)
	startup.AddClientFlags(cmd, &f.Client)
	flags.StringArrayVar(&f.UserTexts, "given", nil, "`TEXT` of the person behind the run, such as a prompt: for policies that let calls go only to URLs that were given, all in it are")
	flags.DurationVar(&f.ClaimTimeout, "claim-wait", 0, "how long a call waits for a file that another open transaction holds, such as 30s (default: it fails at once and names the holder)")
	flags.BoolVar(&f.Atomic, "atomic", false, "the first call that is not done takes everything back and ends the script")
	flags.BoolVar(&f.KeepGoing, "keep-going", false, "go on after a line that is no step, and run a file that has one")
	flags.BoolVar(&f.JSON, "json", false, "answer with one JSON object a line")
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
	var rest func() []line
	if script != "-" {
		whole := collect(ctx, lines)
		if refused, err := refuseInvalid(a, &f, whole); refused || err != nil {
			return err
		}
		lines = replay(whole)
		rest = func() []line { return collect(ctx, lines) }
	}
	rt, err := startup.Open(ctx, a, &f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	warnOfHalfApplied(ctx, a, rt.Runtime, &f.Workspace)
	session, err := startup.OpenSession(ctx, a, rt.Runtime, &f)
	if err != nil {
		return err
	}
	r := &runner{session: session, journal: rt.Journal(), how: f, tell: newResultWriter(a, &f, rt.Tools()), sum: newSummary(), now: a.Progress.Show, rest: rest}
	err = r.script(ctx, lines)
	a.ExitWith(r.code)
	return err
}

// refuseInvalid looks at every line of a script before any is run. One that is no step
// refuses all of it, unless somebody wants to go on after such a line: what
// comes after may rely on it, and what comes before on that.
func refuseInvalid(a *cli.App, f *startup.Flags, lines []line) (bool, error) {
	r := &runner{how: *f, tell: newResultWriter(a, f, tool.Registry{}), sum: newSummary()}
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
	r.tell.end(r.sum)
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

// complain reports the error that ended the command, and returns its code.
func complain(a *cli.App, cmd *cobra.Command, err error) cli.ExitCode {
	p := state.ProblemOf(err, state.PlaceOf(cmd))
	if p.Code == cli.ExitUsage && p.Fix == "" && cmd != nil {
		p.Fix = "see " + cmd.CommandPath() + " --help"
	}
	a.ErrStyle().Problem(a.Err, "remit: ", p)
	return p.Code
}

// enough reports whether who reads an answer has seen as much of it as they wanted, as head does. Of what was changed they are told
// all the same.
func enough(cmd *cobra.Command, err error) bool {
	return cmd != nil && errors.Is(err, syscall.EPIPE) && slices.Contains([]string{"log", "show", "diff", "tools", "stats", "doctor", "schema", "explain"}, cmd.Name())
}

// lost is the problem of answers that nobody got.
func lost(cmd *cobra.Command, err error) *cli.Problem {
	p := &cli.Problem{Code: cli.ExitInternal, What: "not everything could be written to standard output", Why: cli.PlainError(err)}
	if cmd != nil && slices.Contains([]string{"run", "revert", "redo", "recover"}, cmd.Name()) {
		p.Fix = "nothing was stopped by it: " + state.PlaceOf(cmd).Hint("log") + " lists what was done"
	}
	return p
}
