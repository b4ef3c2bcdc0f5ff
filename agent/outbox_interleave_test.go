package agent_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// TestInterleavedHolds runs held calls, commits, reverts of one call and
// reverts of a transaction in random interleavings. A successful commit
// delivers each held call once and in order, unless a revert dropped it. The
// runtime delivers nothing after a revert and holds nothing after a commit has
// begun.
func TestInterleavedHolds(t *testing.T) {
	seeds := uint64(max(statcheck.Size(60, 5000), 60)) // fewer do not hold every case
	ends := map[revert.TxnState]int{}
	dropped, failed := 0, 0
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 9))
			steps, h := &stepper{}, hosttest.New(seed)
			refusals := r.IntN(3)
			p := &post{fails: func(sentMessage) error {
				if refusals--; refusals >= 0 && refusals%2 == 0 {
					return tool.NoEffect(errors.New("refused"))
				}
				return nil
			}}
			rt := newRuntime(t, agent.Host(h), agent.Tools(p.mail(t)), agent.Policy(holdAll()))
			s := newSession(t, rt)
			tx := begin(t, s)
			first := holds(t, tx, "mail", "m0")
			h.OnPoint = steps.point
			var mu sync.Mutex // never held across a wait
			sure, back := map[string]bool{"m0": true}, map[string]bool{}
			var all sync.WaitGroup
			for i := range 2 + r.IntN(3) {
				text := fmt.Sprint("m", i+1)
				all.Go(func() {
					out, err := tx.Invoke(t.Context(), "mail", text)
					mu.Lock()
					defer mu.Unlock()
					sure[text] = out.Status == tool.StatusHeld
					if err != nil { // the end was faster
						require.True(t, errors.Is(err, agent.ErrTxnEnded) || errors.Is(err, agent.ErrNotReleased), "%v", err)
					}
				})
			}
			var committed, reverted bool
			for range 1 + r.IntN(2) {
				all.Go(func() {
					err := tx.Commit(t.Context())
					mu.Lock()
					defer mu.Unlock()
					committed = committed || err == nil
					require.True(t, err == nil || errors.Is(err, agent.ErrTxnEnded) || errors.Is(err, agent.ErrNotReleased), "%v", err)
				})
			}
			if r.IntN(2) == 0 {
				all.Go(func() {
					rep, err := tx.Revert(t.Context(), revert.Options{Calls: []string{first.Call}})
					mu.Lock()
					defer mu.Unlock()
					back["m0"] = err == nil && len(rep.Items) == 1 && rep.Items[0].Action == revert.ActionDrop
				})
			}
			if r.IntN(3) == 0 {
				all.Go(func() {
					_, err := tx.Revert(t.Context(), revert.Options{})
					mu.Lock()
					defer mu.Unlock()
					reverted = err == nil || errors.Is(err, agent.ErrPartialRevert)
				})
			}
			require.Greater(t, steps.run(r), 5)
			all.Wait()
			for n := 0; !committed && !reverted; n++ {
				require.Less(t, n, 4, "seed %d", seed)
				committed = tx.Commit(context.Background()) == nil
				failed++
			}
			txn := loadTxn(t, rt, tx.ID())
			ends[txn.State()]++
			require.Equal(t, committed, txn.State() == revert.TxnCommitted, "seed %d", seed)
			calls := slices.Clone(txn.Calls)
			slices.SortFunc(calls, func(a, b *revert.Call) int { return a.Held.Sequence - b.Held.Sequence })
			var want []string
			for _, c := range calls {
				text := string(c.Held.Input[1 : len(c.Held.Input)-1])
				require.True(t, sure[text], "seed %d: %s is held, and nobody was told", seed, text)
				delete(sure, text)
				require.Equal(t, back[text] || (reverted && c.Phase != revert.PhaseDone), c.Dropped != nil, "seed %d: %s", seed, text)
				if c.Phase == revert.PhaseDone {
					want = append(want, text)
				} else {
					dropped++
				}
			}
			for text, told := range sure {
				require.False(t, told, "seed %d: %s is lost", seed, text)
			}
			require.Equal(t, append([]string{}, want...), p.texts(), "seed %d", seed)
			fsckClean(t, rt)
		})
	}
	t.Logf("%v, %d dropped, %d commits went on", ends, dropped, failed)
	require.Positive(t, ends[revert.TxnCommitted])
	require.Positive(t, ends[revert.TxnReverted]+ends[revert.TxnRevertedPartial])
	require.Positive(t, dropped)
	require.Positive(t, failed)
}
