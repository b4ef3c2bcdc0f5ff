package watch

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/callview"
)

// Request is an approval request as a person saw it. Digest names it, and Shown
// the difference beside it. Waits says that an answer can be given, and Covers
// that an approval covers more than the call.
type Request struct {
	Digest, Shown string
	Waits, Covers bool
}

// Reply is the answer of a person to a request.
type Reply struct {
	ID       string
	Approves bool
	Once     bool
	Why      string
	Request  string // Digest of the Request
	Shown    string // Shown of the Request
}

// Plan is what a revert would do, as a person saw it. AtWork says that a coding
// agent still works, so that there is no plan yet, and Some that the revert
// changes something.
type Plan struct {
	AtWork, Some bool
	// Apply reverts what the plan says, if it is still the plan. Changed says
	// that it is not, and that nothing was done.
	Apply func(ctx context.Context, a *cli.App) (changed bool, err error)
}

// Verbs are what other verbs do here, with the same rules. They write to the
// standard output of the App. Give reports whether an approval is for something
// else than the person saw; then nothing was answered.
type Verbs struct {
	WriteRequest func(ctx context.Context, a *cli.App, at *state.Workspace, rt *agent.Runtime, id string) (Request, error)
	Give         func(ctx context.Context, a *cli.App, at *state.Workspace, rt *agent.Runtime, r Reply) (changed bool, err error)
	WriteCall    func(ctx context.Context, a *cli.App, at *state.Workspace, rt *agent.Runtime, id string) error
	WritePlan    func(ctx context.Context, a *cli.App, at *state.Workspace, rt *agent.Runtime) (Plan, error)
	EndPrompts   func(ctx context.Context, a *cli.App, at *state.Workspace, rt *agent.Runtime) error
}

// watcher follows one journal.
type watcher struct {
	state.Workspace
	app    *cli.App
	verbs  Verbs
	rt     *agent.Runtime
	title  string
	newest int
	lines  bool
	json   bool

	mu     sync.Mutex // held while a verb runs: verbs share the flags
	closed bool       // no verb begins any more; under mu
}

// Command returns remit watch.
func Command(a *cli.App, verbs Verbs) *cobra.Command {
	w := watcher{app: a, verbs: verbs}
	cmd := &cobra.Command{
		Use: "watch", Short: "Watch what agents do, in a terminal; answer and undo by keys",
		Long: "Shows the calls that wait and run, and one line for each call when it ends: its outcome, what it changed, its effect\n" +
			"class and how long it took. You answer what waits and undo the newest work by keys; ? lists them. An approval has the\n" +
			"rules of remit approve. Nothing changes before you have seen it and pressed y. The command follows the journal until\n" +
			"you press q. If nothing is recorded yet, it waits for the first run.\n\n" +
			"If the input or the output is no terminal, with --lines and with --json, the command writes lines until you interrupt it:\n" +
			"the newest calls that ended, then each call when it ends or waits.",
		Example: "  remit watch                watch the workspace of this folder\n" +
			"  remit watch --lines -n 5   write the last 5 calls, then each new one",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if w.newest < 0 {
				return cli.UsageProblem(fmt.Sprintf("--newest %d: must not be negative", w.newest))
			}
			return w.run(cmd.Context())
		},
	}
	state.AddFlags(cmd, &w.Workspace)
	state.AddRootFlag(cmd, &w.Workspace)
	state.AddDatabaseFlag(cmd, &w.Workspace)
	cmd.Flags().IntVarP(&w.newest, "newest", "n", 20, "of lines: begin with the newest `N` calls that ended")
	cmd.Flags().BoolVar(&w.lines, "lines", false, "write lines, also to a terminal")
	cmd.Flags().BoolVar(&w.json, "json", false, "write one JSON object per line")
	return cmd
}

func (w *watcher) run(ctx context.Context) error {
	w.MustExist = true
	if ended, err := w.await(ctx); err != nil || ended {
		return err
	}
	return startup.WithRuntime(ctx, w.app, &w.Workspace, func(rt *agent.Runtime) error {
		w.rt = rt
		if dir, err := state.RealFolder(w.Folder()); err == nil {
			w.title = dir
		}
		in, out, ok := w.terminal()
		if !ok {
			return w.writeLines(ctx)
		}
		return w.draw(ctx, in, out)
	})
}

// await waits until the workspace has a journal. ended says that ctx ended first.
func (w *watcher) await(ctx context.Context) (ended bool, err error) {
	dir, err := w.AwaitsJournal(ctx, w.app)
	if err != nil || dir == "" {
		return false, err
	}
	folder := w.Folder()
	if real, err := state.RealFolder(folder); err == nil {
		folder = real
	}
	w.app.Progress.Show("")
	_, _ = fmt.Fprintf(w.app.Err, "remit: nothing is recorded yet for %s, in %s; this command waits for the first run until it is interrupted\n", cli.Printable(folder), cli.Printable(dir))
	awaited := w.Workspace
	awaited.StateDir = dir
	for !awaited.HasJournal() {
		tick, free := w.app.Host.WithTimeout(ctx, callview.PollInterval, nil)
		<-tick.Done()
		free()
		if ctx.Err() != nil {
			return true, nil
		}
	}
	return false, nil
}

// terminal returns the terminal on which the command can draw. A dumb one has no
// cursor to move.
func (w *watcher) terminal() (in, out *os.File, ok bool) {
	if w.lines || w.json || !w.app.OutTerminal || w.app.Getenv("TERM") == "dumb" {
		return nil, nil, false
	}
	from, to, _ := w.app.Streams()
	in, reads := from.(*os.File)
	out, writes := to.(*os.File)
	return in, out, reads && writes && cli.IsTerminal(in) && cli.IsTerminal(out)
}

// close waits for the verb that runs, such as a revert: it must not lose the
// journal.
func (w *watcher) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}

// capture runs a verb, and returns what it wrote. One verb runs at a time.
func (w *watcher) capture(verb func(a *cli.App) error) (text string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return "", context.Canceled
	}
	var out bytes.Buffer
	a := *w.app
	a.Out = &out
	err = verb(&a)
	return out.String(), err
}
