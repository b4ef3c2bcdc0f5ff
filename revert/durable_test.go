package revert_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/simjournal"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// TestDurable kills a process before each of its barriers. The next process
// reverts, redoes, recovers, resolves or erases. It changes and deletes nothing
// before the record of that is durable. It reports nothing that a power failure
// could remove, whether it wrote the record itself or found it.
func TestDurable(t *testing.T) {
	reads := []string{"preview", "preview of what is held", "preview by force", "see what can be pruned", "check", "list content"}
	for _, s := range slices.Concat(scenarios(), foundDone()) {
		if slices.Contains(reads, s.name) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			store := simjournal.NewStore()
			l := newTestEnvOn(t, func() journal.Journal { return store.Open() })
			l.faults.skipsBarrier = true
			s.prepare(l)
			if !s.alive {
				l.next()
			}
			l.faults.skipsBarrier = false
			require.Positive(t, store.Pending())
			l.faults.sees = func(op string) {
				if op == "put" || op == "give back" || op == "collect" {
					require.Zero(t, store.Pending(), "writes that are not durable before %s", op)
				}
			}
			got := s.do(t.Context(), l)
			require.NoError(t, got.err)
			require.Zero(t, store.Pending(), "writes that a power cut could take from what was told")
		})
	}
}

// foundDone returns scenarios in which the requested work is already done.
func foundDone() []scenario {
	all := revert.Options{}
	after := func(do ...request) func(*testEnv) {
		return func(l *testEnv) {
			l.ids["t"] = l.worked()
			require.NoError(l.t, each(do...)(l.t.Context(), l).err)
		}
	}
	return []scenario{
		{name: "undo of what is undone", prepare: after(revertRequest("t", all)), do: revertRequest("t", all)},
		{name: "redo of what is redone", prepare: after(revertRequest("t", all), redo("t")), do: redo("t")},
		{name: "undo of all that a dead process ended", prepare: opened, do: revertRequest("t", all)},
	}
}
