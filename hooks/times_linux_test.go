package hooks_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRedoOfFolderTimes: a redo restores the times that folders had after the
// prompt.
func TestRedoOfFolderTimes(t *testing.T) {
	old := time.Unix(1_500_000_000, 123_456_789).UTC()
	const script = "echo n > d/new; rm d/gone; mkdir d/made; echo x > d/made/x; mv d/deep d/moved"
	for name, does := range map[string]func(c *coder){
		"sandboxed": func(c *coder) { require.Zero(t, c.runs(script).code) },
		"write": func(c *coder) {
			c.edits("Write", "d/new", "n\n")
			c.edits("Write", "d/made/x", "x\n")
		},
		"two calls": func(c *coder) {
			c.edits("Write", "d/new", "n\n")
			require.Zero(t, c.runs("rm d/new; echo y > d/deep/y").code)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newProject(t, true, allowAll)
			d.write("d/gone", "g")
			d.write("d/deep/x", "x")
			for _, dir := range []string{"d/deep", "d", "."} {
				require.NoError(t, os.Chtimes(filepath.Join(d.dir, dir), time.Time{}, old))
			}
			was := d.folders()
			c := d.coder("claude-code", "s")
			c.says("go")
			does(c)
			c.stops()
			left := d.folders()
			require.NotEqual(t, was, left)
			for range 2 {
				require.Empty(t, d.undo(d.txns()[0]).NotReverted())
				require.Equal(t, was, d.folders(), "after the undo")
				rep, err := d.rt.Redo(t.Context(), d.txns()[0], "person")
				require.NoError(t, err)
				require.Empty(t, rep.NotReverted())
				require.Equal(t, left, d.folders(), "after the redo")
			}
		})
	}
}

// folders returns the times of all folders.
func (d *project) folders() map[string]string {
	d.t.Helper()
	all := map[string]string{}
	require.NoError(d.t, filepath.WalkDir(d.dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		info, err := e.Info()
		all[path[len(d.dir):]] = info.ModTime().UTC().Format(time.RFC3339Nano)
		return err
	}))
	return all
}
