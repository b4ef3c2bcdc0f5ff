package callstate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/host/hosttest"
)

// firedTimers is a host whose timers fire when a test says so, also after they
// were stopped.
type firedTimers struct {
	host.Host
	fire []func()
}

func (h *firedTimers) AfterFunc(_ time.Duration, f func()) *time.Timer {
	h.fire = append(h.fire, f)
	return time.NewTimer(time.Hour)
}

// TestStoppedTimerEndsNothing checks that a timer that fires while it is stopped
// does not end a call: not while the clock is paused, nor in a later period.
func TestStoppedTimerEndsNothing(t *testing.T) {
	h := &firedTimers{Host: hosttest.New(1)}
	over := errors.New("over")
	clock := callstate.NewClock(h, time.Minute, over)
	ctx, cancel := clock.Start(t.Context())
	defer cancel()
	resume := clock.Pause()
	h.fire[0]()
	require.NoError(t, ctx.Err(), "paused")
	resume()
	h.fire[0]()
	require.NoError(t, ctx.Err(), "the first period is over")
	require.Len(t, h.fire, 2)
	h.fire[1]()
	require.ErrorIs(t, context.Cause(ctx), over)
}

// TestTimerOfEveryHost checks both ways to measure a timeout.
func TestTimerOfEveryHost(t *testing.T) {
	for name, h := range map[string]host.Host{"of the machine": host.Real(), "without timers": hosttest.New(1)} {
		t.Run(name, func(t *testing.T) {
			over := errors.New("over")
			ctx, cancel := callstate.NewClock(h, time.Nanosecond, over).Start(t.Context())
			defer cancel()
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), over)

			ctx, cancel = callstate.NewClock(h, time.Hour, over).Start(t.Context())
			cancel()
			<-ctx.Done()
			require.NotErrorIs(t, context.Cause(ctx), over)
		})
	}
}
