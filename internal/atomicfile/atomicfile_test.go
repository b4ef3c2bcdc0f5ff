package atomicfile_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/atomicfile"
)

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	for _, text := range []string{"one", "", "three"} {
		require.NoError(t, atomicfile.Replace(path, []byte(text)))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
		if info, err := os.Stat(path); runtime.GOOS != "windows" {
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode())
		}
	}
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1, "no draft is left")
}

// TestReplaceFails checks that a folder in place of the file or of the
// temporary file stays unchanged.
func TestReplaceFails(t *testing.T) {
	dir := t.TempDir()
	require.Error(t, atomicfile.Replace(filepath.Join(dir, "no", "such"), []byte("x")))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "folder", "full"), 0o700))
	require.Error(t, atomicfile.Replace(filepath.Join(dir, "folder"), []byte("x")))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "no draft is left")
}

// TestReadersSeeWholeFiles checks that a concurrent reader sees one complete
// content.
func TestReadersSeeWholeFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	content := func(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%d", i), 10_000) }
	require.NoError(t, atomicfile.Replace(path, content(0)))
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for range 20 {
				if err := atomicfile.Replace(path, content(i)); err != nil && runtime.GOOS != "windows" {
					panic(err)
				}
			}
		})
	}
	for range 200 {
		got, err := os.ReadFile(path)
		if err == nil || runtime.GOOS != "windows" {
			require.NoError(t, err)
			require.Equal(t, bytes.Repeat(got[:1], 10_000), got)
		}
	}
	writers.Wait()
}
