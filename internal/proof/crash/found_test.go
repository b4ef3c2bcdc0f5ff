package crash_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// hop is where a process ends: after an operation that begins with after, by the death
// of the process, or by the power going, in any way.
type hop struct {
	after string
	power bool
}

// TestFound goes the ways on which something was wrong once. They are told by what was
// done last, so that they are the same ones after a change that adds an operation.
func TestFound(t *testing.T) {
	for _, tt := range []struct {
		name, calls string
		abort       bool
		hops        []hop
	}{
		// A process died between an exchange and its sync. Recovery took what it saw for
		// what is on the disk, and wrote durably that the call was done.
		{"a change that nobody has synced", "write", false, []hop{{"exchange", false}, {"recovered", true}}},
		{"a removal that nobody has synced", "delete", false, []hop{{"remove", false}, {"recovered", true}}},
		{"an undo that nobody has synced", "write", true, []hop{{"exchange", false}, {"told", true}}},
		// A process died between the last record of a revert and its barrier. The next one
		// found that nothing was left to do, said so, and the record was lost.
		{"an end that nobody has synced", "write", true, []hop{{"append", false}, {"told", true}}},
		// The bits of a new directory were not synced before it got its name: a name
		// without them is a version that nobody knows.
		{"a directory without its bits", "mkdir", false, []hop{{"rename", true}, {"told", true}}},
		// Recovery said that a held call had no effect, and the commit released it once
		// more: what was wrong here was the oracle.
		{"a held call that is released again", "seen_mail", false, []hop{{"append", false}, {"append", false}}},
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

// is reports whether the way goes on from a moment in this manner.
func (h hop) is(m moment, c cut) bool {
	return strings.HasPrefix(m.what, h.after) && (h.power || !c.power)
}

// TestToldAgain: who asks for a call that ran before, by its id, is told of nothing that
// a power cut could take back: its record may be that of a process that died before its
// barrier.
func TestToldAgain(t *testing.T) {
	w := newWorld()
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
