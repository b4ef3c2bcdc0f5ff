package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// mounted is a host on which folders have another identity: what a restart or a mount
// makes of the number of a device, and time of a folder.
type mounted struct {
	host.Host
	as func(disk.Identity) disk.Identity
}

type mountedRoot struct {
	disk.Root
	as func(disk.Identity) disk.Identity
}

func (m mounted) OpenRoot(dir string) (disk.Root, error) {
	r, err := host.OpenRoot(m.Host, dir)
	return &mountedRoot{r, m.as}, err
}

func (m *mountedRoot) Identity() disk.Identity { return m.as(m.Root.Identity()) }

// TestFolderOfTheRecord takes a write back after the folder's device has another
// number, as after a restart of the system, and refuses to in another folder: one with
// the number of the first, and one that looks like it, such as a snapshot.
func TestFolderOfTheRecord(t *testing.T) {
	ctx := context.Background()
	known := func(id disk.Identity) disk.Identity { id.Created = 7; return id }
	for _, tc := range []struct {
		name      string
		then, now func(disk.Identity) disk.Identity
		elsewhere bool
		same      bool
	}{
		{"nothing happened", known, known, false, true},
		{"another device", known, func(id disk.Identity) disk.Identity { id.Device++; id.Created = 7; return id }, false, true},
		{"another device, and nobody knows when it was born", func(id disk.Identity) disk.Identity { id.Created = 0; return id }, func(id disk.Identity) disk.Identity { id.Device++; return id }, false, false},
		{"another folder with its number", known, func(id disk.Identity) disk.Identity { id.Created = 8; return id }, false, false},
		{"another folder", known, func(id disk.Identity) disk.Identity { id.Inode++; id.Created = 7; return id }, false, false},
		{"a snapshot elsewhere", known, func(id disk.Identity) disk.Identity { id.Device++; id.Created = 7; return id }, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, state := t.TempDir(), t.TempDir()
			open := func() journal.Journal {
				j, err := sqlite.Open(ctx, state)
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, j.Close()) })
				return j
			}
			first := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Journal(open()), agent.Host(mounted{hosttest.New(1), tc.then}))
			id, err := newSession(t, first).Update(ctx, func(tx *agent.Txn) error {
				_, err := tx.Invoke(ctx, "file_write", tool.Args{"path": "a.txt", "content": "hi"})
				return err
			})
			require.NoError(t, err)

			place := dir
			if tc.elsewhere {
				place = t.TempDir()
				require.NoError(t, os.Rename(dir, filepath.Join(place, "moved")))
				place = filepath.Join(place, "moved")
			}
			again := newRuntime(t, agent.Root("workspace", place), agent.Journal(open()), agent.Host(mounted{hosttest.New(2), tc.now}))
			rep, err := again.Revert(ctx, id, revert.Options{})
			if tc.same {
				require.NoError(t, err)
				require.NoFileExists(t, filepath.Join(place, "a.txt"))
				return
			}
			var lost *agent.RootError
			require.ErrorAs(t, err, &lost)
			require.Empty(t, rep.Txn)
			require.Equal(t, "workspace", lost.Roots[0].Name)
			after, err := revert.Load(ctx, again.Journal(), id)
			require.NoError(t, err)
			require.Equal(t, revert.TxnCommitted, after.State(), "nothing was written")
			require.FileExists(t, filepath.Join(place, "a.txt"))
		})
	}
}

// TestFolderThatSomebodyNames reverts calls in a copy of the folder that the record
// names: only where MovedRoot says so, also while the recorded folder is still there,
// and only what has the content that the call left.
func TestFolderThatSomebodyNames(t *testing.T) {
	ctx := context.Background()
	dir, state, copied := t.TempDir(), t.TempDir(), t.TempDir()
	open := func() journal.Journal {
		j, err := sqlite.Open(ctx, state)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, j.Close()) })
		return j
	}
	first := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Journal(open()))
	id, err := newSession(t, first).Update(ctx, func(tx *agent.Txn) error {
		for _, name := range []string{"a.txt", "b.txt"} {
			if _, err := tx.Invoke(ctx, "file_write", tool.Args{"path": name, "content": "hi"}); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(filepath.Join(copied, "ws"), os.DirFS(dir)))
	copied = filepath.Join(copied, "ws")
	require.NoError(t, os.WriteFile(filepath.Join(copied, "b.txt"), []byte("mine"), 0o600))

	again := newRuntime(t, agent.MovedRoot("workspace", copied), agent.Journal(open()))
	named := []revert.NamedRoot{{Root: "workspace", Path: copied, Was: dir}}
	rep, err := again.Preview(ctx, id, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, named, rep.Named)
	d, err := again.Diff(ctx, id)
	require.NoError(t, err)
	require.Len(t, d.Deltas, 2)
	rep, err = again.Revert(ctx, id, revert.Options{})
	require.ErrorIs(t, err, agent.ErrPartialRevert)
	require.Equal(t, named, rep.Named)
	require.Equal(t, "file://workspace/b.txt", rep.NotReverted()[0].Resource)
	require.Equal(t, effect.Conflict, rep.NotReverted()[0].Outcome)
	require.NoFileExists(t, filepath.Join(copied, "a.txt"))
	require.FileExists(t, filepath.Join(dir, "a.txt"), "the recorded folder, which nobody named")
	rep, err = again.Redo(ctx, id, "me")
	require.NoError(t, err)
	require.Equal(t, named, rep.Named)
	require.FileExists(t, filepath.Join(copied, "a.txt"))

	// Without the word the recorded folder counts, and is not named.
	plain := newRuntime(t, agent.Root("workspace", copied), agent.Journal(open()))
	rep, err = plain.Revert(ctx, id, revert.Options{})
	require.NoError(t, err)
	require.Empty(t, rep.Named)
	require.NoFileExists(t, filepath.Join(dir, "a.txt"))
	require.FileExists(t, filepath.Join(copied, "a.txt"))

	// A root of that name at its recorded place needs no word.
	same := newRuntime(t, agent.MovedRoot("workspace", dir), agent.Journal(open()))
	rep, err = same.Redo(ctx, id, "me")
	require.NoError(t, err)
	require.Empty(t, rep.Named)
	require.FileExists(t, filepath.Join(dir, "b.txt"))
}

// TestRecoverInTheNamedFolder: calls that a dead process left in flight are settled in the
// folder that MovedRoot names, where the recorded one is gone.
func TestRecoverInTheNamedFolder(t *testing.T) {
	ctx := context.Background()
	dir, state, copied := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "ws")
	j, err := sqlite.Open(ctx, state)
	require.NoError(t, err)
	first := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Journal(j))
	tx, err := newSession(t, first).Begin(ctx)
	require.NoError(t, err)
	_, err = tx.Invoke(ctx, "file_write", tool.Args{"path": "a.txt", "content": "hi"})
	require.NoError(t, err)
	require.NoError(t, j.Close())
	require.NoError(t, os.CopyFS(copied, os.DirFS(dir)))
	require.NoError(t, os.RemoveAll(dir))

	j, err = sqlite.Open(ctx, state)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	again := newRuntime(t, agent.MovedRoot("workspace", copied), agent.Journal(j), agent.OnAbandoned(agent.RevertAbandoned))
	rec, err := again.Recover(ctx)
	require.NoError(t, err)
	require.Len(t, rec.Reverted, 1)
	require.NotEmpty(t, rec.Reverted[0].Named)
	require.NoFileExists(t, filepath.Join(copied, "a.txt"))
}

// TestCopiedState reverts calls with a copy of the state folder: only where a folder is
// named, also if that is the recorded one.
func TestCopiedState(t *testing.T) {
	ctx := context.Background()
	dir, state, copied := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "state")
	open := func(state string) *sqlite.Journal {
		j, err := sqlite.Open(ctx, state)
		require.NoError(t, err)
		return j
	}
	j := open(state)
	first := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Journal(j))
	id, err := newSession(t, first).Update(ctx, func(tx *agent.Txn) error {
		_, err := tx.Invoke(ctx, "file_write", tool.Args{"path": "a.txt", "content": "hi"})
		return err
	})
	require.NoError(t, err)
	require.NoError(t, j.Close())
	require.NoError(t, os.CopyFS(copied, os.DirFS(state)))
	require.NoError(t, os.Chmod(copied, 0o700))
	j = open(copied)
	t.Cleanup(func() { require.NoError(t, j.Close()) })

	again := newRuntime(t, agent.Journal(j))
	var lost *agent.RootError
	_, err = again.Revert(ctx, id, revert.Options{})
	require.ErrorAs(t, err, &lost)
	require.ErrorIs(t, err, revert.ErrOtherFolder)
	require.Equal(t, dir, lost.Roots[0].Path)
	real, err := filepath.EvalSymlinks(state)
	require.NoError(t, err)
	require.Equal(t, real, lost.State.Path)
	_, err = again.ResumeTxn(ctx, id)
	require.ErrorAs(t, err, &lost)
	_, err = again.Preview(ctx, id, revert.Options{})
	require.ErrorAs(t, err, &lost)
	require.FileExists(t, filepath.Join(dir, "a.txt"))

	rep, err := newRuntime(t, agent.Root("workspace", dir), agent.Journal(j)).Revert(ctx, id, revert.Options{})
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.NoFileExists(t, filepath.Join(dir, "a.txt"))
}
