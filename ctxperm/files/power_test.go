package files_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/disk/simdisk"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/revert/journal"
)

// simulated is a test environment on a disk that forgets unsynced data, with many files.
func simulated(t *testing.T) (*testEnv, *simdisk.Disk) {
	t.Helper()
	d := simdisk.New()
	w := &testEnv{t: t, root: d.Root(), journal: journal.Memory()}
	w.gate = newTestEnv(t).gate
	old := time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)
	for i := range many {
		dir := path.Join("crowd", strings.Repeat("in/", i%3))
		if i < 3 {
			require.NoError(t, w.root.Mkdir(dir, 0o755))
		}
		name := path.Join(dir, fmt.Sprint("f", i))
		f, err := w.root.Create(name, 0o640)
		require.NoError(t, err)
		_, err = io.WriteString(f, fmt.Sprint("content ", i))
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.NoError(t, w.root.SetMtime(name, old))
	}
	require.NoError(t, w.root.Symlink("f0", "crowd/link"))
	require.NoError(t, w.root.SyncAll())
	return w, d
}

// powerCut simulates a power cut: any part of the unsynced data survives, even
// half of a write. Then it opens the root again.
func (w *testEnv) powerCut(d *simdisk.Disk, rng *rand.Rand) {
	pending := d.Pending()
	keep, half := make([]bool, len(pending)), -1
	odds := rng.IntN(4)
	for i, op := range pending {
		keep[i] = rng.IntN(4) < odds
		for _, n := range op.Needs {
			keep[i] = keep[i] && keep[n] && n != half
		}
		if keep[i] && op.Content && half < 0 && rng.IntN(3) == 0 {
			half = i
		}
	}
	d.Cut(keep, half)
	w.root = d.Root()
}

// TestPowerCutsOfWaves cuts the power at some point of a change of many files,
// of its revert, or of both. The next process restores everything, for any
// surviving part of the unsynced data.
func TestPowerCutsOfWaves(t *testing.T) {
	t.Parallel()
	runs := statcheck.Size(40, 3_000)
	cuts := 0
	for name, do := range bulkOperations() {
		if name == "copy" { // only times of existing files matter, not those of new ones
			continue
		}
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, 3))
			w, d := simulated(t)
			before := d.Files()
			crashing := func(odds int, act func(c *crash)) {
				c := &crash{left: 1 << 30}
				if rng.IntN(4) > 0 {
					c.left = 1 + rng.IntN(odds)
				}
				act(c)
				if c.ended || rng.IntN(2) == 0 {
					w.powerCut(d, rng)
					cuts++
				}
			}
			crashing(4000, func(c *crash) { _ = w.do(c.on(w.host()), do) })
			for range 2 {
				crashing(6000, func(c *crash) { _, _ = w.revertAs(context.Background(), c.on(w.host())) })
			}
			rep := w.revert()
			about := fmt.Sprintf("%s, seed %d", name, seed)
			require.Empty(t, rep.NotReverted(), about)
			w.powerCut(d, rng) // a reported revert is durable
			require.Equal(t, before, d.Files(), about)
		}
	}
	t.Logf("%d cuts", cuts)
}

// TestWavesAreDurable checks that the reported changes of a call with many
// files, and of its revert, survive a later power cut, with content and names.
func TestWavesAreDurable(t *testing.T) {
	for name, do := range bulkOperations() {
		w, d := simulated(t)
		holds := func(of string) {
			told := d.Files()
			d.Cut(make([]bool, len(d.Pending())), -1)
			require.Equal(t, told, d.Files(), "%s of %s", of, name)
			w.root = d.Root()
		}
		require.NoError(t, w.do(w.host(), do))
		holds("the work")
		require.Empty(t, w.revert().NotReverted())
		holds("the undo")
	}
}
