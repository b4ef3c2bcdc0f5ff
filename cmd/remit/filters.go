package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/tool/filter"
)

// filterRecord is a filter in the list.
type filterRecord struct {
	Order int      `json:"order"`
	Name  string   `json:"name"`
	Hooks []string `json:"hooks"`
}

// listFilters lists the filters of a run with the same flags, in the order of
// evaluation.
func listFilters(a *cli.App, l callLimits, asJSON bool) error {
	if err := l.check(); err != nil {
		return err
	}
	filters := l.filters()
	for i, f := range filters {
		r := filterRecord{Order: i + 1, Name: f.Name, Hooks: f.Hooks()}
		if asJSON {
			a.WriteJSON(r)
			continue
		}
		_, _ = fmt.Fprintf(a.Out, "%d  %-12s %s\n", r.Order, r.Name, strings.Join(r.Hooks, ", "))
	}
	if len(filters) == 0 && !asJSON {
		_, _ = fmt.Fprintln(a.Out, "no filter: --limit-calls and --limit-time of remit run and remit resume add one")
	}
	return nil
}

// callLimits holds the budgets that flags set.
type callLimits struct {
	calls int64
	time  time.Duration
}

func limitFlags(cmd *cobra.Command, l *callLimits) {
	cmd.Flags().Int64Var(&l.calls, "limit-calls", 0, "the most calls, `N`, that this command lets the session make; denied ones do not count (default: any number)")
	cmd.Flags().DurationVar(&l.time, "limit-time", 0, "the most time that its calls take together, such as 5m (default: any)")
}

func (l callLimits) check() error {
	if l.calls < 0 {
		return cli.UsageProblem(fmt.Sprintf("--limit-calls %d is less than none; 0 is any number", l.calls))
	}
	if l.time < 0 {
		return cli.UsageProblem(fmt.Sprintf("--limit-time %s is less than no time; 0 is any", l.time))
	}
	return nil
}

// filters returns the filters of a run with these flags, in order.
func (l callLimits) filters() []filter.Filter {
	if l == (callLimits{}) {
		return nil
	}
	return []filter.Filter{filter.Budget{Session: filter.Usage{Calls: l.calls, Time: l.time}}.Filter()}
}
