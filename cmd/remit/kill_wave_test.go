//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/statcheck"
)

const waveScript = `{"tool":"shell_run","args":{"script":"for f in many/f* many/in/f*; do echo more >> $f; done; mkdir new new/in; for i in $(seq 40); do echo $i > new/n$i; echo $i > new/in/n$i; done; rm -r gone"}}
`

// waveSetup is a workspace with so many files that what makes them durable is shared.
func waveSetup(t *testing.T) (ws, state, script string) {
	ws, state, script = killSetup(t)
	require.NoError(t, os.WriteFile(script, []byte(waveScript), 0o600))
	for _, dir := range []string{"many/in", "gone"} {
		require.NoError(t, os.MkdirAll(filepath.Join(ws, dir), 0o755))
	}
	for i := range 40 {
		for _, dir := range []string{"many", "many/in", "gone"} {
			require.NoError(t, os.WriteFile(filepath.Join(ws, dir, fmt.Sprint("f", i)), fmt.Appendf(nil, "%s %d", dir, i), 0o640))
		}
	}
	return ws, state, script
}

// TestKilledWaves kills the application of many changes, their undo and their redo: each
// time the next process ends what was begun, and all of it is as it was or as it became.
func TestKilledWaves(t *testing.T) {
	t.Parallel()
	if !hasSandbox() {
		t.Skip("no sandbox on this machine")
	}
	seed := killSeed(t)
	r := rand.New(rand.NewPCG(seed, 8))
	kills := statcheck.Size(3, 150)
	trace := filepath.Join(t.TempDir(), "trace")
	ws, state, script := waveSetup(t)
	before := withLinks(t, ws)
	require.NoError(t, child(t, 0, trace, "run", "--workspace", ws, "--state", state, script))
	points := strings.Count(readText(t, trace), "\n")
	require.Greater(t, points, 1000)
	for range kills {
		ws, state, script := waveSetup(t)
		before, at := withLinks(t, ws), 1+r.IntN(points)
		about := fmt.Sprintf("seed %d, run killed at point %d", seed, at)
		_ = child(t, at, "", "run", "--at-end", "leave-open", "--workspace", ws, "--state", state, script) // it may have fewer points
		endKilled(t, r, ws, state, about)
		require.Equal(t, before, withLinks(t, ws), about)
	}
	after := withLinks(t, ws)
	code, out := command(t, "revert", "--last", "--workspace", ws, "--state", state)
	require.Zero(t, code, out)
	txn := namedTxn(t, out)
	require.Equal(t, before, withLinks(t, ws))
	was := map[string]map[string]string{"redo": after, "revert": before}
	for i := range 2 * kills {
		what := []string{"redo", "revert"}[i%2]
		at := 1 + r.IntN(points)
		about := fmt.Sprintf("seed %d, %s killed at point %d", seed, what, at)
		_ = child(t, at, "", what, txn, "--workspace", ws, "--state", state)
		if i%3 == 1 {
			_ = child(t, 1+r.IntN(points), "", what, txn, "--workspace", ws, "--state", state)
		}
		code, out := command(t, what, txn, "--workspace", ws, "--state", state)
		require.Zero(t, code, "%s: %s", about, out)
		require.Equal(t, was[what], withLinks(t, ws), about)
	}
}

// endKilled ends what a killed run left.
func endKilled(t *testing.T, r *rand.Rand, ws, state, about string) {
	t.Helper()
	_ = child(t, 1+r.IntN(2000), "", "recover", "--workspace", ws, "--state", state)
	code, out := command(t, "recover", "--workspace", ws, "--state", state)
	require.Zero(t, code, "%s: recover: %s", about, out)
	for _, txn := range unfinished(t, state) {
		code, out = command(t, "revert", txn, "--workspace", ws, "--state", state)
		require.Zero(t, code, "%s: revert: %s", about, out)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(raw)
}

// namedTxn is the transaction that an output names.
func namedTxn(t *testing.T, out string) string {
	t.Helper()
	_, rest, found := strings.Cut(out, "transaction ")
	require.True(t, found, out)
	return strings.Fields(rest)[0]
}
