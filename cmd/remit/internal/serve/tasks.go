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
	flags.DurationVar(&l.after, "task-after", 0, "how long a call lasts before it goes on as a task, where its client knows the Tasks extension (default: 5s)")
	flags.DurationVar(&l.time, "task-timeout", 0, "how long it may run as one, within the time that its tool has (default: 1h)")
	flags.DurationVar(&l.poll, "task-poll-interval", 0, "how often clients are told to ask how a task stands (default: 2s)")
	flags.IntVar(&l.atOnce, "max-tasks", 0, "the most tasks, `N`, that one session has running; other calls are waited for (default: 16)")
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
