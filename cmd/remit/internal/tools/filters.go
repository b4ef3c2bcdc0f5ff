package tools

import (
	"fmt"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
)

// filterRecord is a filter in the list.
type filterRecord struct {
	Order int      `json:"order"`
	Name  string   `json:"name"`
	Hooks []string `json:"hooks"`
}

// listFilters lists the filters of a run with the same flags, in the order of
// evaluation.
func listFilters(a *cli.App, l startup.Limits, asJSON bool) error {
	if err := l.Check(); err != nil {
		return err
	}
	filters := l.Filters()
	for i, f := range filters {
		r := filterRecord{Order: i + 1, Name: f.Name, Hooks: f.Hooks()}
		if asJSON {
			a.WriteJSON(r)
			continue
		}
		_, _ = fmt.Fprintf(a.Out, "%d  %-12s %s\n", r.Order, r.Name, strings.Join(r.Hooks, ", "))
	}
	if len(filters) == 0 && !asJSON {
		_, _ = fmt.Fprintln(a.Out, "no filter: --max-calls and --max-time of remit run and remit resume add one")
	}
	return nil
}
