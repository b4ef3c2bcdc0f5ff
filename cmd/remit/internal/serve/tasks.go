package serve

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/mcp"
)

// taskLimits holds the limits of tasks. Zero: the default of package mcp.
type taskLimits struct {
	after, time, poll time.Duration
	atOnce            int
}

func taskFlags(cmd *cobra.Command, l *taskLimits) {
	flags := cmd.Flags()
	flags.DurationVar(&l.after, "task-after", 0, "`TIME` after which a call becomes a task, if its client supports tasks (default: 5s)")
	flags.DurationVar(&l.time, "task-timeout", 0, "maximum `TIME` of a task, within the timeout of its tool (default: 1h)")
	flags.DurationVar(&l.poll, "task-poll-interval", 0, "`TIME` between two polls of a task, for clients (default: 2s)")
	flags.IntVar(&l.atOnce, "max-tasks", 0, "maximum number of running tasks, `N`, of one session; further calls do not become tasks (default: 16)")
}

// minTaskPoll is the minimum poll interval.
const minTaskPoll = 100 * time.Millisecond

func (l taskLimits) check(changed func(string) bool) error {
	for _, d := range []struct {
		name        string
		given, from time.Duration
	}{{"task-after", l.after, time.Millisecond}, {"task-timeout", l.time, time.Millisecond}, {"task-poll-interval", l.poll, minTaskPoll}} {
		if changed(d.name) && d.given < d.from {
			return cli.UsageProblem(fmt.Sprintf("--%s %s is too short; %s and more are valid", d.name, d.given, d.from))
		}
	}
	if changed("max-tasks") && l.atOnce < 1 {
		return cli.UsageProblem(fmt.Sprintf("--max-tasks %d is less than one", l.atOnce))
	}
	return nil
}

func (l taskLimits) set(o *mcp.Options) {
	o.TaskAfter, o.TaskTimeout, o.TaskPollInterval, o.MaxTasksPerSession = l.after, l.time, l.poll, l.atOnce
}
