// Command fuzz runs every fuzz target of the module for a while, in sequence,
// and prints a line for each: the number of inputs, and the number of new ones.
// It finds the targets itself. It exits with 1 if one of them failed; the input
// is then below testdata/fuzz of its package, and "go test" uses it from then
// on. "make fuzz" runs it, from the top of the repository; arguments name the
// targets to run.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Stdout, goCommand, os.Args[1:]))
}

// command runs the go command and returns its output.
type command func(ctx context.Context, args ...string) ([]byte, error)

func goCommand(ctx context.Context, args ...string) ([]byte, error) {
	return exec.CommandContext(ctx, "go", args...).CombinedOutput()
}

// run fuzzes the targets that the arguments name, or all, and returns the exit code.
func run(ctx context.Context, out io.Writer, do command, args []string) int {
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	long := flags.Duration("for", 20*time.Second, "how long each target runs")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *long < time.Second {
		fmt.Fprintf(os.Stderr, "fuzz: -for %s: want a second or more\n", *long)
		return 2
	}
	names := flags.Args()
	all, err := find(ctx, do)
	if err != nil {
		fmt.Fprintf(os.Stderr, "fuzz: %v\n", err)
		return 1
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(t target) bool { return t.name == name }) {
			fmt.Fprintf(os.Stderr, "fuzz: there is no target %q; there are:\n", name)
			for _, t := range all {
				fmt.Fprintf(os.Stderr, "  %-24s %s\n", t.name, t.pkg)
			}
			return 2
		}
	}
	code, ran, tried := 0, 0, 0
	for _, t := range all {
		if len(names) > 0 && !slices.Contains(names, t.name) {
			continue
		}
		r := t.fuzz(ctx, do, *long)
		ran, tried = ran+1, tried+r.executions
		_, _ = fmt.Fprintf(out, "%-24s %-48s %s\n", t.name, t.pkg, r)
		if r.failed {
			code = 1
			_, _ = fmt.Fprintf(out, "%s\n", r.output)
		}
	}
	_, _ = fmt.Fprintf(out, "%d targets, %d executions\n", ran, tried)
	return code
}
