//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWay checks the view of a root, and the reason.
func TestWay(t *testing.T) {
	needStrict(t)
	root := newRoot(t)
	upper, err := os.MkdirTemp(filepath.Dir(root), "upper")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, Discard(upper)) })
	w, err := Probe(context.Background(), "", root, upper)
	require.NoError(t, err)
	require.Equal(t, WriteMode{Protections: Protections{Level: Strict, Landlock: w.Landlock, Moves: w.Moves}, View: Overlay}, w)
	require.Equal(t, os.Getuid() != 0, w.Moves != "", w.Moves) // the root user of a machine mounts overlays itself

	// The folder for written files is a file, so there is no overlay.
	file := filepath.Join(root, "a")
	w, err = Probe(context.Background(), "", root, file)
	require.NoError(t, err)
	require.Equal(t, Direct, w.View)
	require.Contains(t, w.Why, "upper folder")
	require.Equal(t, Strict, w.Level)

	_, err = Probe(context.Background(), "", file, "")
	require.Error(t, err)
	_, err = Probe(context.Background(), "", root+"/none", "")
	require.Error(t, err)
	ctx, cancel := context.WithCancelCause(context.Background())
	gone := errors.New("gone")
	cancel(gone)
	_, err = Probe(ctx, "", root, "")
	require.ErrorIs(t, err, gone)
}

// TestBareWay checks that a root without namespaces is shown as it is, with the
// reason.
func TestBareWay(t *testing.T) {
	bareOnly(t)
	w, err := Probe(context.Background(), "", newRoot(t), "")
	require.NoError(t, err)
	require.Equal(t, Direct, w.View)
	require.Contains(t, w.Why, "without namespaces")
	require.Equal(t, Partial, w.Level)
}

// TestTrapForeignOwner checks files of another owner, or of another group of
// the same user, which an ordinary user's overlay cannot copy up. Foreign finds
// and names one before a program can fail on it.
func TestTrapForeignOwner(t *testing.T) {
	needStrict(t)
	root := newRoot(t)
	name, err := Foreign(context.Background(), root)
	require.NoError(t, err)
	require.Empty(t, name)
	if os.Getuid() != 0 {
		w, err := Probe(context.Background(), "", "/usr/bin", "")
		require.NoError(t, err)
		require.Equal(t, Direct, w.View)
		require.Contains(t, w.Why, ". belongs to")
		return
	}
	// The root user's namespace has every ID, so an overlay copies all files
	// that their bits permit: a program of the root user has no capability.
	require.NoError(t, os.Chmod(filepath.Join(root, "d", "x"), 0o666))
	require.NoError(t, os.Chown(filepath.Join(root, "d", "x"), 4321, 4321))
	name, err = Foreign(context.Background(), root)
	require.NoError(t, err)
	require.Empty(t, name)
	p, out := runIn(t, root, "printf more >> d/x && stat -c %u d/x")
	require.Equal(t, "4321\n", out)
	changes, err := p.Changes(root)
	require.NoError(t, err)
	require.Len(t, changes, 3)
}
