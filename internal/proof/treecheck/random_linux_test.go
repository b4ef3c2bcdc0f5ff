package treecheck_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/proof/treecheck"
)

const (
	randomTrees = 40
	mutations   = 25 // of each tree
)

// TestCompareFindsRandomMutations makes 1,000 random changes in random trees. Each
// change says what Compare must find, and Compare must find exactly this.
func TestCompareFindsRandomMutations(t *testing.T) {
	can := abilities(t)
	for seed := range uint64(randomTrees) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "tree")
			require.NoError(t, os.Mkdir(dir, 0o755))
			t.Chdir(dir)
			write(t, "first", "x") // so that no change lacks an entry
			require.NoError(t, os.Symlink("first", "symlink"))
			m := &mutator{t: t, r: rand.New(rand.NewPCG(seed, 17)), can: can}
			for range 15 + m.r.IntN(15) {
				m.add()
			}
			before := capture(t, dir)
			for n := range mutations {
				what, want := m.mutate()
				after, err := treecheck.Capture(dir)
				require.NoError(t, err)
				require.ElementsMatch(t, want, short(treecheck.Compare(before, after)), "change %d: %s", n, what)
				before = after
			}
		})
	}
}

// mutator changes the tree in the current directory at random. It knows the tree
// by package os alone.
type mutator struct {
	t   *testing.T
	r   *rand.Rand
	can able
	n   int // of new names and values
}

// list returns the paths that pick accepts, in order.
func (m *mutator) list(pick func(path string, mode fs.FileMode) bool) (paths []string) {
	require.NoError(m.t, filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && pick(p, d.Type()) {
			paths = append(paths, p)
		}
		return err
	}))
	return paths
}

func (m *mutator) one(pick func(path string, mode fs.FileMode) bool) string {
	paths := m.list(pick)
	return paths[m.r.IntN(len(paths))]
}

func isDir(_ string, mode fs.FileMode) bool      { return mode.IsDir() }
func isFile(_ string, mode fs.FileMode) bool     { return mode.IsRegular() }
func isSymlink(_ string, mode fs.FileMode) bool  { return mode == fs.ModeSymlink }
func isNoDir(_ string, mode fs.FileMode) bool    { return !mode.IsDir() }
func isAny(string, fs.FileMode) bool             { return true }
func isNoSymlink(_ string, m fs.FileMode) bool   { return m != fs.ModeSymlink }
func holdsXattr(_ string, mode fs.FileMode) bool { return mode.IsDir() || mode.IsRegular() }

func (m *mutator) name() string {
	m.n++
	return fmt.Sprintf("%s%d", []string{"a", "\xff\xfe", "line\nbreak", " ", "-", "ä"}[m.r.IntN(6)], m.n)
}

// add makes a new entry in a random directory, and returns its path.
func (m *mutator) add() string {
	p := path.Join(m.one(isDir), m.name())
	var err error
	switch n := m.r.IntN(10); {
	case n < 3:
		err = os.Mkdir(p, 0o755)
	case n < 7:
		err = os.WriteFile(p, make([]byte, m.r.IntN(200_000)), 0o600)
	case n < 8:
		err = os.Symlink("target", p)
	case n < 9:
		err = os.Link(m.one(isFile), p)
	default:
		err = unix.Mkfifo(p, 0o600)
	}
	require.NoError(m.t, err)
	return p
}

// names returns all paths of the inode of a path, by os.SameFile.
func (m *mutator) names(p string) []string {
	info, err := os.Lstat(p)
	require.NoError(m.t, err)
	return m.list(func(other string, _ fs.FileMode) bool {
		i, err := os.Lstat(other)
		require.NoError(m.t, err)
		return os.SameFile(info, i)
	})
}

// differences are those of one field of all names of a path.
func (m *mutator) differences(p string, field treecheck.Field, name ...string) (out []treecheck.Difference) {
	for _, q := range m.names(p) {
		out = append(out, one(q, field, name...)...)
	}
	return out
}

// mutate makes one change and returns what it is and what Compare must find.
func (m *mutator) mutate() (what string, want []treecheck.Difference) {
	m.n++
	changes := []func() (string, []treecheck.Difference){
		m.content, m.mode, m.mtime, m.appear, m.vanish, m.retarget, m.link, m.retype,
	}
	if m.can.xattrs {
		changes = append(changes, m.xattr)
	}
	if m.can.acls {
		changes = append(changes, m.acl)
	}
	if m.can.owner {
		changes = append(changes, m.owner)
	}
	if m.can.holes {
		changes = append(changes, m.hole)
	}
	return changes[m.r.IntN(len(changes))]()
}

func (m *mutator) content() (string, []treecheck.Difference) {
	p := m.one(isFile)
	restore := times(m.t, p)
	file, err := os.OpenFile(p, os.O_RDWR, 0)
	require.NoError(m.t, err)
	old, at := []byte{0}, int64(m.r.IntN(300_000))
	_, _ = file.ReadAt(old, at) // beyond the end: 0
	_, err = file.WriteAt([]byte{old[0] + byte(1+m.r.IntN(255))}, at)
	require.NoError(m.t, err)
	require.NoError(m.t, file.Close())
	restore()
	return "content of " + p, m.differences(p, treecheck.Content)
}

func (m *mutator) hole() (string, []treecheck.Difference) {
	p := path.Join(m.one(isDir), m.name())
	restore := times(m.t, path.Dir(p))
	require.NoError(m.t, os.WriteFile(p, make([]byte, 150_000), 0o600))
	sparse := p + "-sparse"
	require.NoError(m.t, os.WriteFile(sparse, nil, 0o600))
	require.NoError(m.t, os.Truncate(sparse, 150_000))
	restore()
	a, err := treecheck.Capture(path.Dir(p))
	require.NoError(m.t, err)
	find := func(name string) treecheck.Entry {
		i := slices.IndexFunc(a.Entries, func(e treecheck.Entry) bool { return e.Path == path.Base(name) })
		e := a.Entries[i]
		e.Path, e.Mtime = "x", treecheck.Time{}
		return e
	}
	found := treecheck.Compare(treecheck.Tree{Entries: []treecheck.Entry{find(p)}}, treecheck.Tree{Entries: []treecheck.Entry{find(sparse)}})
	require.Equal(m.t, one("x", treecheck.Sparse), short(found))
	return "sparse " + p, append(one(p, treecheck.Extra), one(sparse, treecheck.Extra)...)
}

func (m *mutator) mode() (string, []treecheck.Difference) {
	p := m.one(func(p string, mode fs.FileMode) bool { return isNoSymlink(p, mode) && p != "." && !m.hasACL(p) })
	var st unix.Stat_t
	require.NoError(m.t, unix.Lstat(p, &st))
	require.NoError(m.t, unix.Chmod(p, st.Mode&0o7777^1<<m.r.IntN(6))) // of the group and others: the test must go on reading
	return "mode of " + p, m.differences(p, treecheck.Mode)
}

func (m *mutator) hasACL(p string) bool {
	n, err := unix.Lgetxattr(p, "system.posix_acl_access", nil)
	return err == nil && n > 0
}

func (m *mutator) mtime() (string, []treecheck.Difference) {
	p := m.one(isAny)
	setTime(m.t, p, someTime.Add(time.Duration(m.n)))
	info, err := os.Lstat(p)
	require.NoError(m.t, err)
	if info.IsDir() {
		return "mtime of " + p, one(p, treecheck.DirMtime)
	}
	return "mtime of " + p, m.differences(p, treecheck.Mtime)
}

func (m *mutator) appear() (string, []treecheck.Difference) {
	p := path.Join(m.one(isDir), m.name())
	restore := times(m.t, path.Dir(p))
	require.NoError(m.t, os.WriteFile(p, []byte(p), 0o600))
	restore()
	return "new " + p, one(p, treecheck.Extra)
}

func (m *mutator) vanish() (string, []treecheck.Difference) {
	p := m.one(func(p string, mode fs.FileMode) bool {
		return isNoDir(p, mode) && len(m.names(p)) == 1 && p != "symlink" && p != "first"
	})
	restore := times(m.t, path.Dir(p))
	require.NoError(m.t, os.Remove(p))
	restore()
	return "removed " + p, one(p, treecheck.Missing)
}

func (m *mutator) retarget() (string, []treecheck.Difference) {
	p := m.one(func(p string, mode fs.FileMode) bool { return isSymlink(p, mode) && len(m.names(p)) == 1 })
	restore := times(m.t, path.Dir(p), p)
	var st unix.Stat_t
	require.NoError(m.t, unix.Lstat(p, &st))
	require.NoError(m.t, os.Remove(p))
	require.NoError(m.t, os.Symlink(m.name(), p))
	require.NoError(m.t, os.Lchown(p, int(st.Uid), int(st.Gid)))
	restore()
	return "target of " + p, one(p, treecheck.Target)
}

func (m *mutator) link() (string, []treecheck.Difference) {
	p, q := m.one(isFile), path.Join(m.one(isDir), m.name())
	restore := times(m.t, path.Dir(q), p)
	want := append(m.differences(p, treecheck.Links), one(q, treecheck.Extra)...)
	require.NoError(m.t, os.Link(p, q))
	restore()
	return "link " + p + " to " + q, want
}

func (m *mutator) retype() (string, []treecheck.Difference) {
	p := m.one(func(p string, mode fs.FileMode) bool {
		return isNoDir(p, mode) && len(m.names(p)) == 1 && p != "symlink" && p != "first"
	})
	restore := times(m.t, path.Dir(p))
	info, err := os.Lstat(p)
	require.NoError(m.t, err)
	require.NoError(m.t, os.Remove(p))
	if info.Mode().IsRegular() {
		err = os.Mkdir(p, 0o700)
	} else {
		err = os.WriteFile(p, nil, 0o600)
	}
	require.NoError(m.t, err)
	restore()
	return "type of " + p, one(p, treecheck.Type)
}

func (m *mutator) xattr() (string, []treecheck.Difference) {
	p, name := m.one(holdsXattr), fmt.Sprintf("user.%d", m.r.IntN(3))
	require.NoError(m.t, unix.Setxattr(p, name, []byte(fmt.Sprint(m.n)), 0))
	return name + " of " + p, m.differences(p, treecheck.Xattr, name)
}

func (m *mutator) acl() (string, []treecheck.Difference) {
	p, name := m.one(isFile), "system.posix_acl_access"
	want := m.differences(p, treecheck.ACL, name)
	var before, after unix.Stat_t
	require.NoError(m.t, unix.Lstat(p, &before))
	require.NoError(m.t, unix.Setxattr(p, name, aclOf(uint32(m.n), 4), 0))
	require.NoError(m.t, unix.Lstat(p, &after))
	if before.Mode != after.Mode { // the kernel derives the bits of the mode from the ACL
		want = append(want, m.differences(p, treecheck.Mode)...)
	}
	return "ACL of " + p, want
}

func (m *mutator) owner() (string, []treecheck.Difference) {
	p := m.one(isSymlinkOrDir)
	var st unix.Stat_t
	require.NoError(m.t, unix.Lstat(p, &st))
	if m.r.IntN(2) == 0 {
		require.NoError(m.t, os.Lchown(p, int(st.Uid)+1, -1))
		return "owner of " + p, m.differences(p, treecheck.Owner)
	}
	require.NoError(m.t, os.Lchown(p, -1, int(st.Gid)+1))
	return "group of " + p, m.differences(p, treecheck.Group)
}

func isSymlinkOrDir(_ string, mode fs.FileMode) bool { return mode.IsDir() || mode == fs.ModeSymlink }
