package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/policyfile"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
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
	var f runFlags
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
			f.asGiven = cmd.Flags().Changed("as")
			if f.session == "" && cmd.Flags().Changed("session") {
				return cli.UsageProblem("--session names no file; is a variable not set?")
			}
			if err := f.clientFlags.given(cmd); err != nil {
				return err
			}
			f.fromLine = f.laterLines(cmd, args[0])
			return runScript(cmd.Context(), a, f, args[0])
		},
	}
	state.AddFlags(cmd, &f.Workspace)
	state.AddDatabaseFlag(cmd, &f.Workspace)
	state.AddServiceFlags(cmd, &f.Services)
	state.AddDeclarationFlags(cmd, &f.Declared)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.roots, "root", nil, "another folder that calls may be granted parts of, as `NAME=DIR`")
	flags.StringArrayVar(&f.policies, "policy", nil, "policy `PATH`, a .rego file, a folder of them or builtin:PACK (default: the workspace policy)")
	flags.StringVar(&f.as, "as", "agent", "`ID` of who asks")
	flags.StringVar(&f.session, "session", "", "`FILE` that keeps a secret by which the next run goes on in the same session, with its counts, labels and approvals; made where it is not there")
	flags.StringArrayVar(&f.roles, "role", nil, "role `R` of who asks")
	flags.StringVar(&f.onAsk, "on-ask", "deny", "what happens when the policy asks: deny, wait for remit approve, prompt, or approve-unsafe, which approves everything in your name")
	flags.StringVar(&f.atEnd, "at-end", "commit", "what becomes of the transaction at the end: commit, revert or keep")
	sandboxFlag(cmd, &f.Workspace)
	limitFlags(cmd, &f.limits)
	shownFlags(cmd, &f.clientFlags)
	flags.StringArrayVar(&f.given, "given", nil, "`TEXT` of the person behind the run, such as a prompt: for policies that let calls go only to URLs that were given, all in it are")
	flags.DurationVar(&f.claimWait, "claim-wait", 0, "how long a call waits for a file that another open transaction holds, such as 30s (default: it fails at once and names the holder)")
	flags.BoolVar(&f.atomic, "atomic", false, "the first call that is not done takes everything back and ends the script")
	flags.BoolVar(&f.keepGoing, "keep-going", false, "go on after a line that is no step, and run a file that has one")
	flags.BoolVar(&f.json, "json", false, "answer with one JSON object a line")
	return cmd
}

func runScript(ctx context.Context, a *cli.App, f runFlags, script string) (err error) {
	if err := f.check(); err != nil {
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
	rt, err := startupOpen(ctx, a, &f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	warnOfHalfApplied(ctx, a, rt.Runtime, &f.Workspace)
	session, err := startupOpenSession(ctx, a, rt.Runtime, &f)
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
func refuseInvalid(a *cli.App, f *runFlags, lines []line) (bool, error) {
	r := &runner{how: *f, tell: newResultWriter(a, f, tool.Registry{}), sum: newSummary()}
	for _, l := range lines {
		if l.err != nil {
			return false, l.unread()
		}
		if _, err := l.step(); err != nil && !f.keepGoing {
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

func newResultWriter(a *cli.App, f *runFlags, tools tool.Registry) resultWriter {
	if f.json {
		return jsonResults{cli.NewJSON(a.Out)}
	}
	return textWriter{w: a.Out, paint: a.Style(), where: &f.Workspace, commit: f.commitIt, later: f.fromLine, tools: tools, left: new(bool)}
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

// runFlags is what remit run is told.
type runFlags struct {
	state.Workspace
	roots, policies, roles []string
	as, onAsk, atEnd       string
	atomic, keepGoing      bool
	json                   bool
	claimWait              time.Duration
	session                string // file of its token
	asGiven                bool
	notify                 string // program that is told of calls that wait
	limits                 callLimits
	given                  []string           // texts of the person
	settles                bool               // what dead processes left, at its start
	retain                 *revert.Retention  // what is dropped beside the calls; nil: nothing is
	fromLine               func(n int) string // the command that runs the script from a line on; nil: there is none
	clientFlags
}

func (f runFlags) check() error {
	if !slices.Contains([]string{"commit", "revert", "keep"}, f.atEnd) {
		return &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("--at-end %q is not an end", f.atEnd), Fix: "valid are commit, revert, keep"}
	}
	if f.atomic && f.keepGoing {
		return cli.UsageProblem("--atomic ends at the first line that is not done, and --keep-going does not: use one of them")
	}
	if f.claimWait < 0 {
		return cli.UsageProblem(fmt.Sprintf("--claim-wait %s is less than no time; 0 fails at once", f.claimWait))
	}
	if f.as == "" {
		return cli.UsageProblem("--as is empty: somebody has to ask")
	}
	if slices.Contains(f.roles, "") {
		return cli.UsageProblem("--role is empty; is a variable not set?")
	}
	return f.limits.check()
}

// rootWords are the roots of a run, as NAME=DIR: the workspace, unless --root says which
// folder that is, and the others.
func (f *runFlags) rootWords() []string {
	if f.Dir == "" && state.NamesWorkspace(f.roots) {
		return f.roots
	}
	return append([]string{state.WorkspaceRoot + "=" + f.Folder()}, f.roots...)
}

// rootOptions are the workspace and the other roots, and their folders.
func (f *runFlags) rootOptions() (opts []agent.Option, folders []string, err error) {
	for _, r := range f.rootWords() {
		name, dir, err := state.ParseRoot(r)
		if err != nil {
			return nil, nil, err
		}
		opts, folders = append(opts, agent.Root(name, dir)), append(folders, dir)
	}
	return opts, folders, nil
}

// openRuntime is a runtime with its journal, its gateway and its notices.
type openRuntime struct {
	*agent.Runtime
	gateway *gatewayRuntime // nil: no gateway
	closers []func() error
}

// Close closes the runtime, then its journal and its notices.
func (o *openRuntime) Close() error {
	var errs []error
	for _, c := range o.closers {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// startupOpen opens the runtime that the flags describe. It opens the journal last:
// an invalid command line creates no folder.
func startupOpen(ctx context.Context, a *cli.App, f *runFlags) (*openRuntime, error) {
	roots, folders, err := f.rootOptions()
	if err != nil {
		return nil, err
	}
	engine, err := policyfile.Load(f.policies, false)
	if err != nil {
		return nil, err
	}
	reach, err := f.Services.Options(a, folders)
	if err != nil {
		return nil, err
	}
	known, err := f.Services.Names(folders)
	if err != nil {
		return nil, err
	}
	if err := state.Declare(ctx, a, &f.Declared, folders, known); err != nil {
		return nil, err
	}
	if err := f.Find(a); err != nil {
		return nil, err
	}
	policyfile.Warn(a, engine, f.policies)
	if err := errors.Join(f.CheckStateOutside(folders), f.CheckRootsOutside(folders), f.keepToken(folders)); err != nil {
		return nil, err
	}
	approver, err := newApprover(a, f)
	if err != nil {
		return nil, err
	}
	databases, err := state.DatabaseOptions(a, &f.Workspace)
	if err != nil {
		return nil, err
	}
	f.WarnOfFormer(ctx, a, folders[0])
	journal, err := f.Open(ctx)
	if err != nil {
		return nil, err
	}
	if !state.NamesWorkspace(f.roots) {
		if err := f.CheckOwner(ctx, a, journal, folders[0]); err != nil {
			return nil, errors.Join(err, journal.Close())
		}
	}
	programs, err := programs(&f.Workspace, journal)
	if err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	var g *gatewayRuntime
	if f.Upstreams.Config != "" {
		if g, err = upstreamOpen(ctx, a, &f.Workspace, f.rootWords(), programs); err != nil {
			return nil, errors.Join(err, journal.Close())
		}
		roots = append(roots, agent.Tools(g.Tools()...))
	}
	opts := append(slices.Concat(roots, databases, reach), agent.Policy(policyfile.AskBeforeChange(engine, f.policies, f.Upstreams.Config, f.rootWords())), agent.Approver(approver), agent.Driver(programs), agent.Filters(f.limits.filters()...))
	tell := startupNotices(a, f)
	if f.onAsk == "wait" {
		opts = append(opts, agent.SuspendForApproval(), agent.OnWaiting(tell.waits))
	}
	if f.onAsk == "prompt" { // who sits at the terminal ends it, and no clock
		opts = append(opts, agent.Limits(tool.Limits{Answer: promptTime}))
	}
	rt, err := startupNew(a, journal, opts...)
	if err == nil && f.retain != nil {
		err = rt.Retain(*f.retain)
	}
	if err != nil {
		err = &cli.Problem{Code: cli.ExitUsage, What: "remit cannot start", Why: strings.TrimPrefix(err.Error(), "agent: ")}
		return nil, errors.Join(err, journal.Close())
	}
	tell.setTools(rt.Tools)
	if g != nil {
		g.setRuntime(rt)
	}
	if f.settles {
		recoverCalls(ctx, a, &f.Workspace, opts)
	}
	return &openRuntime{rt, g, []func() error{rt.Close, journal.Close, tell.Close}}, nil
}

// startupNew makes a runtime of this command's tools on a journal.
func startupNew(a *cli.App, j journal.Journal, opts ...agent.Option) (*agent.Runtime, error) {
	log := slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	programs, err := programsOn(j, process.Strict, false)
	if err != nil {
		return nil, err
	}
	near, err := web.New(web.Options{})
	if err != nil {
		return nil, err
	}
	if on, ok := j.(interface{ Dir() string }); ok {
		kept, err := process.NewSnapshotter(process.SnapshotConfig{Dir: filepath.Join(on.Dir(), "kept")})
		if err != nil {
			return nil, err
		}
		opts = append(opts, agent.Driver(kept))
	}
	opts = append(append(opts, a.Customizers...), agent.Driver(programs), agent.Driver(near), // the one that is given counts, where there is one
		agent.Journal(j), agent.Host(a.Host), agent.Log(log), agent.Tools(state.ServedTools(a)...))
	return agent.New(append(opts, agent.OnProgress(a.Progress.Report))...)
}

func sandboxFlag(cmd *cobra.Command, p *state.Workspace) {
	cmd.Flags().StringVar(&p.Sandbox, "sandbox", "strict", "the least `LEVEL` of sandbox that a program runs in: strict or partial; remit doctor says what there is here")
	cmd.Flags().BoolVar(&p.GitAuthor, "git-author", true, "tell programs user.name and user.email of your git configuration, for commits in repositories that set none")
}

// programs runs them at the level that was given.
func programs(p *state.Workspace, j journal.Journal) (*process.Driver, error) {
	d, err := programsOn(j, process.Level(p.Sandbox), p.GitAuthor)
	if err != nil {
		return nil, cli.UsageProblem("--sandbox: " + strings.TrimPrefix(err.Error(), "process: "))
	}
	return d, nil
}

// programsOn runs programs whose effects lie beside the journal until they are applied:
// that folder is in no root.
func programsOn(j journal.Journal, least process.Level, author bool) (*process.Driver, error) {
	cfg := process.Config{Require: least}
	if author {
		cfg.Author = process.GitAuthor
	}
	if on, ok := j.(interface{ Dir() string }); ok {
		cfg.Scratch = filepath.Join(on.Dir(), "scratch")
	}
	return process.New(cfg)
}
