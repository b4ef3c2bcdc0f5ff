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
		{"durable", durables},
		{"recover", recoveries},
		{"spawn", spawns},
		{"rows", changedRows},
		{"trees", trees},
		{"costs", costs},
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
	only := flag.String("only", "", "run the suites whose names match this pattern: decide, call, growth, write, durable, recover, spawn, rows, trees, costs, gateway")
	asJSON := flag.Bool("json", false, "print one JSON document instead of a table")
	rounds := flag.Int("rounds", 7, "how often each thing has its turn")
	turn := flag.Duration("turn", 250*time.Millisecond, "how long a turn lasts")
	flag.Parse()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the runtime's messages about a journal in memory
	missed, err := run(os.Stdout, *only, clock{rounds: *rounds, slice: *turn}, *asJSON)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if missed > 0 {
		fmt.Fprintf(os.Stderr, "bench: %d missed; docs/evidence/performance.md says what is known about it\n", missed)
	}
}

// run measures and prints, and returns the number of missed promises.
func run(out io.Writer, only string, c clock, asJSON bool) (missed int, err error) {
	chosen, err := regexp.Compile(only)
	if err != nil {
		return 0, fmt.Errorf("-only: %w", err)
	}
	var rows []promiseRow
	for _, s := range suites() {
		if !chosen.MatchString(s.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "bench: %s\n", s.name)
		got, err := s.run(c)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", s.name, err)
		}
		rows = append(rows, got...)
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
