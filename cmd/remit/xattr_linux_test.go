package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func setTestXattr(t *testing.T, path, key, value string) {
	require.NoError(t, unix.Lsetxattr(path, key, []byte(value), 0))
}

func testXattrs(t *testing.T, path string) string {
	buf := make([]byte, 1024)
	n, err := unix.Lgetxattr(path, "user.about", buf)
	if err != nil {
		require.ErrorIs(t, err, unix.ENODATA)
		return ""
	}
	return fmt.Sprintf(" about %q", buf[:n])
}
