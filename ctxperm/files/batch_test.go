package files_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
)

// TestReplacedWhileItIsSurveyed checks that another process can replace a file
// that a program wants to remove, between its survey and the copy of its
// content.
func TestReplacedWhileItIsSurveyed(t *testing.T) {
	for _, meddle := range []bool{false, true} {
		w := newTestEnv(t)
		w.createFiles()
		h := w.host()
		if meddle {
			h.OnPoint = at("files.look", w.replaced("dir/b.txt", theirs))
		}
		b, err := fileInternals.NewChangeSet(w.call(h))
		require.NoError(t, err)
		err = b.Add(t.Context(), "workspace", time.Now().Add(time.Hour), []files.DesiredFile{{Path: "dir/b.txt"}})
		if meddle {
			require.ErrorIs(t, err, files.ErrConflict)
		} else {
			require.NoError(t, err)
			require.Equal(t, 1, b.Len())
		}
		b.Close()
	}
}
