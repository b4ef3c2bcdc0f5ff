package process_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	handle "github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/internal/process"
)

// allocated is how many bytes of the disk a file takes.
func allocated(t *testing.T, path string) int64 {
	t.Helper()
	var is syscall.Stat_t
	require.NoError(t, syscall.Lstat(path, &is))
	return is.Blocks * 512
}

// TestSparseFiles: what programs write sparsely takes no more room than after a plain run,
// and what was sparse takes none after its undo.
func TestSparseFiles(t *testing.T) {
	const margin = 64 << 10
	for name, script := range map[string]string{
		"made":            "truncate -s 4M new; printf x | dd of=new bs=1 seek=2304k conv=notrunc",
		"edited in place": "printf x | dd of=big bs=1 seek=2304k conv=notrunc",
		"copied":          "cp --sparse=always big new",
		"replaced":        "cp --sparse=always big new; printf x >> new; mv new big",
		"made shorter":    "truncate -s 1280k big",
		"moved":           "mv big new",
		"deleted":         "rm big",
	} {
		for _, way := range writeModeCases(t) {
			t.Run(name+way.name, func(t *testing.T) {
				w := newProgramSetup(t, allowAll(), agent.Driver(way.driver))
				big := filepath.Join(w.dir, "big")
				plainly(t, w.dir, "truncate -s 4M big; printf begin | dd of=big conv=notrunc; printf middle | dd of=big bs=1 seek=1792k conv=notrunc; touch -d 2001-01-01 big")
				other := w.dir + "-plain"
				require.NoError(t, exec.Command("cp", "-a", "--sparse=always", w.dir, other).Run())
				before, took := listing(t, w.dir, true), allocated(t, big)
				txn, _ := w.shell(t, script)
				plainly(t, other, script)
				equal(t, listing(t, other, false), listing(t, w.dir, false), "as in a plain run")
				found, err := os.ReadDir(w.dir)
				require.NoError(t, err)
				for _, e := range found {
					require.LessOrEqual(t, allocated(t, filepath.Join(w.dir, e.Name())), allocated(t, filepath.Join(other, e.Name()))+margin, e.Name())
				}
				_, err = w.s.Revert(t.Context(), txn, revert.Options{})
				require.NoError(t, err)
				equal(t, before, listing(t, w.dir, true), "undo")
				require.LessOrEqual(t, allocated(t, big), took+margin)
			})
		}
	}
}

// read is how many bytes this process has read so far.
func read(t *testing.T) (n int64) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skipf("the system does not count what is read: %v", err)
	}
	_, err = fmt.Sscanf(string(text), "rchar: %d", &n)
	require.NoError(t, err)
	return n
}

// TestHolesAreNotRead: a sparse file costs what it holds, in a call, in its undo and in its redo.
func TestHolesAreNotRead(t *testing.T) {
	const size, margin = 4 << 30, 256 << 20
	for name, script := range map[string]string{
		"made":    "truncate -s 4G new; printf x | dd of=new bs=1 seek=3G conv=notrunc",
		"changed": "printf x | dd of=big bs=1 seek=1G conv=notrunc",
		"deleted": "rm big",
	} {
		for _, way := range writeModeCases(t) {
			t.Run(name+way.name, func(t *testing.T) {
				j, err := sqlite.Open(t.Context(), t.TempDir()) // one in memory would hold the zeros
				require.NoError(t, err)
				defer func() { require.NoError(t, j.Close()) }()
				w := newProgramSetup(t, allowAll(), agent.Driver(way.driver), agent.Journal(j))
				big := filepath.Join(w.dir, "big")
				plainly(t, w.dir, "truncate -s 4G big; printf middle | dd of=big bs=1 seek=2G conv=notrunc")
				if allocated(t, big) > margin {
					t.Skip("the file system keeps no holes")
				}
				before := read(t)
				txn, o := w.shell(t, script)
				require.Len(t, o.Changes, 1, o.Text)
				_, err = w.s.Revert(t.Context(), txn, revert.Options{})
				require.NoError(t, err)
				_, err = w.rt.Redo(t.Context(), txn, "tester")
				require.NoError(t, err)
				_, err = w.s.Revert(t.Context(), txn, revert.Options{})
				require.NoError(t, err)
				require.Less(t, read(t)-before, int64(margin))
				is, err := os.Stat(big)
				require.NoError(t, err)
				require.EqualValues(t, size, is.Size())
				require.Less(t, allocated(t, big), int64(margin))
				_, err = os.Stat(filepath.Join(w.dir, "new"))
				require.ErrorIs(t, err, os.ErrNotExist)
			})
		}
	}
}

// TestKilledWhileItWrites: a program that is killed while it and its children write leaves
// nothing, by its time or by its caller; what the transaction did before is as it was, and
// is reverted.
func TestKilledWhileItWrites(t *testing.T) {
	const writes = "rm -r docs; i=0; while :; do echo $i >> a; echo $i > n$i; mv n$i src/; i=$((i+1)); [ $i != 50 ] || echo ready; done & while :; do date > b; chmod 600 b; done"
	for _, by := range []string{"its time", "its caller"} {
		for _, way := range writeModeCases(t) {
			t.Run(by+way.name, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				endless, err := process.Program(tool.Spec{Name: "endless", Description: "Writes until it is killed."}, func(json.RawMessage) (handle.Cmd, error) {
					return handle.Cmd{Argv: []string{"sh", "-c", writes}, Output: func(handle.Stream, []byte) { cancel() }}, nil
				})
				require.NoError(t, err)
				w := newProgramSetup(t, allowAll(), agent.Tools(endless), agent.Driver(way.driver))
				fill(t, w.dir)
				before := listing(t, w.dir, true)
				tx, err := w.s.Begin(t.Context())
				require.NoError(t, err)
				_, err = tx.Invoke(t.Context(), "shell_run", tool.Args{"script": "echo first > a; rm b; mkdir d"})
				require.NoError(t, err)
				between := listing(t, w.dir, true)
				if by == "its time" {
					_, err = tx.Invoke(t.Context(), "shell_run", tool.Args{"script": writes, "timeout_s": 1})
					require.ErrorIs(t, err, tool.ErrTimeout)
				} else {
					_, err = tx.Invoke(ctx, "endless", "")
					require.Error(t, err)
				}
				equal(t, between, listing(t, w.dir, true), "nothing of what was killed")
				_, err = tx.Revert(t.Context(), revert.Options{})
				require.NoError(t, err)
				equal(t, before, listing(t, w.dir, true), "undo")
			})
		}
	}
}

// TestManyKindsAtOnce: renames, links and names that are no text, all at once and by both
// ways, come out as in a plain run, and are reverted.
func TestManyKindsAtOnce(t *testing.T) {
	const setup = "ln a twin; mkdir -p deep/er/est; for i in 1 2 3 4 5 6 7 8; do echo $i > deep/er/est/f$i; ln -s ../f$i deep/er/l$i; done; printf x > \"$(printf 'in\\377valid')\"; python3 -c 'import os; os.setxattr(\"a\", \"user.k\", b\"v\")'"
	const script = "mv deep other; mv \"$(printf 'in\\377valid')\" \"$(printf 'new\\nline')\"; rm twin; ln b twin; chmod -R go= other; mv other/er/est/f1 other/er/l1; rm -r src; ln -s other src; tar cf - other | (mkdir un && tar xf - -C un); python3 -c 'import os; os.removexattr(\"a\", \"user.k\"); os.setxattr(\"un\", \"user.d\", b\"w\")'"
	for _, way := range writeModeCases(t) {
		t.Run("by"+way.name, func(t *testing.T) {
			w := newProgramSetup(t, allowAll(), agent.Driver(way.driver))
			fill(t, w.dir)
			plainly(t, w.dir, setup)
			other := w.dir + "-plain"
			require.NoError(t, exec.Command("cp", "-a", w.dir, other).Run())
			before := listing(t, w.dir, true)
			txn, o := w.shell(t, script)
			plainly(t, other, script)
			equal(t, listing(t, other, false), listing(t, w.dir, false), o.Text)
			after := listing(t, w.dir, true)
			_, err := w.s.Revert(t.Context(), txn, revert.Options{})
			require.NoError(t, err)
			equal(t, before, listing(t, w.dir, true), "undo")
			_, err = w.rt.Redo(t.Context(), txn, "tester")
			require.NoError(t, err)
			equal(t, after, listing(t, w.dir, true), "redo")
		})
	}
}
