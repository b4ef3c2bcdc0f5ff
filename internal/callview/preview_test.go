package callview_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// TestWants: the preview compares with the file as it is now. A call without a
// preview has a note with the reason.
func TestWants(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("one one\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "big"), bytes.Repeat([]byte("x"), 5<<20), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "d"), 0o700))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "out")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin"), []byte{0, 1}, 0o600))
	here := map[string]callview.Folder{"workspace": {Path: dir}}
	tools, err := tool.NewRegistry(builtin.Files()...)
	require.NoError(t, err)
	for _, tt := range []struct{ tool, input, patch, note string }{
		{"file_write", `{"path":"a","content":"two\n"}`, "-one one", ""},
		{"file_write", `{"path":"new","content":"two\n"}`, "+two", ""},
		{"file_write", `{"path":"a","content":"one one\n"}`, "", "would not change"},
		{"file_write", `{"path":"d","content":"x"}`, "", "not a regular file"},
		{"file_write", `{"path":"out","content":"x"}`, "", "not a regular file"},
		{"file_write", `{"path":"../x","content":"x"}`, "", "no difference can be shown"},
		{"file_write", `{"path":"big","content":"x"}`, "", "more than"},
		{"file_write", `{"path":"bin","content":"x"}`, "bin", ""},
		{"file_write", `{"path":"a","content":"x","root":"docs"}`, "", "where root docs is now is not known"},
		{"file_edit", `{"path":"a","old":"one","new":"x"}`, "", "occurs 2 times"},
		{"file_edit", `{"path":"a","old":"one","new":"x","all":true}`, "+x x", ""},
		{"file_edit", `{"path":"a","old":"two","new":"x"}`, "", "nowhere in it"},
		{"file_delete", `{"path":"a"}`, "deleted file", ""},
		{"file_delete", `{"path":"gone"}`, "", "not there now"},
		{"file_move", `{"from":"a","to":"b"}`, "", ""},
		{"nosuch", `{}`, "", ""},
		{"file_write", `[]`, "", ""},
	} {
		known, _ := tools.Get(tt.tool)
		digest := ""
		if !known.IsZero() {
			digest = known.Digest()
		}
		w := callview.PreviewCall(t.Context(), here, tools, tt.tool, digest, json.RawMessage(tt.input))
		require.Contains(t, w.Patch, tt.patch, tt.input)
		require.Contains(t, w.Note, tt.note, tt.input)
		require.Equal(t, tt.patch == "", w.Patch == "", "%s %s: %q", tt.tool, tt.input, w.Patch)
	}
	known, _ := tools.Get("file_write")
	require.Empty(t, callview.PreviewCall(t.Context(), here, tools, "file_write", known.Digest()+"0", json.RawMessage(`{"path":"a","content":"x"}`)), "another declaration")
}
