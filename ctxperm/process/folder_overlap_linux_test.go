//go:build !portable

package process

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert/journal"
)

// TestSnapshotOverlap checks that of two calls at the same time the first to end
// has all changes so far, and the other one only those after it.
func TestSnapshotOverlap(t *testing.T) {
	s, a := warm(t, nil)
	a.Joins = true
	a.join()
	s.put("f", "by one of them")
	b := s.take("2")
	b.Joins = true
	b.join()
	require.Equal(t, "old f", s.differ(a)["f"], "the second call moved nothing")
	for i := range a.found {
		a.found[i].Pre = "x"
	}
	require.NoError(t, a.announce(files.NewDetectedChanges(host.Real(), journal.Memory())))
	require.True(t, a.Ending)
	a.recorded()
	a.end()
	a.conclude()
	require.Empty(t, s.differ(b))
	s.put("f", "later")
	require.Equal(t, "by one of them", s.differ(b)["f"])
	require.Equal(t, map[string]bool{"2": true}, a.others)
	require.Equal(t, map[string]bool{"1": true}, b.others)
}
