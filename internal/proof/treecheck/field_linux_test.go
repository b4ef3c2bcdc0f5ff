package treecheck_test

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/proof/treecheck"
)

// sample makes a tree with an entry of each kind that the test may make.
func sample(t *testing.T, can able) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	require.NoError(t, os.Mkdir(dir, 0o755))
	t.Chdir(dir)
	require.NoError(t, os.MkdirAll("d/e", 0o755))
	write(t, "a", "hello")
	write(t, "empty", "")
	write(t, "d/b", strings.Repeat("x", 100_000))
	require.NoError(t, os.Link("d/b", "d/e/b2"))
	require.NoError(t, os.Symlink("a", "link"))
	require.NoError(t, unix.Mkfifo("fifo", 0o600))
	socket, err := net.Listen("unix", "sock")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, socket.Close()) })
	write(t, "holes", "start")
	require.NoError(t, os.Truncate("holes", 1<<20))
	if can.devices {
		require.NoError(t, unix.Mknod("null", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
		require.NoError(t, unix.Mknod("disk", unix.S_IFBLK|0o600, int(unix.Mkdev(7, 300))))
	}
	if can.xattrs {
		require.NoError(t, unix.Setxattr("a", "user.one", []byte("1"), 0))
		require.NoError(t, unix.Setxattr("a", "user.two", []byte("2"), 0))
	}
	if can.acls {
		require.NoError(t, unix.Setxattr("d/b", "system.posix_acl_access", aclOf(1, 4), 0))
	}
	return dir
}

type fieldCase struct {
	name   string
	can    bool
	touch  []string // whose times stay as they are
	change func() error
	want   []treecheck.Difference // without values
	values string                 // of the first difference
}

// TestCompareFindsEachField changes exactly one field of a tree, and requires that
// Compare finds this change and no other.
func TestCompareFindsEachField(t *testing.T) {
	can := abilities(t)
	for _, tt := range append(metadataCases(can), contentCases(can)...) {
		t.Run(tt.name, func(t *testing.T) {
			if !tt.can {
				t.Skip("the file system or the user of this test cannot do this")
			}
			dir := sample(t, can)
			before := capture(t, dir)
			restore := times(t, tt.touch...)
			require.NoError(t, tt.change())
			restore()
			found := treecheck.Compare(before, capture(t, dir))
			require.Equal(t, tt.want, short(found))
			require.Contains(t, found[0].String(), tt.values)
			for i, d := range treecheck.Compare(capture(t, dir), before) {
				if tt.want[i].Field != treecheck.Missing && tt.want[i].Field != treecheck.Extra {
					require.Equal(t, found[i].Want, d.Got, "the other way round")
					require.Equal(t, found[i].Got, d.Want)
				}
			}
		})
	}
}

func one(path string, field treecheck.Field, name ...string) []treecheck.Difference {
	return []treecheck.Difference{{Path: path, Field: field, Name: strings.Join(name, "")}}
}

func metadataCases(can able) []fieldCase {
	later := func(path string) func() error {
		return func() error {
			ts := unix.NsecToTimespec(someTime.UnixNano())
			return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
		}
	}
	set := func(path, name string, value []byte) func() error {
		return func() error { return unix.Lsetxattr(path, name, value, 0) }
	}
	acl := "system.posix_acl_access"
	return []fieldCase{
		{"mode", true, nil, func() error { return os.Chmod("a", 0o640) }, one("a", treecheck.Mode), "want 0600, got 0640"},
		{"setuid", true, nil, func() error { return unix.Chmod("a", 0o4600) }, one("a", treecheck.Mode), "got 04600"},
		{"setgid", true, nil, func() error { return unix.Chmod("d", 0o2755) }, one("d", treecheck.Mode), "got 02755"},
		{"sticky", true, nil, func() error { return unix.Chmod("d/e", 0o1755) }, one("d/e", treecheck.Mode), "got 01755"},
		{"mode of the root", true, nil, func() error { return os.Chmod(".", 0o711) }, one(".", treecheck.Mode), "got 0711"},
		{"mode of a fifo", true, nil, func() error { return os.Chmod("fifo", 0o622) }, one("fifo", treecheck.Mode), "got 0622"},
		{"owner", can.owner, nil, func() error { return os.Lchown("link", 1234, -1) }, one("link", treecheck.Owner), "want 0, got 1234"},
		{"group", can.owner, nil, func() error { return os.Lchown("sock", -1, 1234) }, one("sock", treecheck.Group), "want 0, got 1234"},
		{"mtime", true, nil, later("a"), one("a", treecheck.Mtime), "got 1600000000.123456789"},
		{"mtime of a symlink", true, nil, later("link"), one("link", treecheck.Mtime), "got 1600000000.123456789"},
		{"mtime of a directory", true, nil, later("d"), one("d", treecheck.DirMtime), "got 1600000000.123456789"},
		{"mtime of the root", true, nil, later("."), one(".", treecheck.DirMtime), ""},
		{"attribute set", can.xattrs, nil, set("a", "user.three", []byte("\x00\xff")), one("a", treecheck.Xattr, "user.three"), `"a": xattr user.three: want absent, got "\x00\xff"`},
		{"attribute set on a directory", can.xattrs, nil, set("d", "user.a", nil), one("d", treecheck.Xattr, "user.a"), `got ""`},
		{"attribute changed", can.xattrs, nil, set("a", "user.one", []byte("11")), one("a", treecheck.Xattr, "user.one"), `want "1", got "11"`},
		{"attribute removed", can.xattrs, nil, func() error { return unix.Removexattr("a", "user.one") }, one("a", treecheck.Xattr, "user.one"), "got absent"},
		{"last attribute removed", can.xattrs, nil, func() error { return unix.Removexattr("a", "user.two") }, one("a", treecheck.Xattr, "user.two"), "got absent"},
		{"large attribute", can.xattrs, nil, set("a", "user.one", bytes.Repeat([]byte("x"), 1000)), one("a", treecheck.Xattr, "user.one"), "got 1000 bytes, sha256 "},
		{"attribute of a symlink", can.owner && can.xattrs, nil, set("link", "trusted.a", []byte("x")), one("link", treecheck.Xattr, "trusted.a"), `got "x"`},
		{"attribute of a socket", can.owner && can.xattrs, nil, set("sock", "trusted.a", []byte("x")), one("sock", treecheck.Xattr, "trusted.a"), `got "x"`},
		{"attribute of a device", can.devices && can.xattrs, nil, set("null", "trusted.a", []byte("x")), one("null", treecheck.Xattr, "trusted.a"), `got "x"`},
		{"capability", can.owner && can.xattrs, nil, set("a", "security.capability", []byte("\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")), one("a", treecheck.Xattr, "security.capability"), "got "},
		{
			"ACL", can.acls, nil, set("d/b", acl, aclOf(2, 4)),
			append(one("d/b", treecheck.ACL, acl), one("d/e/b2", treecheck.ACL, acl)...),
			"want user::rw-,user:1:r--,group::r--,mask::r--,other::---, got user::rw-,user:2:r--",
		},
		{"default ACL", can.acls, nil, set("d", "system.posix_acl_default", aclOf(2, 4)), one("d", treecheck.ACL, "system.posix_acl_default"), "want absent, got user::rw-"},
	}
}

func contentCases(can able) []fieldCase {
	both := append(one("d/b", treecheck.Content), one("d/e/b2", treecheck.Content)...)
	replace := func(path string, again func() error) func() error {
		return func() error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return again()
		}
	}
	text := func(path, text string) func() error {
		return func() error { return os.WriteFile(path, []byte(text), 0o600) }
	}
	return []fieldCase{
		{"content of one size", true, []string{"a"}, text("a", "hellO"), one("a", treecheck.Content), "5 bytes, digest "},
		{"content grown", true, []string{"a"}, text("a", "hello\x00"), one("a", treecheck.Content), "got 6 bytes"},
		{"content gone", true, []string{"a"}, text("a", ""), one("a", treecheck.Content), "got 0 bytes"},
		{"zeros at the end", true, []string{"empty"}, func() error { return os.Truncate("empty", 10<<20) }, one("empty", treecheck.Content), ""},
		{"content under two names", true, []string{"d/b"}, func() error { return os.Truncate("d/b", 99_999) }, both, "got 99999 bytes"},
		{"hole filled", can.holes, []string{"holes"}, text("holes", "start"+strings.Repeat("\x00", 1<<20-5)), one("holes", treecheck.Sparse), "got 1048576 of 1048576 bytes outside of holes"},
		{"hole allocated", can.allocates, []string{"holes"}, func() error { return allocate("holes", 1<<20) }, one("holes", treecheck.Sparse), "of 1048576 bytes outside of holes"},
		{"missing", true, []string{"."}, func() error { return os.Remove("a") }, one("a", treecheck.Missing), "want regular, got absent"},
		{"missing last", true, []string{"."}, func() error { return os.Remove("sock") }, one("sock", treecheck.Missing), "want socket"},
		{"extra", true, []string{"."}, text("z", ""), one("z", treecheck.Extra), "want absent, got regular"},
		{"extra first", true, []string{"d"}, text("d/\n", ""), one("d/\n", treecheck.Extra), `"d/\n": extra`},
		{"target", true, []string{".", "link"}, replace("link", func() error { return os.Symlink("a\xff", "link") }), one("link", treecheck.Target), `want "a", got "a\xff"`},
		{"type", true, []string{".", "a"}, replace("a", func() error { return os.Mkdir("a", 0o700) }), one("a", treecheck.Type), "want regular, got directory"},
		{"type of a symlink", true, []string{".", "link"}, replace("link", text("link", "hello")), one("link", treecheck.Type), "want symlink, got regular"},
		{
			"device", can.devices,
			[]string{".", "null"},
			replace("null", func() error { return unix.Mknod("null", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))) }), one("null", treecheck.Device), "want 1:3, got 1:5",
		},
		{
			"block device", can.devices,
			[]string{".", "disk"},
			replace("disk", func() error { return unix.Mknod("disk", unix.S_IFBLK|0o600, int(unix.Mkdev(259, 70_000))) }), one("disk", treecheck.Device), "want 7:300, got 259:70000",
		},
		{
			"link to outside", true, nil, func() error { return os.Link("a", "../outside") },
			one("a", treecheck.Links), "want 1 name, got 2 names, 1 outside of the tree",
		},
		{
			"link broken", true,
			[]string{"d/e", "d/e/b2"},
			replace("d/e/b2", copyOf("d/b", "d/e/b2")),
			append(one("d/b", treecheck.Links), one("d/e/b2", treecheck.Links)...), `want 2 names, 0 outside of the tree: "d/b" "d/e/b2", got 1 name`,
		},
		{
			"name of a group moved", true,
			[]string{"d/e"},
			func() error { return os.Rename("d/e/b2", "d/e/b3") },
			append(append(one("d/b", treecheck.Links), one("d/e/b2", treecheck.Missing)...), one("d/e/b3", treecheck.Extra)...), "",
		},
	}
}

// copyOf copies a file with its attributes.
func copyOf(from, to string) func() error {
	return func() error {
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return err
		}
		acl := make([]byte, 100)
		if n, err := unix.Getxattr(from, "system.posix_acl_access", acl); err == nil {
			return unix.Setxattr(to, "system.posix_acl_access", acl[:n], 0)
		}
		return nil
	}
}

// allocate gives a file all its blocks without writing.
func allocate(path string, size int64) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.Fallocate(int(file.Fd()), 0, 0, size)
}
