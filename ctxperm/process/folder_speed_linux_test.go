//go:build !portable

package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSnapshotSpeed prints how long a snapshot and its comparison take, together,
// in a tree of SNAPSHOT_FILES files of which ten change. It runs on request.
func TestSnapshotSpeed(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("SNAPSHOT_FILES"))
	if n == 0 {
		t.Skip("SNAPSHOT_FILES is not set")
	}
	for _, watched := range []bool{false, true} {
		s := newSnapshotEnv(t)
		s.cfg.Watch = watched
		for i := range n {
			s.put(fmt.Sprintf("d%d/e%d/f%d", i%20, i/20%50, i), "some content of a file "+fmt.Sprint(i))
		}
		start := time.Now()
		one := s.take("first")
		t.Logf("watched %v: first copy %v", watched, time.Since(start))
		s.differ(one)
		one.done = true
		one.conclude()
		var both, take, end []time.Duration
		for round := range 60 {
			start := time.Now()
			one := s.take(fmt.Sprint(round))
			took := time.Since(start)
			for i := range 10 {
				at := (round*7919 + i*104729) % n
				require.NoError(t, os.WriteFile(filepath.Join(s.dir, fmt.Sprintf("d%d/e%d/f%d", at%20, at/20%50, at)), []byte(fmt.Sprint("round ", round)), 0o644))
			}
			start = time.Now()
			require.Len(t, s.differ(one), 10)
			one.done = true
			one.conclude()
			rest := time.Since(start)
			if round >= 2 { // the first ones begin the watch
				both, take, end = append(both, took+rest), append(take, took), append(end, rest)
			}
		}
		for name, all := range map[string][]time.Duration{"take": take, "record": end, "both": both} {
			slices.Sort(all)
			t.Logf("watched %v: %-6s p50 %v p99 %v", watched, name, all[len(all)/2], all[len(all)*99/100])
		}
	}
}
