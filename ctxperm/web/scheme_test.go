package web

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/revert"
)

// TestMayStillCome: what is not there may still come for as long as that takes, and
// where the clock was set back, so that nobody knows how long it was.
func TestMayStillCome(t *testing.T) {
	h := hosttest.New(1)
	h.Step = 0
	s := scheme{&Client{host: h, opts: Options{Late: time.Minute}}}
	sent := inverse{Sent: h.Now()}
	for _, tt := range []struct {
		after time.Duration
		want  revert.UndoOutcome
	}{{0, revert.UndoUnknown}, {time.Minute - 1, revert.UndoUnknown}, {time.Minute, revert.Already}, {time.Hour, revert.Already}, {-1, revert.UndoUnknown}, {-time.Hour, revert.UndoUnknown}} {
		h.Advance(tt.after)
		outcome, why := s.missing(sent)
		require.Equal(t, tt.want, outcome, "%s: %s", tt.after, why)
		h.Advance(-tt.after)
	}
}
