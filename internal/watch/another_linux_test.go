package watch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// nameTest is a watched folder with the files f and g, and a way to have the
// tree read all events of some changes at once, after the last one.
type nameTest struct {
	t       *testing.T
	dir     string
	outside string
	tree    *Tree
}

func newNameTest(t *testing.T) *nameTest {
	n := &nameTest{t: t, dir: t.TempDir(), outside: t.TempDir()}
	for _, name := range []string{"f", "g"} {
		n.write(name)
	}
	var err error
	n.tree, err = New(n.dir)
	require.NoError(t, err)
	t.Cleanup(n.tree.Close)
	n.drain() // after the first walk
	return n
}

func (n *nameTest) drain() Dirty {
	n.t.Helper()
	d := Dirty{Names: map[string]bool{}, Opened: map[string]bool{}, Links: map[uint64]bool{}}
	require.NoError(n.t, n.tree.Drain(&d))
	return d
}

// atOnce makes some changes, and returns what the tree says of them.
func (n *nameTest) atOnce(change func(n *nameTest)) Dirty {
	n.t.Helper()
	n.tree.mu.Lock()
	change(n)
	n.tree.mu.Unlock()
	return n.drain()
}

func (n *nameTest) at(name string) string { return filepath.Join(n.dir, name) }

func (n *nameTest) write(name string) {
	n.t.Helper()
	require.NoError(n.t, os.WriteFile(n.at(name), []byte("text"), 0o600))
}

func (n *nameTest) link(from, to string) {
	n.t.Helper()
	require.NoError(n.t, os.Link(n.at(from), n.at(to)))
}

func (n *nameTest) move(from, to string) {
	n.t.Helper()
	require.NoError(n.t, os.Rename(n.at(from), n.at(to)))
}

func (n *nameTest) remove(name string) {
	n.t.Helper()
	require.NoError(n.t, os.Remove(n.at(name)))
}

// swap replaces g as package files does.
func (n *nameTest) swap() {
	n.t.Helper()
	n.write("stage.new")
	n.move("stage.new", "stage")
	require.NoError(n.t, unix.Renameat2(unix.AT_FDCWD, n.at("stage"), unix.AT_FDCWD, n.at("g"), unix.RENAME_EXCHANGE))
	n.remove("stage")
}

// TestShortNames checks which names that came and went need a walk: those by
// which a file with another name can have changed.
func TestShortNames(t *testing.T) {
	for name, test := range map[string]struct {
		change func(n *nameTest)
		unsure bool
	}{
		"a new file":                    {func(n *nameTest) { n.write("x"); n.remove("x") }, true},
		"a link":                        {func(n *nameTest) { n.link("f", "x"); n.write("x"); n.remove("x") }, true},
		"a link that moved":             {func(n *nameTest) { n.link("f", "x"); n.move("x", "y"); n.write("y"); n.remove("y") }, true},
		"a link that took another name": {func(n *nameTest) { n.link("f", "x"); n.move("x", "g"); n.write("g"); n.remove("g") }, true},
		"a link, replaced":              {func(n *nameTest) { n.link("f", "x"); n.write("x"); n.move("g", "x") }, true},
		"a file that moved":             {func(n *nameTest) { n.move("g", "x"); n.write("x"); n.remove("x") }, false},
		"a file that moved twice":       {func(n *nameTest) { n.move("g", "x"); n.move("x", "y"); n.remove("y") }, false},
		"a file that moved out and in": {func(n *nameTest) {
			require.NoError(n.t, os.Rename(n.at("g"), filepath.Join(n.outside, "g")))
			require.NoError(n.t, os.Remove(filepath.Join(n.outside, "g")))
			require.NoError(n.t, os.Link(n.at("f"), filepath.Join(n.outside, "g")))
			require.NoError(n.t, os.Rename(filepath.Join(n.outside, "g"), n.at("x")))
			n.write("x")
			n.remove("x")
		}, true},
		"a swap of another process": {func(n *nameTest) { n.swap() }, true},
		"a swap of this process":    {func(n *nameTest) { Announce("stage.new"); n.swap() }, false},
		"a swap, and its name again": {func(n *nameTest) {
			Announce("stage.new")
			n.swap()
			n.link("f", "stage.new")
			n.write("stage.new")
			n.remove("stage.new")
		}, true},
		"a swap that did not begin": {func(n *nameTest) {
			Announce("stage.new")()
			n.link("f", "stage.new")
			n.write("stage.new")
			n.remove("stage.new")
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNameTest(t)
			require.Equal(t, test.unsure, n.atOnce(test.change).Unsure)
		})
	}
}

// TestNamesBeforeTheirWalk checks that a file counts as known only after a walk has seen
// it: in a folder that came, it can be a link.
func TestNamesBeforeTheirWalk(t *testing.T) {
	n := newNameTest(t)
	came := filepath.Join(n.outside, "came")
	require.NoError(t, os.Mkdir(came, 0o700))
	require.NoError(t, os.Link(n.at("f"), filepath.Join(came, "link")))
	require.NoError(t, os.Link(n.at("f"), filepath.Join(came, "other")))
	require.True(t, n.atOnce(func(n *nameTest) { require.NoError(n.t, os.Rename(came, n.at("came"))) }).Unsure)
	through := func(name string) func(n *nameTest) {
		return func(n *nameTest) {
			n.move("came/"+name, "x")
			n.write("x")
			n.remove("x")
		}
	}
	require.True(t, n.atOnce(through("link")).Unsure, "while the walk looks")
	n.drain()
	n.drain()
	require.False(t, n.atOnce(through("other")).Unsure, "the walk found that it has several names")
}

// TestAnnounced checks that names without a tree that takes them are not kept.
func TestAnnounced(t *testing.T) {
	Announce("early")
	require.Empty(t, announced.names)
	n := newNameTest(t)
	for range maxAnnounced + 1 {
		Announce(t.Name() + string(rune(len(announced.names))))
	}
	require.LessOrEqual(t, len(announced.names), maxAnnounced)
	n.tree.Close()
	require.Empty(t, announced.names)
}
