package sqlite_test

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// TestOthers has three openings write in an order that follows from a seed.
// Others of one returns a new number after each write of another one, and the
// same number while only this one writes.
func TestOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	var all []*sqlite.Journal
	for range 3 {
		j, err := sqlite.Open(t.Context(), dir)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, j.Close()) })
		all = append(all, j)
	}
	r, h := rand.New(rand.NewPCG(1, 2)), hosttest.New(1)
	type opening struct {
		seen  map[int64]bool
		stale bool   // another one wrote since the last number
		wrote bool   // this one wrote since another one did
		same  *int64 // the first number after that
	}
	of := make([]opening, len(all))
	for i := range of {
		of[i] = opening{seen: map[int64]bool{}, stale: true}
	}
	for step := range 2000 {
		i := r.IntN(len(all))
		o := &of[i]
		if r.IntN(2) == 0 {
			w := revert.Write{Records: []revert.CallRecord{{Body: &record.Heard{}}}, Durable: r.IntN(10) == 0}
			require.NoError(t, revert.NewRecorder(all[i], h, "s").Write(t.Context(), w))
			o.wrote = true
			for other := range of {
				if other != i {
					of[other].stale, of[other].wrote, of[other].same = true, false, nil
				}
			}
			continue
		}
		n, err := all[i].Others(t.Context())
		require.NoError(t, err)
		switch {
		case o.stale:
			require.False(t, o.seen[n], "step %d: another opening wrote", step)
		case o.same != nil:
			require.Equal(t, *o.same, n, "step %d: only this opening wrote", step)
		}
		if o.seen[n], o.stale = true, false; o.wrote && o.same == nil {
			o.same = &n
		}
	}
}
