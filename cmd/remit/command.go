package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/suggest"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/database"
	"github.com/remit-dev/remit/tool/builtin/files"
	"github.com/remit-dev/remit/tool/builtin/process"
	"github.com/remit-dev/remit/tool/builtin/web"
)

// cmdEnv holds everything outside the process that the command uses.
type cmdEnv struct {
	in       io.Reader
	out, err io.Writer
	terminal bool // out is a terminal
	// terminalErr reports that err is a terminal: the two can differ.
	terminalErr bool

	env  func(string) string
	user func() (string, error)             // returns the user by the operating system
	tty  func() (io.ReadWriteCloser, error) // opens the terminal
	// browse opens a page in a browser; nil: there is no browser.
	browse func(page string) error
	// caller describes the process that runs the command; nil: unknown, and
	// nothing is approved.
	caller func() caller
	host   host.Host
	tools  []tool.Tool // beside the built-in ones; only for tests

	tailored []agent.Option // of tools that are made for each session; only for tests
}

// builtin lists the built-in tools and those of tests.
func (w cmdEnv) builtin() []tool.Tool {
	return slices.Concat(files.Tools(), process.Tools(), database.Tools(), web.Tools(), w.tools)
}

// app is one run of the command.
type app struct {
	cmdEnv
	configured []tool.Tool          // the tools by the flags; nil: no flag changes them
	leftOut    func(tool.Tool) bool // selects the tools that a gateway does not serve; nil: it serves all
	progress   *progress
	output     *output
	code       exitCode
	closers    []func() error // close what the command opened, at its end
}

// newApp returns a run of the command in an environment. The caller closes it.
func newApp(w cmdEnv) *app {
	p := &progress{host: w.host}
	if w.terminalErr {
		p.w, w.err, w.out = w.err, progressWriter{p, w.err}, progressWriter{p, w.out}
	}
	out := &output{w: w.out}
	w.out = out
	return &app{cmdEnv: w, progress: p, output: out}
}

// exitWith makes the command end with a code, unless a worse one is set.
func (a *app) exitWith(code exitCode) { a.code = worst(a.code, code) }

// onClose registers a function that close calls.
func (a *app) onClose(fn func() error) { a.closers = append(a.closers, fn) }

// writeJSON writes one JSON object to standard output, in one line.
func (a *app) writeJSON(v any) { newJSON(a.out).write(v) }

// run runs the command, without the process around it.
func run(ctx context.Context, args []string, w cmdEnv) (code int) {
	a := newApp(w)
	// An uncaught panic would exit with code 2, which means wrong usage here.
	defer func() {
		if p := recover(); p != nil {
			_, _ = fmt.Fprintf(a.err, "remit: internal error: %v\n%s", p, debug.Stack())
			code = int(exitInternal)
		}
	}()
	cmd := a.command()
	cmd.SetArgs(args)
	stop := a.progress.start(ctx)
	defer stop()
	ran, err := cmd.ExecuteContextC(ctx)
	err = errors.Join(err, a.close())
	if err != nil {
		a.exitWith(a.complain(ran, err))
	}
	switch {
	case a.output.err == nil:
	case enough(ran, a.output.err):
		a.exitWith(exitInternal)
	default:
		a.exitWith(a.complain(ran, lost(ran, a.output.err)))
	}
	return int(a.code)
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "remit",
		Short: "Run tools for agents: asked for, verified, on the record, and taken back",
		Long: "remit runs calls of tools. Each call is asked for by a policy before it runs, verified after it ran,\n" +
			"is on a durable journal before anybody sees its result, and can be taken back, also after a crash.",
		SilenceErrors: true, SilenceUsage: true, Version: readVersion().String(),
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			if cmd.Name() != "run" && cmd.Name() != "serve" && !cmd.Hidden { // run shows its progress, serve waits, and shell completion must print nothing else
				a.progress.now(cmd.CommandPath())
			}
		},
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetUsageTemplate(root.UsageTemplate() + "\nExit codes: docs/reference/outcomes.md of github.com/remit-dev/remit says what each of them means.\n")
	root.SetFlagErrorFunc(flagProblem)
	gateway := a.gatewayCommand()
	gateway.AddCommand(a.acceptCommand(), a.loginCommand(), a.logoutCommand())
	root.AddCommand(
		a.runCommand(), a.logCommand(), a.showCommand(), a.diffCommand(), a.revertCommand(), a.redoCommand(),
		a.pendingCommand(), a.approveCommand(func(ctx context.Context, f runFlags, id string) error { return a.resume(ctx, f, id) }), a.denyCommand(), a.approvalCommand(), a.resumeCommand(), a.settleCommand(), a.feedbackCommand(),
		a.grantsCommand(), a.recoverCommand(), a.fsckCommand(), a.pruneCommand(), a.eraseCommand(),
		a.serveCommand(), gateway, a.initCommand(), a.tokenCommand(), a.connectCommand(), a.disconnectCommand(),
		a.toolsCommand(), a.secretCommand(), a.policyCommand(), a.doctorCommand(), a.versionCommand(),
	)
	complete(root, a)
	return root
}

// flagProblem suggests a flag for an unknown one.
func flagProblem(cmd *cobra.Command, err error) error {
	p := usage(err.Error())
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return p
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := suggest.Name(unknown.GetSpecifiedName(), names); near != "" {
		p.fix = "did you mean --" + near + "?"
	}
	return p
}

// noArgs rejects arguments. For the root command they are names of commands.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		e := usage(fmt.Sprintf("there is no command %q", cmd.CommandPath()+" "+args[0]))
		cmd.SuggestionsMinimumDistance = 2
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			e.fix = fmt.Sprintf("did you mean %q?", cmd.CommandPath()+" "+near[0])
		}
		return e
	}
	return usage(fmt.Sprintf("%q takes no arguments, and there is %q", cmd.CommandPath(), args[0]))
}

// wantArgs rejects any number of arguments outside low to high. What names
// them.
func wantArgs(low, high int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < low || (high >= 0 && len(args) > high) {
			return usage(fmt.Sprintf("%q takes %s; there are %d arguments", cmd.CommandPath(), what, len(args)))
		}
		return nil
	}
}

// wantIDs is wantArgs for IDs. It rejects an empty ID, as an unset variable
// leaves it.
func wantIDs(low, high int, what string) cobra.PositionalArgs {
	number := wantArgs(low, high, what)
	return func(cmd *cobra.Command, args []string) error {
		if slices.Contains(args, "") {
			return emptyID()
		}
		return number(cmd, args)
	}
}

func emptyID() *problem { return usage("the id is empty; is a variable not set?") }
