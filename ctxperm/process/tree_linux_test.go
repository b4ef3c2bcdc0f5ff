package process

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// nobody is an ordinary user.
const nobody = 54321

// asUser runs a function as an ordinary user without capabilities, in a
// dedicated thread.
func asUser(t *testing.T, do func()) {
	t.Helper()
	if os.Getuid() != 0 {
		do()
		return
	}
	runtime.LockOSThread()
	become := func(uid, gid uintptr) {
		const same = ^uintptr(0)
		for _, set := range []struct{ call, id uintptr }{{unix.SYS_SETRESUID, 0}, {unix.SYS_SETRESGID, gid}, {unix.SYS_SETRESUID, uid}} {
			if _, _, errno := unix.RawSyscall(set.call, same, set.id, same); errno != 0 {
				panic(errno)
			}
		}
	}
	become(nobody, nobody)
	defer runtime.UnlockOSThread()
	defer become(0, 0)
	do()
}

// folder creates a folder of the ordinary user that the test can remove.
func folder(t *testing.T, name string) string {
	t.Helper()
	base, err := os.MkdirTemp("", "remit-process")
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = filepath.WalkDir(base, func(at string, d fs.DirEntry, _ error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(at, 0o700)
			}
			return nil
		})
		require.NoError(t, os.RemoveAll(base))
	})
	require.NoError(t, os.Chmod(base, 0o755))
	dir := filepath.Join(base, name)
	require.NoError(t, os.Mkdir(dir, 0o755))
	if os.Getuid() == 0 {
		require.NoError(t, os.Chown(dir, nobody, nobody))
		require.NoError(t, os.Chown(base, nobody, nobody))
	}
	return dir
}

// write creates a file of the ordinary user, with its folders.
func write(t *testing.T, path, content string) {
	t.Helper()
	asUser(t, func() {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	})
}

// treeState describes a tree as the current user sees it. Unreadable names are
// shut.
func treeState(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	first := map[uint64]string{}
	var look func(name string)
	look = func(name string) {
		at := filepath.Join(dir, name)
		var is unix.Stat_t
		if err := unix.Lstat(at, &is); errors.Is(err, unix.EACCES) {
			return // can be listed only
		} else {
			require.NoError(t, err)
		}
		line, err := inside(at, is)
		var sub []os.DirEntry
		if err == nil && is.Mode&unix.S_IFMT == unix.S_IFDIR {
			sub, err = os.ReadDir(at)
		}
		if errors.Is(err, fs.ErrPermission) {
			line, err = fmt.Sprintf("shut %o", is.Mode&unix.S_IFMT), nil
		}
		require.NoError(t, err)
		if is.Mode&unix.S_IFMT == unix.S_IFREG && is.Nlink > 1 {
			if first[is.Ino] == "" {
				first[is.Ino] = name
			}
			line += " = " + first[is.Ino]
		}
		all[name] = line
		for _, e := range sub {
			look(filepath.Join(name, e.Name()))
		}
	}
	look(".")
	return all
}

// inside returns the bits, content, time and attributes of one name.
func inside(at string, is unix.Stat_t) (string, error) {
	line := fmt.Sprintf("%o", is.Mode)
	switch is.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		target, err := os.Readlink(at)
		return line + " -> " + target, err
	case unix.S_IFREG:
		data, err := os.ReadFile(at)
		if err != nil {
			return "", err
		}
		line += fmt.Sprintf(" %q %d.%d", data, is.Mtim.Sec, is.Mtim.Nsec)
	case unix.S_IFIFO:
		return line, nil
	}
	have, err := attributes(at)
	for _, name := range slices.Sorted(maps.Keys(have)) {
		line += fmt.Sprintf(" %s=%q", name, have[name])
	}
	return line, err
}

// changeRandomly makes a random change in a tree, within the rights of an ordinary
// user.
func changeRandomly(r *rand.Rand, dir string) {
	var names []string
	_ = filepath.WalkDir(dir, func(at string, _ fs.DirEntry, _ error) error {
		names = append(names, at)
		return nil
	})
	at := names[r.IntN(len(names))]
	fresh := filepath.Join(at, fmt.Sprintf("n%d", r.IntN(4)))
	other := names[r.IntN(len(names))]
	switch r.IntN(13) {
	case 0, 1:
		_ = os.Mkdir(fresh, 0o755)
	case 2, 3:
		put(fresh, os.O_CREATE|os.O_TRUNC, fmt.Sprint(r.Uint32()))
	case 4:
		put(at, os.O_APPEND, "+")
	case 5:
		if at != dir {
			_ = os.RemoveAll(at)
		}
	case 6, 7:
		var is unix.Stat_t
		if unix.Lstat(at, &is) == nil && is.Mode&unix.S_IFMT != unix.S_IFLNK {
			bits := []uint32{0, 0o200, 0o300, 0o400, 0o500, 0o600, 0o644, 0o700, 0o755, 0o2755}
			chosen := bits[r.IntN(len(bits))]
			if is.Mode&unix.S_IFMT == unix.S_IFREG {
				chosen &= 0o777 // a copy of a file never runs as another user
			}
			_ = unix.Chmod(at, chosen)
		}
	case 8:
		_ = os.Symlink(fmt.Sprint("to", r.IntN(9)), fresh)
	case 9:
		_ = os.Link(other, fresh)
	case 10:
		if at != dir {
			_ = os.Rename(at, filepath.Join(other, fmt.Sprintf("n%d", r.IntN(4))))
		}
	case 11:
		name := fmt.Sprintf("user.a%d", r.IntN(2))
		if r.IntN(2) == 0 || unix.Lremovexattr(at, name) != nil {
			_ = unix.Lsetxattr(at, name, fmt.Append(nil, r.IntN(9)), 0)
		}
	case 12:
		_ = unix.Mkfifo(fresh, 0o600)
	}
}

// put writes to a file, without blocking on a pipe.
func put(at string, flags int, text string) {
	if f, err := os.OpenFile(at, os.O_WRONLY|unix.O_NONBLOCK|flags, 0o644); err == nil {
		_, _ = io.WriteString(f, text)
		_ = f.Close()
	}
}
