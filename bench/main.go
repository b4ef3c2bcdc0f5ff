// Command bench checks remit's promises about speed. Each promise is a ratio of
// two measurements that alternate on the same machine, so that a slow or busy
// machine affects both.
//
// It is a separate module: remit does not depend on the programs that it is
// compared with.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"time"
)

// suite is a group of promises with a common setup.
type suite struct {
	name string
	run  func(c clock) ([]promiseRow, error)
}

func suites() []suite {
	return []suite{
		{"decide", decisions},
		{"call", calls},
		{"growth", growth},
		{"write", writes},
		{"revert", reverts},
		{"durable", durables},
		{"recover", recoveries},
		{"spawn", spawns},
		{"rows", changedRows},
		{"trees", trees},
		{"costs", costs},
		{"agents", agents},
		{"gateway", gateways},
	}
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == child {
		if err := inChild(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "gateway-") {
		if err := gatewayPart(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	only := flag.String("only", "", "run the suites whose names match this pattern: decide, call, growth, write, revert, durable, recover, spawn, rows, trees, costs, agents, gateway")
	asJSON := flag.Bool("json", false, "print one JSON document instead of a table")
	rounds := flag.Int("rounds", 7, "how often each thing has its turn")
	turn := flag.Duration("turn", 250*time.Millisecond, "how long a turn lasts")
	file := flag.String("ratios", "ratios.json", "the file of the accepted ratios")
	checks := flag.Bool("check", false, "fail if a ratio is worse than the accepted ones")
	accepts := flag.Bool("accept", false, "extend the accepted ratios by those of this run")
	flag.Parse()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the runtime's messages about a journal in memory
	c := clock{rounds: *rounds, slice: *turn}
	chosen, err := matching(*only)
	missed := 0
	switch {
	case err != nil:
	case *checks:
		err = check(os.Stdout, *file, chosen, c)
	default:
		missed, err = run(os.Stdout, chosen, c, *asJSON, *accepts, *file)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if missed > 0 {
		fmt.Fprintf(os.Stderr, "bench: %d missed; docs/evidence/performance.md says what is known about it\n", missed)
	}
}

// matching returns the suites whose names match a pattern.
func matching(pattern string) (chosen []suite, err error) {
	names, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	for _, s := range suites() {
		if names.MatchString(s.name) {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("-only %q matches no suite", pattern)
	}
	return chosen, nil
}

// run measures and prints, and returns the number of missed promises. If it
// accepts the ratios, it adds them to the file.
func run(out io.Writer, chosen []suite, c clock, asJSON, accepts bool, file string) (missed int, err error) {
	rows, err := measure(chosen, c)
	if err == nil && accepts {
		err = accept(file, rows)
	}
	if err != nil {
		return 0, err
	}
	for _, r := range rows {
		if !r.Met {
			missed++
		}
	}
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return missed, enc.Encode(report{Machine: thisMachine(), Rounds: c.rounds, Results: rows})
	}
	return missed, table(out, rows)
}

func measure(chosen []suite, c clock) (rows []promiseRow, err error) {
	for _, s := range chosen {
		fmt.Fprintf(os.Stderr, "bench: %s\n", s.name)
		got, err := s.run(c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		rows = append(rows, got...)
	}
	return rows, nil
}
