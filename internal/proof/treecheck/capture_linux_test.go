package treecheck_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/proof/treecheck"
)

func TestCaptureOrder(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.MkdirAll("a/b", 0o700))
	long := strings.Repeat("n", 255)
	names := []string{"a-b", "a\nb", "\xff\xfe", "b", long}
	for _, name := range names {
		write(t, name, "")
	}
	write(t, "a/\n", "")
	var paths []string
	for _, e := range capture(t, dir).Entries {
		paths = append(paths, e.Path)
	}
	require.Equal(t, []string{".", "a", "a/\n", "a/b", "a\nb", "a-b", "b", long, "\xff\xfe"}, paths)
}

// TestCaptureManyLinks also compares groups of many names in time: each pair of
// groups only once.
func TestCaptureManyLinks(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, "a", "x")
	for n := range 2000 {
		require.NoError(t, os.Link("a", "b"+strconv.Itoa(n)))
	}
	before := capture(t, dir)
	require.Len(t, before.Entries[1].Links.Paths, 2001)
	require.Equal(t, uint64(2001), before.Entries[1].Links.Count)
	restore := times(t, ".")
	require.NoError(t, os.Remove("b1999"))
	restore()
	found := treecheck.Compare(before, capture(t, dir))
	require.Len(t, found, 2001)
	require.Equal(t, treecheck.Links, found[0].Field)
	require.Contains(t, found[0].Want, "and 1985 more")
}

// TestCaptureDeep goes further down than PATH_MAX and than the directories that
// Capture holds open.
func TestCaptureDeep(t *testing.T) {
	const depth = 1000
	dir := t.TempDir()
	name := strings.Repeat("d", 50)
	fds := []int{open(t, unix.AT_FDCWD, dir)}
	t.Cleanup(func() {
		for i := len(fds) - 1; i > 0; i-- {
			_ = unix.Unlinkat(fds[i], "file", 0)
			_ = unix.Close(fds[i])
			require.NoError(t, unix.Unlinkat(fds[i-1], name, unix.AT_REMOVEDIR))
		}
		_ = unix.Close(fds[0])
	})
	for range depth {
		last := fds[len(fds)-1]
		require.NoError(t, unix.Mkdirat(last, name, 0o700))
		fds = append(fds, open(t, last, name))
	}
	file, err := unix.Openat(fds[depth], "file", unix.O_CREAT|unix.O_WRONLY, 0o600)
	require.NoError(t, err)
	before := capture(t, dir)
	require.Len(t, before.Entries, depth+2)
	require.Len(t, before.Entries[depth+1].Path, depth*51+len("file"))

	_, err = unix.Write(file, []byte("x"))
	require.NoError(t, err)
	require.NoError(t, unix.Close(file))
	var fields []treecheck.Field
	for _, d := range treecheck.Compare(before, capture(t, dir)) {
		require.Equal(t, before.Entries[depth+1].Path, d.Path)
		fields = append(fields, d.Field)
	}
	require.Contains(t, fields, treecheck.Content)
}

func open(t *testing.T, dir int, name string) int {
	t.Helper()
	fd, err := unix.Openat(dir, name, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	return fd
}

// TestCaptureHugeSparseFile has Capture read one block of 10 GiB.
func TestCaptureHugeSparseFile(t *testing.T) {
	if !abilities(t).holes {
		t.Skip("this file system has no holes")
	}
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "huge"))
	require.NoError(t, err)
	defer file.Close()
	const size = 10 << 30
	if err := file.Truncate(size); err != nil {
		t.Skipf("this file system has no file of 10 GiB: %v", err)
	}
	_, err = file.WriteAt([]byte("x"), size/2)
	require.NoError(t, err)
	before := capture(t, dir)
	require.Equal(t, int64(size), before.Entries[1].Size)
	require.Less(t, before.Entries[1].Data, int64(1<<20))
	restore := times(t, file.Name())
	_, err = file.WriteAt([]byte("y"), size/2)
	require.NoError(t, err)
	restore()
	require.Equal(t, one("huge", treecheck.Content), short(treecheck.Compare(before, capture(t, dir))))
}

func TestCaptureSays(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, "file", "")
	require.NoError(t, os.Symlink(".", "link"))
	for name, want := range map[string]string{
		"none": `treecheck: open ".": no such file or directory`,
		"file": `treecheck: "file": has the type regular; name a directory`,
		"link": `treecheck: "link": has the type symlink; name a directory`,
	} {
		_, err := treecheck.Capture(name)
		require.EqualError(t, err, want)
	}
}

const asUser = "TREECHECK_AS_USER"

// TestCaptureAsUser requires that a user gets an error for what this user cannot
// read. As root, the test runs itself again as another user.
func TestCaptureAsUser(t *testing.T) {
	if dir := os.Getenv(asUser); dir != "" {
		_, err := treecheck.Capture(dir)
		if err != nil {
			t.Log("said: " + err.Error())
		}
		return
	}
	for name, tt := range map[string]struct {
		path string
		mode uint32
		want string
	}{
		"file":                       {"d/file", 0, `treecheck: read "d/file": permission denied`},
		"directory":                  {"d", 0, `treecheck: list "d": permission denied`},
		"directory without reading":  {"d", 0o300, `treecheck: list "d": permission denied`},
		"directory without entering": {"d", 0o600, `treecheck: open "d/file": permission denied`},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("/tmp", "treecheck") // where another user may enter
			require.NoError(t, err)
			d := filepath.Join(dir, "d")
			t.Cleanup(func() {
				_ = os.Chmod(d, 0o700)
				require.NoError(t, os.RemoveAll(dir))
			})
			require.NoError(t, os.Mkdir(d, 0o700))
			write(t, filepath.Join(d, "file"), "x")
			require.NoError(t, unix.Chmod(filepath.Join(dir, tt.path), tt.mode))
			require.Equal(t, tt.want, captureAsUser(t, dir))
		})
	}
}

// captureAsUser returns the error of Capture for a user who is not root.
func captureAsUser(t *testing.T, dir string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		_, err := treecheck.Capture(dir)
		require.Error(t, err)
		return err.Error()
	}
	require.NoError(t, filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(p, 65534, 65534)
		}
		return err
	}))
	// The other user may not enter the folder of the test binary, but may execute an open file.
	file, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer file.Close()
	cmd := exec.Command("/proc/self/fd/3", "-test.run=^TestCaptureAsUser$", "-test.v")
	cmd.ExtraFiles, cmd.Dir, cmd.Env = []*os.File{file}, "/", append(os.Environ(), asUser+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("the test cannot run as another user: %v %s", err, out)
	}
	_, said, found := bytes.Cut(out, []byte("said: "))
	require.True(t, found, "%s", out)
	line, _, _ := bytes.Cut(said, []byte("\n"))
	return string(line)
}
