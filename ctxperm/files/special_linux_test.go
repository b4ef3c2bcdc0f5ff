package files_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func makeFIFO(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, unix.Mkfifo(path, 0o600))
}

func setXattr(t *testing.T, path, key, value string) {
	t.Helper()
	require.NoError(t, unix.Setxattr(path, key, []byte(value), 0))
}

func xattrs(t *testing.T, path string) map[string]string {
	t.Helper()
	out := map[string]string{}
	buf := make([]byte, 4096)
	n, err := unix.Llistxattr(path, buf)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return out
	}
	require.NoError(t, err)
	for key := range strings.SplitSeq(string(buf[:n]), "\x00") {
		if strings.HasPrefix(key, "user.") {
			value := make([]byte, 4096)
			n, err := unix.Lgetxattr(path, key, value)
			require.NoError(t, err)
			out[key] = string(value[:n])
		}
	}
	return out
}
