package process

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestScratchFolder checks that only this user can write to the scratch folder.
// A folder that another user could have prepared is refused, and so is one that
// cannot be made.
func TestScratchFolder(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare func(dir string) error
		want    string
	}{
		"made":               {func(string) error { return nil }, ""},
		"there":              {func(dir string) error { return os.Mkdir(dir, 0o700) }, ""},
		"a file":             {func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, "not a directory"},
		"below a file":       {func(dir string) error { return os.WriteFile(filepath.Dir(dir)+"/up", nil, 0o600) }, "not a directory"},
		"a link":             {func(dir string) error { return os.Symlink(os.TempDir(), dir) }, "only this user may write in it"},
		"open to all":        {func(dir string) error { return os.Mkdir(dir, 0o777) }, "only this user may write in it"},
		"no lock":            {func(dir string) error { return os.MkdirAll(dir+"/remit-runs.lock", 0o700) }, "is a directory"},
		"may not be written": {func(dir string) error { return os.Mkdir(dir, 0o500) }, "permission denied"},
		"no room for a run": {func(dir string) error {
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
			return os.WriteFile(dir+"/remit-runs.lock", nil, 0o600)
		}, "permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(folder(t, "home"), "scratch")
			asUser(t, func() {
				defer unix.Umask(unix.Umask(0)) // removes no bits
				require.NoError(t, tt.prepare(dir))
			})
			switch name {
			case "below a file":
				dir = filepath.Dir(dir) + "/up/scratch"
			case "no room for a run":
				require.NoError(t, os.Chmod(dir, 0o500))
			}
			d, err := New(Config{Scratch: dir})
			require.NoError(t, err)
			asUser(t, func() {
				s, err := d.newScratch()
				if tt.want != "" {
					require.ErrorContains(t, err, tt.want)
					return
				}
				require.NoError(t, err)
				part, err := s.part(3)
				require.NoError(t, err)
				require.DirExists(t, part)
				s.close()
				require.NoDirExists(t, part)
				require.NoDirExists(t, s.dir)
			})
		})
	}
	require.ErrorIs(t, private(filepath.Join(t.TempDir(), "none")), os.ErrNotExist)
	if os.Getuid() == 0 {
		theirs := folder(t, "theirs")
		require.NoError(t, os.Chmod(theirs, 0o700))
		require.ErrorContains(t, private(theirs), "must belong to this user")
	}
}

// TestLeftoversAreCleared checks that a driver removes the folders of dead
// processes. It keeps those that another process uses, and folders that are not
// its own.
func TestLeftoversAreCleared(t *testing.T) {
	dir := folder(t, "scratch")
	asUser(t, func() {
		require.NoError(t, os.Chmod(dir, 0o700))
		for _, name := range []string{"remit-run-dead/0/d", "remit-run-alive/0", "other/0", "remit-run-shut"} {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
		}
		require.NoError(t, os.WriteFile(dir+"/remit-run-file", nil, 0o600))
		require.NoError(t, os.Chmod(dir+"/remit-run-dead/0", 0))
		require.NoError(t, os.Chmod(dir+"/remit-run-shut", 0))
		alive, err := os.Open(dir + "/remit-run-alive")
		require.NoError(t, err)
		require.NoError(t, lock(alive, true))
		d, err := New(Config{Scratch: dir})
		require.NoError(t, err)
		s, err := d.newScratch()
		require.NoError(t, err)
		require.NoDirExists(t, dir+"/remit-run-dead")
		for _, name := range []string{"remit-run-alive/0", "other/0", "remit-run-shut"} {
			require.DirExists(t, filepath.Join(dir, name))
		}
		require.FileExists(t, dir+"/remit-run-file")
		require.NoError(t, alive.Close())
		s.close()
		d.clear() // at another time
		require.NoDirExists(t, dir+"/remit-run-alive")
		require.NoError(t, os.RemoveAll(dir))
		d.clear() // has nothing to remove
	})
	var none *scratch
	none.close()
}

// TestNoMoreDescriptors checks that no pipe stays open if one of them cannot be
// created.
func TestNoMoreDescriptors(t *testing.T) {
	var was unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	probe, err := os.Open(os.DevNull)
	require.NoError(t, err)
	next := uint64(probe.Fd())
	require.NoError(t, probe.Close())
	few := unix.Rlimit{Cur: next + 4, Max: was.Max}
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	_, err = newPipes(true) // takes six
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was))
	require.ErrorIs(t, err, unix.EMFILE)
	p, err := newPipes(true)
	require.NoError(t, err)
	require.LessOrEqual(t, uint64(p.out.Fd()), next+1, "those that were had before are closed")
	p.started()
	p.close()
}
