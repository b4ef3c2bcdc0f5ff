package startup

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/tool/filter"
)

// Limits holds the budgets that flags set.
type Limits struct {
	calls int64
	time  time.Duration
}

// AddLimitFlags adds the flags of the budgets.
func AddLimitFlags(cmd *cobra.Command, l *Limits) {
	cmd.Flags().Int64Var(&l.calls, "max-calls", 0, "maximum number of calls, `N`, of the session in this command; denied calls do not count (default: no limit)")
	cmd.Flags().DurationVar(&l.time, "max-time", 0, "maximum `TIME` of these calls together, such as 5m: no call begins after it, and one that runs goes on (default: no limit)")
}

// Check rejects negative budgets.
func (l Limits) Check() error {
	if l.calls < 0 {
		return cli.UsageProblem(fmt.Sprintf("--max-calls %d is less than none; 0 is any number", l.calls))
	}
	if l.time < 0 {
		return cli.UsageProblem(fmt.Sprintf("--max-time %s is less than no time; 0 is any", l.time))
	}
	return nil
}

// Filters returns the filters of a run with these flags, in order. It returns an
// error for budgets that Check rejects.
func (l Limits) Filters() ([]filter.Filter, error) {
	if l == (Limits{}) {
		return nil, nil
	}
	budget, err := filter.Budget{
		Session: filter.Usage{Calls: l.calls, Time: l.time},
		// A program can run for an hour. Reserving that would refuse it under any
		// shorter limit.
		EstimateUsage: func(filter.Call) filter.Usage { return filter.Usage{} },
	}.Filter()
	return []filter.Filter{budget}, err
}
