package process

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/sandbox"
)

// TestCopyInstead checks that a program gets a copy of a root that has no
// overlay. If the sandbox cannot mount it over the root, the program starts in
// the copy. If neither works, the run fails.
func TestCopyInstead(t *testing.T) {
	root := folder(t, "root")
	write(t, root+"/d/f", "x")
	none := sandbox.NoOverlayError{Root: root, Why: "it is a test"}
	d, err := New(Config{Scratch: filepath.Join(t.TempDir(), "scratch")})
	require.NoError(t, err)
	h := &runHandle{driver: d}
	spec := sandbox.Spec{Dir: root + "/d", Roots: []sandbox.Root{
		{Dir: root + "x", View: sandbox.Overlay}, {Dir: root, View: sandbox.Overlay, Dev: 1, Ino: 2, Upper: "/u", Masked: []string{"no"}},
	}}
	require.NoError(t, h.copyInstead(t.Context(), &spec, none))
	bare := h.copies[root].dir
	require.Equal(t, sandbox.Root{Dir: root, View: sandbox.Direct, Dev: 1, Ino: 2, Upper: bare}, spec.Roots[1])
	require.FileExists(t, bare+"/d/f")
	require.Equal(t, root+"/d", spec.Dir)

	require.NoError(t, h.copyInstead(t.Context(), &spec, none))
	require.Equal(t, sandbox.Root{Dir: bare, View: sandbox.Direct}, spec.Roots[1])
	require.Equal(t, bare+"/d", spec.Dir)
	require.Equal(t, root+"x", spec.Roots[0].Dir)

	require.ErrorIs(t, h.copyInstead(t.Context(), &spec, sandbox.NoOverlayError{Root: bare}), sandbox.NoOverlayError{Root: bare}, "there is no third way")
	require.ErrorIs(t, h.copyInstead(t.Context(), &spec, sandbox.NoOverlayError{Root: "/other"}), sandbox.NoOverlayError{Root: "/other"})

	// The next run gets the same copy, a concurrent one another.
	first := h.copies[root]
	h.close()
	again, err := d.takeCopy(root)
	require.NoError(t, err)
	require.Same(t, first, again)
	beside, err := d.takeCopy(root)
	require.NoError(t, err)
	require.NotEqual(t, first.dir, beside.dir)
	d.returnCopy(again)
	d.returnCopy(beside)
	require.NoError(t, d.Close())
	require.NoDirExists(t, first.dir)
	require.NoDirExists(t, beside.dir)
}

// TestNoCopy checks that a run whose copy cannot be made does not start.
func TestNoCopy(t *testing.T) {
	root := folder(t, "root")
	scratch := filepath.Join(t.TempDir(), "scratch")
	d, err := New(Config{Scratch: scratch, UseCopies: true})
	require.NoError(t, err)
	h := &runHandle{driver: d}
	spec := func() *sandbox.Spec {
		return &sandbox.Spec{Roots: []sandbox.Root{{Dir: "/usr", View: sandbox.Read}, {Dir: root, View: sandbox.Overlay}}}
	}
	require.NoError(t, os.WriteFile(scratch, nil, 0o600))
	require.ErrorContains(t, h.copyKnown(t.Context(), spec()), "the scratch folder "+scratch)
	_, err = h.start(t.Context(), spec(), sandbox.Stdio{})
	require.ErrorContains(t, err, "the scratch folder "+scratch)
	require.ErrorContains(t, h.upper(spec().Roots), "the scratch folder "+scratch)
	require.NoError(t, os.Remove(scratch))
	require.NoError(t, os.RemoveAll(root))
	require.ErrorContains(t, h.copyKnown(t.Context(), spec()), "the copy of root "+root)
	h.close()
	require.NoError(t, d.Close())
}

// TestUnfit checks that an ordinary user's overlay cannot take over files of
// other owners, and the root user's can. The driver checks each folder once.
func TestUnfit(t *testing.T) {
	d, err := New(Config{})
	require.NoError(t, err)
	own, theirs := folder(t, "own"), "/usr/bin"
	if os.Getuid() == 0 {
		theirs = folder(t, "theirs")
		require.NoError(t, os.Chown(own, 0, 0)) // the process itself always runs as root
		why, err := d.unfit(t.Context(), "/none")
		require.NoError(t, err)
		require.Empty(t, why)
	}
	asUser(t, func() {
		for dir, want := range map[string]string{theirs: " has another owner", own: ""} {
			for range 2 {
				why, err := d.unfit(t.Context(), dir)
				require.NoError(t, err)
				require.Equal(t, want == "", why == "", why)
				require.Contains(t, why, want)
				require.Contains(t, d.foreign, dir)
			}
		}
		_, err := d.unfit(t.Context(), "/none")
		require.ErrorIs(t, err, os.ErrNotExist)
		require.NotContains(t, d.foreign, "/none")
	})
}

// TestUnknownChangesAreDropped checks that nothing is applied if the changes
// of a program cannot be determined.
func TestUnknownChangesAreDropped(t *testing.T) {
	s := newSnapshot(t)
	write(t, s.root+"/f", "x")
	require.NoError(t, s.refreshed(t))
	require.NoError(t, os.RemoveAll(s.dir))
	h := &runHandle{view: view{names: map[string]string{s.root: "workspace"}}, copies: map[string]*rootCopy{s.root: s}}
	require.ErrorContains(t, h.collect(&Result{}), "what the program wrote in root workspace cannot be told, and is dropped")
	require.Nil(t, h.wrote)
	require.NoError(t, h.Prepare(t.Context()), "there is nothing to prepare")
	require.Nil(t, h.batch)
}

// TestCopiesAreExclusive runs concurrent takes and returns of copies. No two
// runs ever have the same copy.
func TestCopiesAreExclusive(t *testing.T) {
	root := folder(t, "root")
	d, err := New(Config{Scratch: filepath.Join(t.TempDir(), "scratch")})
	require.NoError(t, err)
	var taken sync.Map
	failed := make(chan error, 4)
	var runs sync.WaitGroup
	for range 4 {
		runs.Go(func() {
			for range 5000 {
				s, err := d.takeCopy(root)
				if err != nil {
					failed <- err
					return
				}
				if _, twice := taken.LoadOrStore(s, true); twice {
					failed <- errors.New("a copy that somebody else has")
					return
				}
				taken.Delete(s)
				d.returnCopy(s)
			}
		})
	}
	runs.Wait()
	close(failed)
	for err := range failed {
		require.NoError(t, err)
	}
	require.NoError(t, d.Close())
}
