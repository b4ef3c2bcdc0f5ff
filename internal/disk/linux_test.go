//go:build linux && !portable

package disk_test

import (
	"bufio"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/disk/disktest"
)

func TestRootWithoutOpenat2Conforms(t *testing.T) {
	disktest.Run(t, func(t *testing.T) disk.Root { return openOld(t, t.TempDir()) })
}

func openOld(t *testing.T, dir string) disk.Root {
	t.Helper()
	r, err := disk.OpenRootWithoutOpenat2(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// eachWalker runs a test on both ways to walk.
func eachWalker(t *testing.T, run func(t *testing.T, open func(*testing.T, string) disk.Root)) {
	t.Run("openat2", func(t *testing.T) { run(t, open) })
	t.Run("os.Root", func(t *testing.T) { run(t, openOld) })
}

func TestSpecialFilesAreNeverOpened(t *testing.T) {
	eachWalker(t, func(t *testing.T, open func(*testing.T, string) disk.Root) {
		dir := t.TempDir()
		require.NoError(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
		require.NoError(t, os.Symlink("fifo", filepath.Join(dir, "to-fifo")))
		t.Chdir(dir)
		socket, err := net.Listen("unix", "socket")
		require.NoError(t, err)
		defer func() { _ = socket.Close() }()
		special := []string{"fifo", "to-fifo", "socket"}
		if unix.Mknod(filepath.Join(dir, "null"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) == nil {
			special = append(special, "null")
		}
		r := open(t, dir)
		done := make(chan error, len(special)*2)
		go func() {
			for _, name := range special {
				_, err := r.Open(name)
				done <- err
				_, err = r.Xattrs(name)
				done <- err
			}
		}()
		for _, name := range special {
			require.ErrorIs(t, wait(t, done), disk.ErrType, name)
			require.NoError(t, wait(t, done), name)
		}
		require.ErrorIs(t, r.TryLease("fifo"), disk.ErrType)
		require.ErrorIs(t, r.Chmod("fifo", 0o644), disk.ErrType)
		info, err := r.Lstat("fifo")
		require.NoError(t, err)
		require.Equal(t, disk.TypeOther, info.Type)
	})
}

func wait(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		require.FailNow(t, "the operation hangs")
		return nil
	}
}

func TestLinksOutAreRefused(t *testing.T) {
	eachWalker(t, func(t *testing.T, open func(*testing.T, string) disk.Root) {
		dir, outside := t.TempDir(), t.TempDir()
		secret := filepath.Join(outside, "secret")
		require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
		relative, err := filepath.Rel(dir, secret)
		require.NoError(t, err)
		for name, target := range map[string]string{
			"relative": relative, "absolute": secret, "inward": filepath.Join(dir, "file"), "magic": "/proc/self/root/etc/passwd",
		} {
			require.NoError(t, os.Symlink(target, filepath.Join(dir, name)))
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
		r := open(t, dir)
		for _, name := range []string{"relative", "absolute", "inward", "magic"} {
			_, err := r.Open(name)
			require.ErrorIs(t, err, disk.ErrEscape, name)
			require.ErrorIs(t, r.Chmod(name, 0o777), disk.ErrType, name)
			require.NoError(t, r.SetMtime(name, time.Unix(1, 0)), name)
			_, err = r.Create(name, 0o600)
			require.ErrorIs(t, err, fs.ErrExist, name)
		}
		info, err := os.Stat(secret)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode())
		require.Greater(t, info.ModTime().Unix(), int64(1))
	})
}

func TestMagicLinksOfProcAreRefused(t *testing.T) {
	eachWalker(t, func(t *testing.T, open func(*testing.T, string) disk.Root) {
		r := open(t, "/proc/self")
		for _, name := range []string{"root/etc/passwd", "cwd/root.go", "exe"} {
			_, err := r.Open(name)
			require.ErrorIs(t, err, disk.ErrEscape, name)
		}
	})
}

func TestMountsAreRefused(t *testing.T) {
	r := open(t, "/")
	require.True(t, r.Features().Beneath)
	_, err := r.Open("proc/version")
	require.ErrorIs(t, err, disk.ErrEscape)
	require.ErrorIs(t, r.Chmod("proc", 0o700), disk.ErrEscape)
	_, err = openOld(t, "/").Open("proc/version")
	require.ErrorIs(t, err, disk.ErrEscape)
}

func TestUmaskDoesNotMatter(t *testing.T) {
	eachWalker(t, func(t *testing.T, open func(*testing.T, string) disk.Root) {
		r := open(t, t.TempDir())
		defer unix.Umask(unix.Umask(0o777))
		for _, perm := range []fs.FileMode{0o777, 0o666, 0o640} {
			f, err := r.Create("file", perm)
			require.NoError(t, err)
			require.NoError(t, f.Close())
			require.NoError(t, r.Mkdir("dir", perm))
			for _, name := range []string{"file", "dir"} {
				info, err := r.Lstat(name)
				require.NoError(t, err)
				require.Equal(t, perm, info.Perm)
				require.NoError(t, r.Remove(name))
			}
		}
	})
}

func TestHardLinksAreCounted(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), nil, 0o600))
	require.NoError(t, os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b")))
	info, err := open(t, dir).Lstat("b")
	require.NoError(t, err)
	require.Equal(t, uint64(2), info.Links)
}

func TestSetMtimeLeavesAccessTimeAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Chtimes(path, time.Unix(5, 0), time.Unix(6, 0)))
	require.NoError(t, open(t, dir).SetMtime("file", time.Unix(7, 8)))
	var raw unix.Stat_t
	require.NoError(t, unix.Stat(path, &raw))
	require.Equal(t, unix.Timespec{Sec: 5}, raw.Atim)
	require.Equal(t, unix.Timespec{Sec: 7, Nsec: 8}, raw.Mtim)
}

func TestTryLeaseDetectsAMappedWriter(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	if !r.Features().Lease {
		t.Skip("not promised here")
	}
	file, err := os.Create(filepath.Join(dir, "file"))
	require.NoError(t, err)
	require.NoError(t, file.Truncate(4096))
	memory, err := unix.Mmap(int(file.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	require.ErrorIs(t, r.TryLease("file"), disk.ErrBusy)
	require.NoError(t, unix.Munmap(memory))
	require.NoError(t, r.TryLease("file"))
}

func TestTryLeaseDetectsAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	for _, redirect := range []string{">>file", "<file"} {
		child := exec.Command("sh", "-c", "exec 3"+redirect+"; echo ready; read line")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600))
		child.Dir = dir
		stdin, err := child.StdinPipe()
		require.NoError(t, err)
		stdout, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		_, err = bufio.NewReader(stdout).ReadString('\n')
		require.NoError(t, err)
		if redirect == "<file" {
			require.NoError(t, r.TryLease("file"))
		} else {
			require.ErrorIs(t, r.TryLease("file"), disk.ErrBusy)
		}
		require.NoError(t, stdin.Close())
		_ = child.Wait() // read fails at the end of its input; only its end matters
		require.NoError(t, r.TryLease("file"))
	}
}

func TestNothingLeaksDescriptors(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	before := descriptors(t)
	for range 50 {
		f, err := r.Create("file", 0o600)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		_, err = r.Xattrs("file")
		require.NoError(t, err)
		_, err = r.ReadDir(".")
		require.NoError(t, err)
		_, err = r.Open(".hidden/none")
		require.Error(t, err)
		require.NoError(t, r.TryLease("file"))
		require.NoError(t, r.Mkdir("dir", 0o700))
		require.NoError(t, r.Exchange("dir", "file"))
		require.NoError(t, r.Remove("file"))
		require.NoError(t, r.RenameNoReplace("dir", "file"))
		require.NoError(t, r.Remove("file"))
	}
	require.LessOrEqual(t, descriptors(t), before+2)
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}
