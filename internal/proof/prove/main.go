// Command prove runs everything that tests revert against crashes and faults,
// at its full size, and prints one table: what was tried, how often, and how
// many violations there were. It exits with 1 if there was any, or if an
// expected test reports nothing. "make prove" runs it, from the top of the
// repository; arguments name the parts to run.
//
// A test takes part with a line in its log:
//
//	proved: WHAT: COUNT, VIOLATIONS violations
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Stdout, parts(), os.Args[1:]))
}

func usage(to io.Writer, parts []part) {
	_, _ = fmt.Fprintln(to, "usage: prove [PART ...]; without a name all of these:")
	for _, p := range parts {
		_, _ = fmt.Fprintf(to, "  %-12s %s\n", p.name, p.about)
	}
}

// run runs the named parts, or all, and returns the exit code.
func run(ctx context.Context, out io.Writer, chosen []part, names []string) int {
	for _, name := range names {
		if !slices.ContainsFunc(chosen, func(p part) bool { return p.name == name }) {
			fmt.Fprintf(os.Stderr, "prove: there is no part %q\n", name)
			usage(os.Stderr, chosen)
			return 2
		}
	}
	if len(names) > 0 {
		chosen = slices.DeleteFunc(slices.Clone(chosen), func(p part) bool { return !slices.Contains(names, p.name) })
	}
	var all []result
	for i, p := range chosen {
		fmt.Fprintf(os.Stderr, "prove: %d of %d, %s\n", i+1, len(chosen), p.name)
		began := time.Now()
		found, err := p.run(ctx)
		took := time.Since(began)
		for j := range found {
			found[j].took = took
		}
		all = append(all, found...)
		if err != nil {
			fmt.Fprintf(os.Stderr, "prove: %s: %v\n", p.name, err)
			all = append(all, result{what: p.name, failed: true, took: took})
		}
	}
	_, _ = io.WriteString(out, table(all))
	if slices.ContainsFunc(all, func(r result) bool { return r.failed || r.violations != "0" }) {
		return 1
	}
	return 0
}
