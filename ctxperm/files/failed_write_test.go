package files_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
)

// failing returns a function that fails at the first pass of a point.
func failing(point string) func(string) error {
	failed := false
	return func(id string) error {
		if id != point || failed {
			return nil
		}
		failed = true
		return errDisk
	}
}

// TestRevertOfFailedWrite checks the revert of a failed write. A write that
// changed nothing is not reverted, even if another process has written the same
// content since. A write that failed after its change is reverted.
func TestRevertOfFailedWrite(t *testing.T) {
	write := func(ctx context.Context, f *files.Files) error {
		return f.Write(ctx, "a.txt", []byte("ours"), files.WriteOptions{})
	}
	w := newTestEnv(t)
	w.createFiles()
	h := w.host()
	h.OnPoint = failing("files.write")
	require.ErrorIs(t, w.do(h, write), errDisk)
	require.NotEqual(t, "ours", w.read("a.txt"))
	w.put("a.txt", "ours", 0o640) // by another process
	require.Empty(t, w.revert().NotReverted())
	require.Equal(t, "ours", w.read("a.txt"))

	w = newTestEnv(t)
	w.createFiles()
	before := w.tree()
	h = w.host()
	h.OnPoint = failing("files.syncdir")
	require.ErrorIs(t, w.do(h, write), errDisk)
	require.Equal(t, "ours", w.read("a.txt"))
	require.Empty(t, w.revert().NotReverted())
	require.Equal(t, before, w.tree())
}
