package files_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/internal/files"
)

// TestLimitsOfFiles: what a file tool takes on is what the runtime says, less or
// more than the defaults, and what it then did is verified and reverted.
func TestLimitsOfFiles(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	size, fits, refuses := 64<<10, 65<<10, tool.Limits{MaxFile: 63 << 10}
	if statcheck.Whole() { // more than the default
		size, fits, refuses = 33<<20, 34<<20, tool.Limits{}
	}
	large := append([]byte("first "), bytes.Repeat([]byte("x"), size)...)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "large"), large, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "small"), []byte("0123456789"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "many"), 0o755))
	for i := range 4 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "many", fmt.Sprint(i)), nil, 0o600))
	}
	with := func(l tool.Limits) *agent.Txn {
		rt, err := agent.New(agent.Tools(files.Tools()...), agent.Root("workspace", dir), agent.Log(slog.New(slog.DiscardHandler)), agent.Limits(l))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, rt.Close()) })
		s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
		require.NoError(t, err)
		tx, err := s.Begin(ctx)
		require.NoError(t, err)
		return tx
	}
	edit := tool.Args{"path": "large", "old": "first", "new": "second"}
	for _, tc := range []struct {
		name   string
		limits tool.Limits
		tool   string
		args   tool.Args
		want   tool.Status
		why    string
	}{
		{"a larger file", refuses, "file_edit", edit, tool.StatusFailed, fmt.Sprintf("the file has more than %d bytes; read a part of it", cmp.Or(refuses.MaxFile, handle.MaxFile))},
		{"as large as it may be", tool.Limits{MaxFile: fits}, "file_edit", edit, tool.StatusDone, ""},
		{"a smaller one", tool.Limits{MaxFile: 9}, "file_read", tool.Args{"path": "small"}, tool.StatusDone, ""},
		{"too small to edit", tool.Limits{MaxFile: 9}, "file_edit", tool.Args{"path": "small", "old": "0", "new": "1"}, tool.StatusFailed, "the file has more than 9 bytes"},
		{"grown by an edit", tool.Limits{MaxFile: 10}, "file_edit", tool.Args{"path": "small", "old": "0", "new": "11"}, tool.StatusFailed, "it would have 11 bytes; at most 10 are written"},
		{"too small to write", tool.Limits{MaxFile: 9}, "file_write", tool.Args{"path": "new", "content": "0123456789"}, tool.StatusFailed, "10 bytes; at most 9 are written"},
		{"all entries", tool.Limits{MaxEntries: 5}, "file_delete", tool.Args{"path": "many", "recursive": true}, tool.StatusDone, ""},
		{"one too many", tool.Limits{MaxEntries: 4}, "file_delete", tool.Args{"path": "many", "recursive": true}, tool.StatusFailed, "it has more than 4 entries; take it in parts"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tx := with(tc.limits)
			out, _ := tx.Invoke(ctx, tc.tool, tc.args)
			require.Equal(t, tc.want, out.Status, "%+v", out.Error)
			if tc.why != "" {
				require.Contains(t, out.Error.Why, tc.why)
			}
			rep, err := tx.Revert(ctx, revert.Options{})
			require.NoError(t, err)
			require.True(t, rep.Complete())
			now, err := os.ReadFile(filepath.Join(dir, "large"))
			require.NoError(t, err)
			require.True(t, bytes.Equal(large, now))
			require.FileExists(t, filepath.Join(dir, "many", "3"))
		})
	}
}

// A file within the limit of files may make a result that is too large: what is
// said then can be followed.
func TestReadThatHasNoRoom(t *testing.T) {
	dir, tx := session(t)
	contents := map[string][]byte{"zeros": make([]byte, 6<<20)}
	if statcheck.Whole() { // each result takes seconds under the race detector
		contents["quotes"] = bytes.Repeat([]byte(`"`), 17<<20)
		contents["binary"] = bytes.Repeat([]byte{0xff}, 31<<20)
	}
	for name, content := range contents {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
		_, err := tx.Invoke(t.Context(), "file_read", map[string]any{"path": name})
		require.ErrorContains(t, err, "read a part of it")
		limit := regexp.MustCompile(`limit of at most (\d+)`).FindStringSubmatch(err.Error())
		require.NotNil(t, limit, err)
		most, convErr := strconv.Atoi(limit[1])
		require.NoError(t, convErr)
		if !statcheck.Whole() {
			require.Greater(t, most, 5<<20)
			most = 1 << 10
		}
		_, err = tx.Invoke(t.Context(), "file_read", map[string]any{"path": name, "limit": most})
		require.NoError(t, err)
	}
}
