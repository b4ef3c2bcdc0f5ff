package simdisk_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/disk/simdisk"
)

// made returns a disk with a durable file and a durable directory.
func made(t *testing.T) (*simdisk.Disk, disk.Root) {
	d := simdisk.New()
	r := d.Root()
	write(t, r, "old", "old")
	require.NoError(t, r.Mkdir("dir", 0o755))
	require.NoError(t, r.SyncAll())
	require.Empty(t, d.Pending())
	return d, r
}

// write creates a file that is not durable.
func write(t *testing.T, r disk.Root, name, content string) {
	f, err := r.Create(name, 0o644)
	require.NoError(t, err)
	_, err = io.WriteString(f, content)
	require.NoError(t, errors.Join(err, f.Close()))
}

func sync(t *testing.T, r disk.Root, name string) {
	f, err := r.Open(name)
	require.NoError(t, err)
	require.NoError(t, errors.Join(f.Sync(), f.Close()))
}

// cut keeps the pending operations with digit 1, and half of the one with digit
// 2.
func cut(t *testing.T, d *simdisk.Disk, keep string) map[string]simdisk.File {
	ops := d.Pending()
	require.Len(t, ops, len(keep), "%v", ops)
	kept := make([]bool, len(keep))
	for i := range kept {
		kept[i] = keep[i] != '0'
	}
	d.Cut(kept, strings.IndexByte(keep, '2'))
	require.Empty(t, d.Pending())
	return d.Files()
}

func contents(files map[string]simdisk.File) map[string]string {
	out := map[string]string{}
	for name, f := range files {
		if f.Type != disk.TypeDir {
			out[name] = f.Content
		}
	}
	return out
}

// TestCut checks what a power failure leaves of durable and of other data.
func TestCut(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, r disk.Root)
		keep string
		want map[string]string
	}{
		{"nothing", func(t *testing.T, r disk.Root) { write(t, r, "new", "12345678") }, "00", map[string]string{"old": "old"}},
		{"a name without content", func(t *testing.T, r disk.Root) { write(t, r, "new", "12345678") }, "10", map[string]string{"old": "old", "new": ""}},
		{"content without a name", func(t *testing.T, r disk.Root) { write(t, r, "new", "12345678") }, "01", map[string]string{"old": "old"}},
		{"half", func(t *testing.T, r disk.Root) { write(t, r, "new", "12345678") }, "12", map[string]string{"old": "old", "new": "1234"}},
		{"a synced file has no name", func(t *testing.T, r disk.Root) {
			write(t, r, "new", "12345678")
			sync(t, r, "new")
		}, "0", map[string]string{"old": "old"}},
		{"a synced name has no content", func(t *testing.T, r disk.Root) {
			write(t, r, "new", "12345678")
			require.NoError(t, r.SyncDir("."))
		}, "0", map[string]string{"old": "old", "new": ""}},
		{"both synced", func(t *testing.T, r disk.Root) {
			write(t, r, "new", "12345678")
			sync(t, r, "new")
			require.NoError(t, r.SyncDir("."))
		}, "", map[string]string{"old": "old", "new": "12345678"}},
		{"a hole", func(t *testing.T, r disk.Root) {
			f, err := r.Create("new", 0o644)
			require.NoError(t, err)
			_, err = io.WriteString(f, "1234")
			require.NoError(t, err)
			_, err = io.WriteString(f, "5678")
			require.NoError(t, errors.Join(err, f.Close()))
		}, "101", map[string]string{"old": "old", "new": "\x00\x00\x00\x005678"}},
		{"renames are whole", func(t *testing.T, r disk.Root) { require.NoError(t, r.RenameNoReplace("old", "dir/new")) }, "1", map[string]string{"dir/new": "old"}},
		{"or not there", func(t *testing.T, r disk.Root) { require.NoError(t, r.RenameNoReplace("old", "dir/new")) }, "0", map[string]string{"old": "old"}},
		{"and durable by either directory", func(t *testing.T, r disk.Root) {
			require.NoError(t, r.RenameNoReplace("old", "dir/new"))
			require.NoError(t, r.SyncDir("dir"))
		}, "", map[string]string{"dir/new": "old"}},
		{"other names are in no order", func(t *testing.T, r disk.Root) {
			require.NoError(t, r.Symlink("x", "a"))
			require.NoError(t, r.Symlink("y", "b"))
		}, "01", map[string]string{"old": "old", "b": "y"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, r := made(t)
			tt.do(t, r)
			seen := d.Files()
			d.Crash()
			require.Equal(t, seen, d.Files(), "the death of a process loses nothing")
			require.Equal(t, tt.want, contents(cut(t, d, tt.keep)))
		})
	}
}

// TestNeeds checks that an operation is not kept without those that it needs.
func TestNeeds(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, r disk.Root){
		"one name": func(t *testing.T, r disk.Root) {
			require.NoError(t, r.Remove("old"))
			require.NoError(t, r.Symlink("x", "old"))
		},
		"one inode": func(t *testing.T, r disk.Root) {
			require.NoError(t, r.Link("old", "dir/too"))
			require.NoError(t, r.Remove("old"))
		},
		"the way to it": func(t *testing.T, r disk.Root) {
			require.NoError(t, r.RenameNoReplace("dir", "other"))
			require.NoError(t, r.Symlink("x", "other/link"))
		},
		"what is in it": func(t *testing.T, r disk.Root) {
			require.NoError(t, r.Symlink("x", "dir/link"))
			require.NoError(t, r.RenameNoReplace("dir", "other"))
		},
		"bits and bits": func(t *testing.T, r disk.Root) {
			require.NoError(t, r.Chmod("old", 0o600))
			require.NoError(t, r.Chmod("old", 0o640))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, r := made(t)
			do(t, r)
			ops := d.Pending()
			require.Len(t, ops, 2)
			require.Equal(t, []int{0}, ops[1].Needs)
			require.Panics(t, func() { d.Clone().Cut([]bool{false, true}, -1) })
			seen := d.Files()
			require.Equal(t, seen, cut(t, d, "11"))
		})
	}
}

// TestClone checks that an operation on one of the two is not visible on the
// other, and that both describe equal states equally.
func TestClone(t *testing.T) {
	d, r := made(t)
	write(t, r, "new", "content")
	describe := func(d *simdisk.Disk) string {
		var s strings.Builder
		d.Describe(&s)
		return s.String()
	}
	other, before := d.Clone(), describe(d)
	require.Equal(t, before, describe(other))
	var told []string
	d.Watch(func(op string) { told = append(told, op) })
	require.NoError(t, r.SetXattr("new", "user.a", []byte("b")))
	require.NoError(t, r.Link("new", "again"))
	require.NoError(t, r.SyncAll())
	require.NoError(t, r.SyncAll(), "of which nobody is told, since it changed nothing")
	require.Equal(t, []string{"setxattr new", "link new again", "syncall ."}, told)
	require.Equal(t, before, describe(other))
	require.Contains(t, describe(d), "user.a=b")
	require.Equal(t, "b", d.Files()["new"].Attributes["user.a"])
	require.Len(t, slices.Collect(strings.Lines(describe(d))), 4)
	require.NotEqual(t, before, describe(d))
}

// TestWriters checks that a writer's lease ends with its process.
func TestWriters(t *testing.T) {
	d, r := made(t)
	_, err := r.Create("new", 0o644)
	require.NoError(t, err)
	require.ErrorIs(t, r.TryLease("new"), disk.ErrBusy)
	d.Crash()
	require.NoError(t, r.TryLease("new"))
	_, err = r.Path()
	require.Error(t, err)
}
