package files_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/revert/effect"
)

// TestMergeOfChangeSet checks that the changes of a program in the sandbox are
// merged too.
func TestMergeOfChangeSet(t *testing.T) {
	w := newTestEnv(t)
	w.put("a.txt", five, 0o640)
	now, err := w.root.Lstat("a.txt")
	require.NoError(t, err)
	require.NoError(t, w.batch(w.host(), []files.DesiredFile{{
		Version: files.Version{Type: "file", Perm: 0o640, Owner: files.Owner(now.Owner)}, Path: "a.txt", Mtime: time.Now(),
		Open: func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("one\nTWO\nthree\nfour\nfive\n")), nil
		},
	}}))
	w.put("a.txt", "one\nTWO\nthree\nfour\nmine\n", 0o640)
	rep := w.revert()
	require.Equal(t, effect.Merged, rep.Items[0].Outcome, rep.Items[0].Why)
	require.Equal(t, "one\ntwo\nthree\nfour\nmine\n", w.read("a.txt"))
}
