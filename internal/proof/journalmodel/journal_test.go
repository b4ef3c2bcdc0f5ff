package journalmodel_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/revert/journal"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		serve()
		return
	}
	os.Exit(m.Run())
}

// eachSeed runs a test for fixed seeds: a sample, all with REMIT_LONG, or
// REMIT_SEED alone.
func eachSeed(t *testing.T, usually, whole int, test func(t *testing.T, seed uint64)) {
	t.Helper()
	first, count := uint64(1), statcheck.Size(usually, whole)
	if text := os.Getenv("REMIT_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "REMIT_SEED")
		first, count = seed, 1
	}
	for seed := first; seed < first+uint64(count); seed++ {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { test(t, seed) }) {
			return
		}
	}
}

// TestModel makes random operations in up to three processes, one after the
// other.
func TestModel(t *testing.T) {
	var st stats
	ops := 600
	if statcheck.Whole() {
		ops = 1000
	}
	eachSeed(t, 4, 60, func(t *testing.T, seed uint64) { runOne(t, seed, ops, &st) })
	t.Logf("%+v", st)
	if os.Getenv("REMIT_SEED") != "" || statcheck.Racing {
		return
	}
	for _, n := range []int{st.refusals, st.kills, st.copies, st.fscks, st.erases, st.scans, st.marks} {
		require.Positive(t, n, "each kind of operation, and marks that a scan sees")
	}
}

func runOne(t *testing.T, seed uint64, ops int, st *stats) {
	d := newDriver(t, seed, st)
	d.nodes = []*node{local()}
	for range seed % 3 {
		d.nodes = append(d.nodes, child(t))
	}
	for range 1 + d.r.IntN(4) {
		d.open(d.anyNode())
	}
	for range ops {
		d.step(true)
	}
	for _, o := range d.opens {
		d.headAndAll(o)
		d.query(o, journal.Query{})
	}
	for len(d.opens) > 0 {
		d.close(0)
	}
	d.fsck(d.dir)
	d.open(d.nodes[0])
	d.headAndAll(d.opens[0])
	d.query(d.opens[0], journal.Query{Newest: true})
	d.gc(d.opens[0])
	d.close(0)
}
