//go:build unix

package serve

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTaskFlagsRefused: the command rejects an invalid limit, and does not use
// the default instead.
func TestTaskFlagsRefused(t *testing.T) {
	good := taskLimits{after: time.Second, time: time.Second, poll: time.Second, atOnce: 1}
	given := func(string) bool { return true }
	require.NoError(t, good.check(given))
	require.NoError(t, taskLimits{}.check(func(string) bool { return false }))
	for what, spoil := range map[string]func(*taskLimits){
		"--task-after 0s is too short":                  func(l *taskLimits) { l.after = 0 },
		"--task-timeout -1s is too short":               func(l *taskLimits) { l.time = -time.Second },
		"--task-poll-interval 99ms is too short; 100ms": func(l *taskLimits) { l.poll = 99 * time.Millisecond },
		"--max-tasks 0 is less than one":                func(l *taskLimits) { l.atOnce = 0 },
	} {
		bad := good
		spoil(&bad)
		require.ErrorContains(t, bad.check(given), what)
	}
}
