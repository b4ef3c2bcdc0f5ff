package web

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/revert/effect"
)

// TestMayStillCome checks that a missing item may still appear within Late. It
// also may if the clock was set back, because the time since the request is
// unknown.
func TestMayStillCome(t *testing.T) {
	h := hosttest.New(1)
	h.Step = 0
	s := scheme{&Client{host: h, opts: Options{Late: time.Minute}}}
	sent := inverse{Sent: h.Now()}
	for _, tt := range []struct {
		after time.Duration
		want  effect.Outcome
	}{{0, effect.Unknown}, {time.Minute - 1, effect.Unknown}, {time.Minute, effect.Already}, {time.Hour, effect.Already}, {-1, effect.Unknown}, {-time.Hour, effect.Unknown}} {
		h.Advance(tt.after)
		outcome, why := s.missing(sent)
		require.Equal(t, tt.want, outcome, "%s: %s", tt.after, why)
		h.Advance(-tt.after)
	}
}
