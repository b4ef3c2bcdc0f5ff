package connect_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/connect"
)

// TestRewrite: the new text takes the place of the old one with its bits, through links, and the old one is beside it; nothing is
// written where nothing changes or edit fails.
func TestRewrite(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "gateway.json"), filepath.Join(dir, "link.json")
	require.NoError(t, os.WriteFile(real, []byte("old"), 0o640))
	require.NoError(t, os.Symlink("gateway.json", link))
	same := func(text []byte) ([]byte, error) { return text, nil }
	fails := func([]byte) ([]byte, error) { return nil, errors.New("no") }
	backup, err := connect.RewriteFile(link, same)
	require.NoError(t, err)
	require.Empty(t, backup)
	_, err = connect.RewriteFile(link, fails)
	require.ErrorContains(t, err, "no")
	found, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, found, 2)

	backup, err = connect.RewriteFile(link, func([]byte) ([]byte, error) { return []byte("new"), nil })
	require.NoError(t, err)
	for name, want := range map[string]string{real: "new", link: "new", backup: "old"} {
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	info, err := os.Lstat(real)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode())
	info, err = os.Stat(backup)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	info, err = os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
	_, err = connect.RewriteFile(filepath.Join(dir, "none"), same)
	require.ErrorContains(t, err, "not there")
}

// TestRewriteAtOnce: many who rewrite at once go one after the other, and what each wrote is in the text.
func TestRewriteAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.json")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	var all sync.WaitGroup
	var mu sync.Mutex
	var done []string
	for i := range 8 {
		all.Go(func() {
			line := fmt.Sprintf("line %d\n", i)
			if _, err := connect.RewriteFile(path, func(text []byte) ([]byte, error) { return append(text, line...), nil }); err == nil {
				mu.Lock()
				defer mu.Unlock()
				done = append(done, line)
			}
		})
	}
	all.Wait()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Len(t, done, 8)
	for _, line := range done {
		require.True(t, bytes.Contains(text, []byte(line)), "%q of %q", line, text)
	}
}
