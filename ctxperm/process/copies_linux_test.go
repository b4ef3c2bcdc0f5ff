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

// TestCopyInstead: where there is no overlay of a root, a copy is shown in its place, and
// where nothing can be shown in the place of something else, the program is started in the
// copy. What is not to be had either way is an error, and no run.
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

	// The next run has the same copy, one beside it another.
	first := h.copies[root]
	h.close()
	again, err := d.borrow(root)
	require.NoError(t, err)
	require.Same(t, first, again)
	beside, err := d.borrow(root)
	require.NoError(t, err)
	require.NotEqual(t, first.dir, beside.dir)
	d.giveBack(again)
	d.giveBack(beside)
	require.NoError(t, d.Close())
	require.NoDirExists(t, first.dir)
	require.NoDirExists(t, beside.dir)
}

// TestNoCopy: a run whose copy cannot be made does not begin.
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

// TestUnfit: an ordinary user's overlay cannot take over files of others; the root user's
// can. It is looked for once for each folder.
func TestUnfit(t *testing.T) {
	d, err := New(Config{})
	require.NoError(t, err)
	own, theirs := folder(t, "own"), "/usr/bin"
	if os.Getuid() == 0 {
		theirs = folder(t, "theirs")
		require.NoError(t, os.Chown(own, 0, 0)) // for the process is the root user's all the time
		why, err := d.unfit(t.Context(), "/none")
		require.NoError(t, err)
		require.Empty(t, why)
	}
	asUser(t, func() {
		for dir, want := range map[string]string{theirs: " belongs to somebody else", own: ""} {
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

// TestWhatCannotBeToldIsDropped: when it cannot be said what a program did, nothing of it
// is there to be applied.
func TestWhatCannotBeToldIsDropped(t *testing.T) {
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

// TestCopiesAreNobodyElses: while some runs give copies back, others take some; nobody ever has one that somebody else has.
func TestCopiesAreNobodyElses(t *testing.T) {
	root := folder(t, "root")
	d, err := New(Config{Scratch: filepath.Join(t.TempDir(), "scratch")})
	require.NoError(t, err)
	var taken sync.Map
	failed := make(chan error, 4)
	var runs sync.WaitGroup
	for range 4 {
		runs.Go(func() {
			for range 5000 {
				s, err := d.borrow(root)
				if err != nil {
					failed <- err
					return
				}
				if _, twice := taken.LoadOrStore(s, true); twice {
					failed <- errors.New("a copy that somebody else has")
					return
				}
				taken.Delete(s)
				d.giveBack(s)
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
