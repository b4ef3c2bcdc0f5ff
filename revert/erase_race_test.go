package revert_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
)

// TestErasedBesideOthers: between what an erasure has read and what it writes,
// somebody else erases, prunes, takes back or brings back the same. The journal can be
// read afterwards, and erasing again leaves nothing of the call.
func TestErasedBesideOthers(t *testing.T) {
	acts := map[string]func(p *process, txn, call string) error{
		"erase": func(p *process, _, call string) error {
			_, err := p.reverter.Erase(t.Context(), call, revert.Erased{By: "kim", Why: "x"})
			return err
		},
		"prune": func(p *process, _, _ string) error {
			_, err := p.reverter.Prune(t.Context(), revert.Retention{})
			return err
		},
		"revert": func(p *process, txn, _ string) error {
			_, err := p.reverter.Revert(t.Context(), txn)
			return err
		},
		"redo": func(p *process, txn, _ string) error {
			_, err := p.reverter.Redo(t.Context(), txn, "kim")
			return err
		},
	}
	for _, first := range []string{"erase", "prune"} {
		for other := range acts {
			for undone, name := range map[bool]string{true: "that was taken back", false: "as it was left"} {
				t.Run(first+" beside "+other+" of one "+name, func(t *testing.T) {
					store := revert.MemoryStore()
					p, q := newProcess(store, &world{before()}, 1), newProcess(store, nil, 2)
					q.world = p.world
					q.reverter = &revert.Reverter{Journal: q.journal, Host: q.host, Ways: p.reverter.Ways}
					txn := p.one(t, "a", 1)
					if undone {
						require.NoError(t, acts["revert"](p, txn, ""))
					}
					got, err := revert.Load(t.Context(), p.journal, txn)
					require.NoError(t, err)
					call := got.Calls[0].Ref.Call
					met := false
					p.host.OnPoint = func(point string) error {
						if strings.HasPrefix(point, "journal.append.erased") && !met {
							met = true
							require.NoError(t, acts[other](q, txn, call))
						}
						return nil
					}
					_ = acts[first](p, txn, call) // it may have to be done again
					require.True(t, met)
					p.host.OnPoint = nil
					require.NoError(t, acts["erase"](p, txn, call))
					found, err := revert.Fsck(t.Context(), p.journal, revert.FsckOptions{})
					require.NoError(t, err, "%+v", found)
					for e, err := range p.journal.Entries(t.Context(), revert.Query{}) {
						require.NoError(t, err)
						kind := e.Header.Kind
						require.True(t, !kind.Erasable() || e.Erased != "", "%s of %s is there", kind, e.Header.Call)
					}
					got, err = revert.Load(t.Context(), p.journal, txn)
					require.NoError(t, err)
					if p.world.values["a"] != before()["a"] {
						require.NotEqual(t, revert.RevertedState, got.State())
					}
				})
			}
		}
	}
}
