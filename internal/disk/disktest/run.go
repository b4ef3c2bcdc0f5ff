// Package disktest tests implementations of disk.Root. It reaches the files
// through the root alone, so it can test a simulated disk as well as a real
// one.
package disktest

import (
	"io"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/disk"
)

// Run checks the contract of disk.Root. Each call of open returns a new, empty,
// writable root for the test; Run closes it. Operations that disk.Features does
// not promise may return disk.ErrUnsupported.
func Run(t *testing.T, open func(t *testing.T) disk.Root) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(t *testing.T, r disk.Root)
	}{
		{"paths", paths},
		{"closed", closed},
		{"create", create},
		{"open", openTypes},
		{"directories", directories},
		{"links", links},
		{"escapes", escapes},
		{"metadata", metadata},
		{"xattrs", xattrs},
		{"owners", owners},
		{"capabilities", capabilities},
		{"hard links", hardLinks},
		{"remove", remove},
		{"exchange", exchange},
		{"rename", rename},
		{"quiet", quiet},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := open(t)
			t.Cleanup(func() { _ = r.Close() })
			c.run(t, r)
		})
	}
}

// write creates a durable file with a durable name.
func write(t *testing.T, r disk.Root, name, content string) {
	t.Helper()
	f, err := r.Create(name, 0o644)
	require.NoError(t, err)
	_, err = io.WriteString(f, content)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	require.NoError(t, r.SyncDir("."))
}

// read returns the content of a file.
func read(t *testing.T, r disk.Root, name string) string {
	t.Helper()
	f, err := r.Open(name)
	require.NoError(t, err)
	content, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return string(content)
}

// look describes a name that must exist.
func look(t *testing.T, r disk.Root, name string) disk.Info {
	t.Helper()
	info, err := r.Lstat(name)
	require.NoError(t, err)
	return info
}

// absent requires that a name is free.
func absent(t *testing.T, r disk.Root, name string) {
	t.Helper()
	_, err := r.Lstat(name)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// names lists a directory.
func names(t *testing.T, r disk.Root, dir string) []string {
	t.Helper()
	entries, err := r.ReadDir(dir)
	require.NoError(t, err)
	found := []string{}
	for _, entry := range entries {
		found = append(found, entry.Name)
	}
	return found
}
