//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/script"
)

// twoCalls is how many calls each of the two processes makes.
const twoCalls = 60

// TestTwoProcessesOneKilled lets two processes work at once in one workspace and
// on one journal, and kills one: the other goes on and ends well, and what the
// killed one left is reverted without touching it.
func TestTwoProcessesOneKilled(t *testing.T) {
	t.Parallel()
	seed := killSeed(t)
	r := rand.New(rand.NewPCG(seed, 2))
	points := twoPoints(t, seed)
	for n := range 6 {
		at := 1 + r.IntN(points)
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			about := fmt.Sprintf("seed %d, killed at point %d", seed, at)
			dir, place := twoSetup(t, seed)
			before := fullSnapshot(t, filepath.Join(dir, "ws"))
			other := make(chan string, 1)
			go func() {
				out, err := childOutput(0, append([]string{"run", "--json", "--keep-going", filepath.Join(dir, "b.jsonl")}, place...)...)
				other <- fmt.Sprint(out, " ", err)
			}()
			killed(t, child(t, at, "", append([]string{"run", "--keep-going", "--at-end", "leave-open", filepath.Join(dir, "a.jsonl")}, place...)...), about)
			said := <-other
			lines := strings.Split(strings.TrimSpace(said), "\n")
			var sum script.Summary
			require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-2]), &sum), "%s: %s", about, said)
			require.Equal(t, "committed", string(sum.State), "%s: %s", about, said)
			require.Equal(t, twoCalls, sum.Done, "%s: %s", about, said)

			code, out := command(t, append([]string{"recover"}, place...)...)
			require.Zero(t, code, "%s: recover: %s", about, out)
			for _, txn := range unfinished(t, filepath.Join(dir, "state")) {
				code, out = command(t, append([]string{"revert", txn}, place...)...)
				require.Zero(t, code, "%s: revert: %s", about, out)
			}
			code, out = command(t, append([]string{"revert", sum.Txn}, place...)...)
			require.Zero(t, code, "%s: revert of the other: %s", about, out)
			require.Equal(t, before, fullSnapshot(t, filepath.Join(dir, "ws")), about)
			code, out = command(t, append([]string{"fsck"}, place...)...)
			require.Zero(t, code, "%s: fsck: %s", about, out)
		})
	}
}

func twoSetup(t *testing.T, seed uint64) (dir string, place []string) {
	dir = t.TempDir()
	ws := filepath.Join(dir, "ws")
	for n, side := range []string{"a", "b"} {
		a := &author{r: rand.New(rand.NewPCG(seed, uint64(n))), files: map[string]string{}, dirs: []string{side, side + "/sub"}}
		require.NoError(t, os.MkdirAll(filepath.Join(ws, side, "sub"), 0o755))
		var lines []string
		for i := range twoCalls {
			name := a.fresh(a.dirs[i%2], ".txt")
			if i%5 == 4 {
				name = side + "/same.txt"
			}
			line, err := json.Marshal(toolCall("file_write", map[string]any{"path": name, "content": a.text()}))
			require.NoError(t, err)
			lines = append(lines, string(line))
		}
		require.NoError(t, os.WriteFile(filepath.Join(ws, side, "same.txt"), []byte(side), 0o640))
		require.NoError(t, os.WriteFile(filepath.Join(dir, side+".jsonl"), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	}
	return dir, []string{"--workspace", ws, "--state", filepath.Join(dir, "state")}
}

func twoPoints(t *testing.T, seed uint64) int {
	dir, place := twoSetup(t, seed)
	trace := filepath.Join(dir, "trace")
	require.NoError(t, child(t, 0, trace, append([]string{"run", "--at-end", "leave-open", filepath.Join(dir, "a.jsonl")}, place...)...))
	raw, err := os.ReadFile(trace)
	require.NoError(t, err)
	return len(strings.Fields(string(raw)))
}

// TestSecondProcessOnOneFile: a file belongs to the transaction that changed it
// until that ends, also when its process was killed; whoever wants it meanwhile is
// told who has it, and gets it once that is reverted.
func TestSecondProcessOnOneFile(t *testing.T) {
	t.Parallel()
	dir, place := twoSetup(t, 1)
	ws := filepath.Join(dir, "ws")
	script := filepath.Join(dir, "one.jsonl")
	require.NoError(t, os.WriteFile(script, []byte(`{"tool":"file_write","args":{"path":"a/same.txt","content":"mine"}}
{"tool":"file_write","args":{"path":"a/sub/x.txt","content":"x"}}
`), 0o600))
	trace := filepath.Join(dir, "points")
	other, elsewhere := twoSetup(t, 2)
	require.NoError(t, child(t, 0, trace, append([]string{"run", "--at-end", "leave-open", filepath.Join(dir, "one.jsonl")}, elsewhere...)...))
	require.DirExists(t, other)
	raw, err := os.ReadFile(trace)
	require.NoError(t, err)
	last := len(strings.Fields(string(raw)))
	killed(t, child(t, last-3, "", append([]string{"run", "--at-end", "leave-open", script}, place...)...), "near its end")
	holder := unfinished(t, filepath.Join(dir, "state"))
	require.Len(t, holder, 1)

	code, out := command(t, append([]string{"run", script}, place...)...)
	require.Equal(t, 5, code, out)
	require.Contains(t, out, "held by transaction "+holder[0])
	code, out = command(t, append([]string{"log"}, place...)...)
	require.Zero(t, code)
	require.Contains(t, out, "open, owner gone")
	code, out = command(t, append([]string{"revert", holder[0]}, place...)...)
	require.Zero(t, code, out)
	content, err := os.ReadFile(filepath.Join(ws, "a/same.txt"))
	require.NoError(t, err)
	require.Equal(t, "a", string(content))
	code, out = command(t, append([]string{"run", script}, place...)...)
	require.Zero(t, code, out)
}
