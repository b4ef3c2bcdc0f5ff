//go:build !portable

package disk_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/disk"
)

// TestClone checks that a clone has all of the content, if the file system can
// share it, and that writing to one file does not change the other. Otherwise
// nothing is written.
func TestClone(t *testing.T) {
	dir := t.TempDir()
	content := strings.Repeat("content ", 10_000)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte(content), 0o600))
	r, err := disk.OpenRoot(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	f, err := r.Open("a")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	to, err := os.Create(filepath.Join(dir, "b"))
	require.NoError(t, err)
	defer func() { require.NoError(t, to.Close()) }()
	from, ok := f.(interface{ CloneTo(empty *os.File) error })
	require.True(t, ok)
	err = from.CloneTo(to)
	if err == nil {
		_, err := to.WriteAt([]byte("X"), 0)
		require.NoError(t, err)
		data, err := os.ReadFile(to.Name())
		require.NoError(t, err)
		require.Equal(t, "X"+content[1:], string(data))
		data, err = os.ReadFile(filepath.Join(dir, "a"))
		require.NoError(t, err)
		require.Equal(t, content, string(data))
		return
	}
	t.Log("this file system does not share content:", err)
	info, err := to.Stat()
	require.NoError(t, err)
	require.Zero(t, info.Size())
}
