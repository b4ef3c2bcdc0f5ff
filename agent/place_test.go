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
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/files"
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
	r, err := m.Host.OpenRoot(dir)
	return &mountedRoot{r, m.as}, err
}

func (m *mountedRoot) Identity() disk.Identity { return m.as(m.Root.Identity()) }

// TestFolderOfTheRecord takes a write back after the folder's device has another
// number, as after a restart of the system, and refuses to in another folder: one with
// the number of the first, and one that looks like it, such as a snapshot.
func TestFolderOfTheRecord(t *testing.T) {
	ctx := context.Background()
	known := func(id disk.Identity) disk.Identity { id.Born = 7; return id }
	for _, tc := range []struct {
		name      string
		then, now func(disk.Identity) disk.Identity
		elsewhere bool
		same      bool
	}{
		{"nothing happened", known, known, false, true},
		{"another device", known, func(id disk.Identity) disk.Identity { id.Device++; id.Born = 7; return id }, false, true},
		{"another device, and nobody knows when it was born", func(id disk.Identity) disk.Identity { id.Born = 0; return id }, func(id disk.Identity) disk.Identity { id.Device++; return id }, false, false},
		{"another folder with its number", known, func(id disk.Identity) disk.Identity { id.Born = 8; return id }, false, false},
		{"another folder", known, func(id disk.Identity) disk.Identity { id.Inode++; id.Born = 7; return id }, false, false},
		{"a snapshot elsewhere", known, func(id disk.Identity) disk.Identity { id.Device++; id.Born = 7; return id }, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, state := t.TempDir(), t.TempDir()
			open := func() journal.Journal {
				j, err := sqlite.Open(ctx, state)
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, j.Close()) })
				return j
			}
			first := newRuntime(t, agent.Tools(files.Tools()...), agent.Root("workspace", dir), agent.Journal(open()), agent.On(mounted{hosttest.New(1), tc.then}))
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
			again := newRuntime(t, agent.Root("workspace", place), agent.Journal(open()), agent.On(mounted{hosttest.New(2), tc.now}))
			rep, err := again.Revert(ctx, id)
			if tc.same {
				require.NoError(t, err)
				require.NoFileExists(t, filepath.Join(place, "a.txt"))
				return
			}
			require.ErrorIs(t, err, agent.ErrPartial)
			require.Contains(t, rep.NotUndone()[0].Why, `root "workspace" is not open here`)
			require.FileExists(t, filepath.Join(place, "a.txt"))
		})
	}
}
