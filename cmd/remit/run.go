package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/execute"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
)

// run runs the command in an environment and returns its exit code.
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
	if ran != nil && ran.Name() == execute.Name && ran.Parent() == cmd {
		return execute.ExitCode(a)
	}
	return int(a.Code)
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

// enough reports whether the reader of a listing has closed the pipe, as head
// does. Commands that change something report the lost output anyway.
func enough(cmd *cobra.Command, err error) bool {
	return cmd != nil && errors.Is(err, syscall.EPIPE) && slices.Contains([]string{"log", "show", "diff", "tools", "stats", "doctor", "schema", "explain", "watch"}, cmd.Name())
}

// lost returns the problem of output that was not written.
func lost(cmd *cobra.Command, err error) *cli.Problem {
	p := &cli.Problem{Code: cli.ExitInternal, What: "not everything could be written to standard output", Why: cli.PlainError(err)}
	if cmd != nil && slices.Contains([]string{"run", "revert", "redo", "recover"}, cmd.Name()) {
		p.Fix = "nothing was stopped by it: " + state.PlaceOf(cmd).Hint("log") + " lists what was done"
	}
	return p
}
