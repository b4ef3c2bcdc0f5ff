//go:build !portable

package lineage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProcessFiles checks that the kernel's files are parsed exactly, and that
// anything else is an error.
func TestProcessFiles(t *testing.T) {
	_, err := link(1 << 30)
	require.ErrorIs(t, err, fs.ErrNotExist)
	for _, text := range []string{"", "Name:\tx\n", "Uid:\tx\n", "Uid:\t1\nSigIgn:\tx\n", "Uid:\n"} {
		_, _, err := ofStatus(text)
		require.Error(t, err, text)
	}
	uid, jobs, err := ofStatus("Uid:\t7\t8\nSigIgn:\t0000000000280000\n")
	require.NoError(t, err)
	require.Equal(t, 7, uid)
	require.True(t, jobs)

	fake := filepath.Join(t.TempDir(), "stat")
	require.NoError(t, os.WriteFile(fake, []byte("1 (init) S 0"), 0o600))
	_, err = read(fake)
	require.ErrorContains(t, err, "not the kernel's")
	_, err = read(fake + "s")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestHiddenParent checks that a parent that this user may not see ends the
// chain, and that one that ended during the read does not.
func TestHiddenParent(t *testing.T) {
	own, err := link(os.Getpid())
	require.NoError(t, err)
	c := Chain{Links: []Link{own}}
	require.True(t, c.hidden(own.Parent, fs.ErrNotExist))
	require.False(t, c.hidden(own.Parent, errors.New("another error")))
	require.False(t, c.hidden(own.PID, fs.ErrNotExist), "another parent")
	require.False(t, Chain{}.hidden(own.Parent, fs.ErrNotExist))
	c.Links[0].Start++ // another process has the number of the child
	require.False(t, c.hidden(own.Parent, fs.ErrNotExist))
}

// TestChainsWithoutATop uses an asking process whose user's first process is
// above it, and a chain without visible parents.
func TestChainsWithoutATop(t *testing.T) {
	lone := Chain{Boot: "b", Links: []Link{{Process: Process{PID: 5, Start: 9}, Parent: 1}}}
	require.True(t, lone.AskingProcess().Loose)
	require.Contains(t, lone.AskingProcess().Bars(lone), "which asked")
	login := Chain{Boot: "b", Links: []Link{{Process: Process{PID: 7, Start: 10}, Parent: 6}, {Process: Process{PID: 6, Start: 3}, UID: 1}}}
	require.Empty(t, lone.AskingProcess().Bars(login))
	require.Empty(t, lone.AskingProcess().Bars(Chain{Boot: "b", Links: []Link{{Process: Process{PID: 1, Start: 1}}}}), "the first process itself")
}
