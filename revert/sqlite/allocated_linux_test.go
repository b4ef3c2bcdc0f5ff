package sqlite_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// allocated returns how many bytes a file occupies on the disk.
func allocated(t *testing.T, path string) int64 {
	t.Helper()
	var is syscall.Stat_t
	require.NoError(t, syscall.Stat(path, &is))
	return is.Blocks * 512
}
