package disk_test

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/disk"
)

func TestCheckPathAccepts(t *testing.T) {
	for _, name := range []string{"a", "a/b", "...", "..a", "a..", ".hidden", "a b", "é/ü", "-rf", "a/.b/c", "~", "\xff", "a/\xc3\x28"} {
		require.NoError(t, disk.CheckPath(name), name)
	}
}

func TestCheckPathRefuses(t *testing.T) {
	for _, name := range []string{"", ".", "..", "/", "/a", "a/", "a/b/", "a//b", "./a", "a/.", "../a", "a/..", "a/../b", "\x00", "a\x00"} {
		require.ErrorIs(t, disk.CheckPath(name), disk.ErrPath, name)
	}
}

func FuzzPath(f *testing.F) {
	for _, seed := range []string{"a/b", "../x", "/", "a/./b", "a\x00", `a\b`, "C:a", "é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if disk.CheckPath(name) != nil {
			return
		}
		require.Equal(t, path.Clean(name), name)
		require.False(t, path.IsAbs(name))
		require.NotContains(t, name, "\x00")
		for element := range strings.SplitSeq(name, "/") {
			require.NotContains(t, []string{"", ".", ".."}, element)
		}
	})
}
