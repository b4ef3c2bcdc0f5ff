package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/statcheck"
)

const gib = 1 << 30

// bigFile makes a file of so many bytes, of which only a few are no holes, or all of them.
func bigFile(t *testing.T, path string, size int64, full bool) {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	if full {
		_, err = io.CopyN(f, rand.NewChaCha8([32]byte{1}), size)
		require.NoError(t, err)
	}
	require.NoError(t, f.Truncate(size))
	for _, at := range []int64{0, size/2 - 3, size - 5} {
		_, err = f.WriteAt([]byte("data"), at)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
}

// content is what a file holds and how much of the disk it takes.
type content struct {
	size int64
	sum  [sha256.Size]byte
}

func readContent(t *testing.T, path string) (c content, allocated int64) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	h := sha256.New()
	c.size, err = io.Copy(h, f)
	require.NoError(t, err)
	h.Sum(c.sum[:0])
	return c, allocatedIn(t, path)
}

// allocatedIn is how many bytes of the disk a file or folder takes.
func allocatedIn(t *testing.T, path string) (n int64) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(path, func(at string, _ os.DirEntry, err error) error {
		require.NoError(t, err)
		var is syscall.Stat_t
		require.NoError(t, syscall.Lstat(at, &is))
		n += is.Blocks * 512
		return nil
	}))
	return n
}

// peak runs the command in a process of its own and returns the most memory that it had.
// The process says so itself: what the kernel tells its parent counts in what the
// parent had when it started it.
func peak(t *testing.T, argv ...string) int64 {
	t.Helper()
	args, err := json.Marshal(argv)
	require.NoError(t, err)
	cmd := exec.Command(self(), "-test.run=^TestKilledChild$")
	status := filepath.Join(t.TempDir(), "status")
	cmd.Env = append(os.Environ(), killArgsEnv+"="+string(args), killPointEnv+"=0", killStatusEnv+"="+status)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	said, err := os.ReadFile(status)
	require.NoError(t, err)
	var most int64
	_, rest, found := strings.Cut(string(said), "VmHWM:")
	require.True(t, found)
	_, err = fmt.Sscan(rest, &most)
	require.NoError(t, err)
	return most << 10
}

// TestBigFiles: what programs do to a large file, and its undo, takes little memory, and no
// more of the disk than the file does itself. With REMIT_LONG it has no holes.
func TestBigFiles(t *testing.T) {
	if !hasSandbox() {
		t.Skip("no sandbox on this machine")
	}
	full := statcheck.Whole()
	for _, tt := range []struct {
		name, script string
		size         int64 // each byte is digested several times
	}{
		{"edited in place", "printf changed | dd of=big bs=1 seek=700000 conv=notrunc", gib / 16},
		{"replaced", "cp --sparse=always big new; printf more >> new; mv new big", gib / 16},
		{"made longer", "truncate -s +16M big; printf more >> big", gib / 16},
		{"its bits changed", "chmod 600 big", gib / 16},
		{"moved", "mkdir to; mv big to/big", gib / 16},
		{"deleted", "rm big", gib},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			ws, state, script := filepath.Join(dir, "ws"), filepath.Join(dir, "state"), filepath.Join(dir, "script.jsonl")
			plain := filepath.Join(dir, "plain")
			require.NoError(t, os.MkdirAll(ws, 0o700))
			require.NoError(t, os.MkdirAll(plain, 0o700))
			if full {
				tt.size = gib
			}
			big := filepath.Join(ws, "big")
			bigFile(t, big, tt.size, full)
			bigFile(t, filepath.Join(plain, "big"), tt.size, full)
			before, took := readContent(t, big)
			line := fmt.Sprintf(`{"tool":"shell_run","args":{"script":%q,"timeout_s":600}}`, tt.script)
			require.NoError(t, os.WriteFile(script, []byte(line), 0o600))
			place := []string{"--workspace", ws, "--state", state}
			used := peak(t, append([]string{"run", script}, place...)...)
			plainly := exec.Command("sh", "-c", tt.script)
			plainly.Dir = plain
			require.NoError(t, plainly.Run())
			const margin = 256 << 10
			require.LessOrEqual(t, allocatedIn(t, ws), allocatedIn(t, plain)+margin)
			want, got := fileContents(t, plain), fileContents(t, ws)
			require.Equal(t, want, got)
			used = max(used, peak(t, append([]string{"revert", "--last"}, place...)...))
			after, takes := readContent(t, big)
			require.Equal(t, before, after)
			require.LessOrEqual(t, takes, took+margin)
			t.Logf("at most %d MiB of memory; the file takes %d KiB, the state %d KiB", used>>20, takes>>10, allocatedIn(t, state)>>10)
			require.Less(t, used, int64(gib/4))
			if !full {
				require.Less(t, allocatedIn(t, state), int64(16<<20))
			}
		})
	}
}

// fileContents is what the files of a folder hold.
func fileContents(t *testing.T, dir string) map[string]content {
	t.Helper()
	all := map[string]content{}
	require.NoError(t, filepath.WalkDir(dir, func(at string, d os.DirEntry, err error) error {
		require.NoError(t, err)
		if d.Type().IsRegular() {
			name, err := filepath.Rel(dir, at)
			require.NoError(t, err)
			all[name], _ = readContent(t, at)
		}
		return nil
	}))
	return all
}
