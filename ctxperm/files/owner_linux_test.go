package files_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/disk"
)

// The tags of an access control list, as the kernel stores it.
const (
	ofOwner, ofUser, ofGroup, ofMask, ofOther = 1, 2, 4, 16, 32
	nobody                                    = 0xffffffff
)

// list returns a list of entries: tag, rights and ID of each.
func list(entries ...[3]uint32) string {
	raw := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range entries {
		raw = binary.LittleEndian.AppendUint16(raw, uint16(e[0]))
		raw = binary.LittleEndian.AppendUint16(raw, uint16(e[1]))
		raw = binary.LittleEndian.AppendUint32(raw, e[2])
	}
	return string(raw)
}

// listForUser1 returns a list that gives user 1 everything within the mask, and the
// group nothing.
func listForUser1(rights uint32) string {
	return list([3]uint32{ofOwner, rights, nobody}, [3]uint32{ofUser, rights, 1}, [3]uint32{ofGroup, 0, nobody}, [3]uint32{ofMask, rights, nobody}, [3]uint32{ofOther, 0, nobody})
}

// looks returns all visible state of a tree, read without code of this project.
func looks(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(at string, _ fs.DirEntry, err error) error {
		require.NoError(t, err)
		var is unix.Stat_t
		require.NoError(t, unix.Lstat(at, &is))
		line := fmt.Sprintf("%o %d:%d", is.Mode, is.Uid, is.Gid)
		if is.Mode&unix.S_IFMT == unix.S_IFREG {
			data, err := os.ReadFile(at)
			require.NoError(t, err)
			line += fmt.Sprintf(" %q %d.%d", data, is.Mtim.Sec, is.Mtim.Nsec)
		}
		names := make([]byte, 4096)
		n, err := unix.Llistxattr(at, names)
		require.NoError(t, err)
		for name := range strings.SplitSeq(string(names[:n]), "\x00") {
			if name == "" || name == "security.selinux" {
				continue
			}
			value := make([]byte, 4096)
			n, err := unix.Lgetxattr(at, name, value)
			require.NoError(t, err)
			line += fmt.Sprintf(" %s=%x", name, value[:n])
		}
		out[at[len(dir):]] = line
		return nil
	}))
	return out
}

// requirePrivateTree fails if other users have access to the tree.
func requirePrivateTree(t *testing.T, dir string) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(at string, _ fs.DirEntry, err error) error {
		var is unix.Stat_t
		if err != nil || at == dir || unix.Lstat(at, &is) != nil || is.Mode&unix.S_IFMT == unix.S_IFLNK {
			return nil //nolint:nilerr // gone by now
		}
		group := is.Mode >> 3 & 7
		value := make([]byte, 4096)
		if n, err := unix.Lgetxattr(at, disk.XattrAccess, value); err == nil {
			for e := value[4:n]; len(e) > 0; e = e[8:] {
				if binary.LittleEndian.Uint16(e) == ofGroup {
					group &= uint32(binary.LittleEndian.Uint16(e[2:]))
				}
			}
		}
		require.Zero(t, group, "the group %d of %s", is.Gid, at)
		require.Zero(t, is.Mode&7, "others of %s", at)
		return nil
	})
}

// watched checks the rights after each operation that changes them.
type watched struct {
	disk.Root
	look func()
}

func (w *watched) after(err error) error {
	w.look()
	return err
}

func (w *watched) Create(name string, bits fs.FileMode) (disk.File, error) {
	f, err := w.Root.Create(name, bits)
	return f, w.after(err)
}

func (w *watched) Mkdir(name string, bits fs.FileMode) error {
	return w.after(w.Root.Mkdir(name, bits))
}

func (w *watched) Chmod(name string, bits fs.FileMode) error {
	return w.after(w.Root.Chmod(name, bits))
}
func (w *watched) Chown(name string, o disk.Owner) error { return w.after(w.Root.Chown(name, o)) }
func (w *watched) Exchange(a, b string) error            { return w.after(w.Root.Exchange(a, b)) }
func (w *watched) RemoveXattr(name, key string) error    { return w.after(w.Root.RemoveXattr(name, key)) }

func (w *watched) SetXattr(name, key string, v []byte) error {
	return w.after(w.Root.SetXattr(name, key, v))
}

func (w *watched) RenameNoReplace(from, to string) error {
	return w.after(w.Root.RenameNoReplace(from, to))
}

// guarded is a test environment with files whose list admits a user but not the group.
func guarded(t *testing.T) *testEnv {
	t.Helper()
	w := newTestEnv(t)
	if !w.root.Features().Xattrs {
		t.Skip("the file system keeps no attributes")
	}
	require.NoError(t, os.Mkdir(filepath.Join(w.dir, "dir"), 0o700))
	w.put("a", "one\n", 0o600)
	w.put("dir/b", "two\n", 0o600)
	w.put("plain", "three\n", 0o600)
	for name, rights := range map[string]uint32{"a": 6, "dir/b": 6, "dir": 7} {
		err := unix.Setxattr(filepath.Join(w.dir, name), disk.XattrAccess, []byte(listForUser1(rights)), 0)
		if errors.Is(err, unix.ENOTSUP) {
			t.Skip("the file system keeps no access control lists")
		}
		require.NoError(t, err)
	}
	require.NoError(t, unix.Setxattr(filepath.Join(w.dir, "dir"), disk.XattrDefault, []byte(listForUser1(7)), 0))
	if os.Getuid() == 0 {
		for name, owner := range map[string]int{"a": 1234, "dir/b": 0, "dir": 0} {
			require.NoError(t, os.Chown(filepath.Join(w.dir, name), owner, 4321))
		}
		setXattr(t, filepath.Join(w.dir, "a"), "trusted.x", "y")
		setXattr(t, filepath.Join(w.dir, "a"), "security.x", "z")
	}
	setXattr(t, filepath.Join(w.dir, "a"), "user.x", "y")
	return w
}

// TestAccess changes a file in each way, reverts, redoes and reverts that.
// Owner, group, lists and attributes equal their earlier values, except for
// what the change sets. No user gains rights at any moment.
func TestAccess(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(ctx context.Context, f *files.Files) error
		into string // name whose later state equals the earlier one, except for content and time
		from string
	}{
		"edit": {func(ctx context.Context, f *files.Files) error { return f.Edit(ctx, "a", "one", "1", false) }, "/a", "/a"},
		"write": {func(ctx context.Context, f *files.Files) error {
			return f.Write(ctx, "a", []byte("x"), files.WriteOptions{})
		}, "/a", "/a"},
		"append":               {func(ctx context.Context, f *files.Files) error { return f.Append(ctx, "a", []byte("x")) }, "/a", "/a"},
		"move":                 {func(ctx context.Context, f *files.Files) error { return f.Move(ctx, "a", "z") }, "/z", "/a"},
		"move a tree":          {func(ctx context.Context, f *files.Files) error { return f.Move(ctx, "dir", "z") }, "/z/b", "/dir/b"},
		"delete":               {func(ctx context.Context, f *files.Files) error { return f.Delete(ctx, "a") }, "", ""},
		"delete all":           {func(ctx context.Context, f *files.Files) error { return f.DeleteAll(ctx, "dir") }, "", ""},
		"chmod":                {func(ctx context.Context, f *files.Files) error { return f.Chmod(ctx, "a", 0o400) }, "", ""},
		"chmod of a directory": {func(ctx context.Context, f *files.Files) error { return f.Chmod(ctx, "dir", 0o700) }, "", ""},
		"copy":                 {func(ctx context.Context, f *files.Files) error { return f.Copy(ctx, "dir", "copy") }, "", ""},
		"new": {func(ctx context.Context, f *files.Files) error {
			return f.Write(ctx, "dir/new", []byte("x"), files.WriteOptions{Perm: 0o600})
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := guarded(t)
			w.root = &watched{w.root, func() { requirePrivateTree(t, w.dir) }}
			before := looks(t, w.dir)
			require.NoError(t, w.do(w.host(), tt.do))
			after := looks(t, w.dir)
			require.NotEqual(t, before, after)
			if tt.into != "" {
				bare := func(line string) string { // without content and time
					from, to := strings.Index(line, ` "`), strings.Index(line, " system.")
					return line[:from] + line[to:]
				}
				require.Equal(t, bare(before[tt.from]), bare(after[tt.into]))
			}
			require.Empty(t, w.revert().NotReverted())
			require.Equal(t, before, looks(t, w.dir))
		})
	}
}

// TestNewInAFolder checks that a new file gets from its folder what the kernel
// gives: the group of a setgid folder, and the default list.
func TestNewInAFolder(t *testing.T) {
	w := guarded(t)
	group := os.Getegid()
	if os.Getuid() == 0 {
		group = 4321
	}
	require.NoError(t, os.Chown(filepath.Join(w.dir, "dir"), -1, group))
	require.NoError(t, os.Chmod(filepath.Join(w.dir, "dir"), 0o770|fs.ModeSetgid))
	require.NoError(t, w.do(w.host(), func(ctx context.Context, f *files.Files) error {
		return errors.Join(
			f.Write(ctx, "dir/new", []byte("x"), files.WriteOptions{}),
			f.Mkdir(ctx, "dir/more", 0),
			f.Write(ctx, "dir/deep/er/new", []byte("x"), files.WriteOptions{MakeParents: true}),
			f.Symlink(ctx, "b", "dir/link"))
	}))
	for name, kind := range map[string]string{"new": "f", "more": "d", "deep": "d", "deep/er": "d", "deep/er/new": "f", "link": "l"} {
		require.NoError(t, os.MkdirAll(filepath.Join(w.dir, "dir/kernel", filepath.Dir(name)), 0o755))
		at := filepath.Join(w.dir, "dir/kernel", name)
		old := unix.Umask(0)
		switch kind {
		case "f":
			f, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY, 0o644)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		case "d":
			require.NoError(t, os.MkdirAll(at, 0o755))
		default:
			require.NoError(t, os.Symlink("b", at))
		}
		unix.Umask(old)
	}
	is := looks(t, filepath.Join(w.dir, "dir"))
	for _, name := range []string{"more", "deep", "deep/er", "link"} {
		require.Equal(t, is["/kernel/"+name], is["/"+name], name)
	}
	for _, name := range []string{"new", "deep/er/new"} {
		mine, _, _ := strings.Cut(is["/"+name], ` "`)
		kernels, _, _ := strings.Cut(is["/kernel/"+name], ` "`)
		require.Equal(t, kernels, mine, name)
		_, mine, _ = strings.Cut(is["/"+name], " system.")
		_, kernels, _ = strings.Cut(is["/kernel/"+name], " system.")
		require.Equal(t, kernels, mine, name)
	}
}

// TestOwnersConflict changes the group or list of a file after the call changed
// it.
func TestOwnersConflict(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, at string){
		"list": func(t *testing.T, at string) { require.NoError(t, unix.Removexattr(at, disk.XattrAccess)) },
		"group": func(t *testing.T, at string) {
			if os.Getuid() != 0 {
				t.Skip("only the root user can give a file any group")
			}
			require.NoError(t, os.Chown(at, -1, 99))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := guarded(t)
			require.NoError(t, w.do(w.host(), func(ctx context.Context, f *files.Files) error { return f.Edit(ctx, "a", "one", "1", false) }))
			change(t, filepath.Join(w.dir, "a"))
			theirs := looks(t, w.dir)
			left := w.revert().NotReverted()
			require.Len(t, left, 1)
			require.Contains(t, left[0].Why, map[string]string{"list": "changed its attributes", "group": "owner or group was changed"}[name])
			require.Equal(t, theirs, looks(t, w.dir))
		})
	}
}

// TestCapabilities checks that content from another program does not inherit
// capabilities. They stay if only bits change, and a revert restores them.
func TestCapabilities(t *testing.T) {
	w := newTestEnv(t)
	if !w.root.Self().Capabilities || !w.root.Features().Xattrs {
		t.Skip("this process may not give programs capabilities")
	}
	w.put("tool", "#!\n", 0o755)
	setXattr(t, filepath.Join(w.dir, "tool"), disk.XattrCapability, "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	before := looks(t, w.dir)
	require.Contains(t, before["/tool"], disk.XattrCapability)
	require.NoError(t, w.do(w.host(), func(ctx context.Context, f *files.Files) error { return f.Chmod(ctx, "tool", 0o700) }))
	require.Contains(t, looks(t, w.dir)["/tool"], disk.XattrCapability)
	require.Empty(t, w.revert().NotReverted())
	require.Equal(t, before, looks(t, w.dir))

	w = newTestEnv(t)
	w.put("tool", "#!\n", 0o755)
	setXattr(t, filepath.Join(w.dir, "tool"), disk.XattrCapability, "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	before = looks(t, w.dir)
	require.NoError(t, w.do(w.host(), func(ctx context.Context, f *files.Files) error { return f.Append(ctx, "tool", []byte("x")) }))
	require.NotContains(t, looks(t, w.dir)["/tool"], disk.XattrCapability)
	require.Empty(t, w.revert().NotReverted())
	require.Equal(t, before, looks(t, w.dir))
}

// bound is a root of a process that may not change owners.
type bound struct{ disk.Root }

func (b bound) Self() disk.Self { return disk.Self{Owner: b.Root.Self().Owner} }

// TestNotToBeMadeAgain checks that a process does not change a file that it
// could not create again.
func TestNotToBeMadeAgain(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only the root user can make what this process could not make again")
	}
	for name, want := range map[string]string{
		"a":     "it belongs to user 1234 and group 4321, which this process may not give to a file, so it could not be made again",
		"dir/b": "it belongs to user 0 and group 4321, which this process may not give",
		"plain": "it has the attribute security.x, which this process may not set, so it could not be made again",
	} {
		for _, do := range []func(ctx context.Context, f *files.Files) error{
			func(ctx context.Context, f *files.Files) error { return f.Append(ctx, name, []byte("x")) },
			func(ctx context.Context, f *files.Files) error { return f.Delete(ctx, name) },
		} {
			w := guarded(t)
			setXattr(t, filepath.Join(w.dir, "plain"), "security.x", "y")
			w.root = bound{w.root}
			before := looks(t, w.dir)
			require.ErrorContains(t, w.do(w.host(), do), want)
			require.Equal(t, before, looks(t, w.dir))
		}
	}
	w := guarded(t)
	require.NoError(t, os.Chmod(filepath.Join(w.dir, "dir"), 0o770|fs.ModeSetgid))
	w.root = bound{w.root}
	before := looks(t, w.dir)
	require.NoError(t, w.do(w.host(), func(ctx context.Context, f *files.Files) error { return f.Append(ctx, "dir/b", []byte("x")) }),
		"the folder gives its group")
	require.Empty(t, w.revert().NotReverted())
	require.Equal(t, before, looks(t, w.dir))
}
