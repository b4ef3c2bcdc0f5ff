package files_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// TestNamesThatAreNoText: JSON cannot write them, so no call names them; they are
// listed and found, and go along with their directory, and come back with it.
func TestNamesThatAreNoText(t *testing.T) {
	dir, tx := session(t)
	odd := filepath.Join(dir, "odd")
	require.NoError(t, os.Mkdir(odd, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(odd, "caf\xe9"), []byte("needle"), 0o640))
	require.NoError(t, os.WriteFile(filepath.Join(odd, "caf%E9"), []byte("other"), 0o640))

	for _, tc := range []struct {
		tool, want string
		args       tool.Args
	}{
		{"file_list", `{"entries":[{"name":"caf%E9","size":5,"type":"file"},{"escaped":true,"name":"caf%E9","size":6,"type":"file"}],"has_more":false}`, tool.Args{"path": "odd"}},
		{"file_search", `{"has_more":false,"matches":[{"escaped":true,"line":1,"path":"odd/caf%E9","text":"needle"}]}`, tool.Args{"path": "odd", "pattern": "needle"}},
		{"file_copy", `"copied"`, tool.Args{"from": "odd", "to": "copy"}},
		{"file_move", `"moved"`, tool.Args{"from": "odd", "to": "moved"}},
		{"file_delete", `"deleted"`, tool.Args{"path": "moved", "recursive": true}},
	} {
		out, err := tx.Invoke(t.Context(), tc.tool, tc.args)
		require.NoError(t, err, tc.tool)
		require.JSONEq(t, tc.want, string(out.Output), tc.tool)
	}
	data, err := os.ReadFile(filepath.Join(dir, "copy", "caf\xe9"))
	require.NoError(t, err)
	require.Equal(t, "needle", string(data))

	rep, err := tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	require.Empty(t, rep.NotReverted())
	data, err = os.ReadFile(filepath.Join(odd, "caf\xe9"))
	require.NoError(t, err)
	require.Equal(t, "needle", string(data))
	_, err = os.Lstat(filepath.Join(dir, "copy"))
	require.ErrorIs(t, err, os.ErrNotExist)

	_, err = tx.Invoke(t.Context(), "file_read", []byte("{\"path\":\"odd/caf\xe9\"}"))
	require.ErrorIs(t, err, tool.ErrInvalid)
}
