package crash_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// crashPoint is where a process ends: after an operation that begins with after, by
// the death of the process, or by a power failure, with any cut.
type crashPoint struct {
	after string
	power bool
}

// TestFound follows the paths on which a state was wrong once. Each path names
// the last operation, so it stays valid after a change that adds an operation.
func TestFound(t *testing.T) {
	for _, tt := range []struct {
		name, calls string
		abort       bool
		hops        []crashPoint
	}{
		// A process died between an exchange and its sync. Recovery assumed
		// that the visible state was on the disk, and durably recorded the call
		// as done.
		{"a change that nobody has synced", "write", false, []crashPoint{{"exchange", false}, {"recovered", true}}},
		{"a removal that nobody has synced", "delete", false, []crashPoint{{"remove", false}, {"recovered", true}}},
		{"an undo that nobody has synced", "write", true, []crashPoint{{"exchange", false}, {"told", true}}},
		// A process died between the last record of a revert and its barrier.
		// The next one found nothing left to do, reported that, and the record
		// was lost.
		{"an end that nobody has synced", "write", true, []crashPoint{{"append", false}, {"told", true}}},
		// The bits of a new directory were not synced before it got its name. A
		// name without them is an unknown version.
		{"a directory without its bits", "mkdir", false, []crashPoint{{"rename", true}, {"told", true}}},
		// Recovery reported that a held call had no effect, and the commit
		// released it again: the oracle was wrong here.
		{"a held call that is released again", "seen_mail", false, []crashPoint{{"append", false}, {"append", false}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, ok := kindNamed(tt.calls)
			require.True(t, ok)
			p := plan{[]callKind{k}, tt.abort}
			x := newExplorer(t.Errorf)
			x.depth = len(tt.hops)
			x.hops = tt.hops
			x.run(p, nil)
			require.Positive(t, x.crashes[len(tt.hops)], "the way is not there any more")
		})
	}
}

// is reports whether the path continues from a moment with this cut.
func (h crashPoint) is(m faultPoint, c cut) bool {
	return strings.HasPrefix(m.what, h.after) && (h.power || !c.power)
}

// TestRepeatedCallIsDurable repeats a call by its ID. The response must be durable, even if
// the record belongs to a process that died before its barrier.
func TestRepeatedCallIsDurable(t *testing.T) {
	w := newSimState()
	rt, ctx, err := w.process()
	require.NoError(t, err)
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	require.NoError(t, err)
	tx, err := s.Begin(ctx)
	require.NoError(t, err)
	for range 2 {
		out, err := tx.Invoke(ctx, "think", "x", agent.WithCallID("one"))
		require.NoError(t, err)
		require.Equal(t, tool.StatusDone, out.Status)
	}
	require.Zero(t, w.journal.Pending())
	require.NoError(t, rt.Close())
}
