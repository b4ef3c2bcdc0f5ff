package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/perm"
)

// counted is a root that counts reads of directories, and fails on demand.
type counted struct {
	disk.Root

	read  []string
	lstat map[string]error
	list  map[string]error
	more  []disk.Info // additional entries of the root itself
}

func (c *counted) Lstat(name string) (disk.Info, error) {
	if err := c.lstat[name]; err != nil {
		return disk.Info{}, err
	}
	return c.Root.Lstat(name)
}

func (c *counted) ReadDir(name string) ([]disk.Info, error) {
	if err := c.list[name]; err != nil {
		return nil, err
	}
	c.read = append(c.read, name)
	all, err := c.Root.ReadDir(name)
	if name == "." {
		all = append(all, c.more...)
	}
	return all, err
}

func countedRoot(t *testing.T, files ...string) (*counted, string) {
	dir := t.TempDir()
	for _, name := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	root, err := disk.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, root.Close()) })
	return &counted{Root: root, lstat: map[string]error{}, list: map[string]error{}}, dir
}

func masks(t *testing.T, texts ...string) []perm.Mask {
	all, err := patterns(texts)
	require.NoError(t, err)
	return all
}

// TestIndexReadsOnlyWhatChanged checks that a second search reads a directory
// again only if it changed. It also does if the last change is so recent that a
// further one may not show.
func TestIndexReadsOnlyWhatChanged(t *testing.T) {
	root, dir := countedRoot(t, ".env", "a/key.pem", "a/b/.ENV", "a/b/c/x")
	d, err := New(Config{})
	require.NoError(t, err)
	m := masks(t, "file://workspace/**/.env", "file://workspace/**/*.pem")
	is, err := root.Lstat(".")
	require.NoError(t, err)
	now := is.Ctime.Add(time.Hour)
	search := func(now time.Time) []string {
		root.read = nil
		s := search{root: root, name: "workspace", masks: m, index: d.indexOf(root, m, true), now: now}
		shows, hidden, err := s.look(t.Context(), ".")
		require.NoError(t, err)
		require.True(t, shows)
		return hidden
	}
	want := []string{".env", "a/key.pem", "a/b/.ENV"}
	require.ElementsMatch(t, want, search(is.Ctime.Add(settled/2)))
	require.ElementsMatch(t, want, search(now))
	require.ElementsMatch(t, []string{".", "a", "a/b", "a/b/c"}, root.read, "it was too fresh to be remembered")
	require.ElementsMatch(t, want, search(now))
	require.Empty(t, root.read)
	require.NoError(t, os.WriteFile(dir+"/a/b/other.pem", nil, 0o644))
	require.ElementsMatch(t, append(want, "a/b/other.pem"), search(now))
	require.Equal(t, []string{"a/b"}, root.read)
	require.Nil(t, d.indexOf(root, m, false), "what depends on the grant is not remembered")
}

// TestIndexesAreBounded checks that a driver forgets the oldest of too many
// sets of masks.
func TestIndexesAreBounded(t *testing.T) {
	root, _ := countedRoot(t)
	d, err := New(Config{})
	require.NoError(t, err)
	first := d.indexOf(root, masks(t, "file://workspace/m"), true)
	require.Same(t, first, d.indexOf(root, masks(t, "file://workspace/m"), true))
	for i := range 100 {
		d.indexOf(root, masks(t, fmt.Sprint("file://workspace/m", i)), true)
		require.LessOrEqual(t, len(d.seen), 64)
	}
	require.NotSame(t, first, d.indexOf(root, masks(t, "file://workspace/m"), true))
}

// TestSearchOfWhatGoesAway checks that a file that is gone, or unreadable for
// every user, hides nothing and stops nothing. Any other failure is an error,
// because a name that is not found stays visible.
func TestSearchOfWhatGoesAway(t *testing.T) {
	broken := errors.New("the disk is broken")
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"gone", fs.ErrNotExist, ""},
		{"a file by now", disk.ErrType, ""},
		{"nobody may look", fs.ErrPermission, ""},
		{"broken", broken, "the disk is broken"},
	} {
		for _, where := range []string{"lstat", "list"} {
			root, _ := countedRoot(t, "a/.env", "b/.env")
			map[string]map[string]error{"lstat": root.lstat, "list": root.list}[where]["a"] = tt.err
			s := search{root: root, name: "workspace", masks: masks(t, "file://workspace/**/.env")}
			_, hidden, err := s.look(t.Context(), ".")
			if tt.want != "" {
				require.ErrorContains(t, err, tt.want, tt.name)
				continue
			}
			require.NoError(t, err, tt.name)
			require.Equal(t, []string{"b/.env"}, hidden)
		}
	}
	root, _ := countedRoot(t, "a/f")
	s := search{root: root, name: "workspace"}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	_, _, err := s.look(ctx, ".")
	require.ErrorIs(t, err, broken)
}

// TestSearchExcepts checks that excepted names are visible in any case of
// letters, but not in a hidden folder.
func TestSearchExcepts(t *testing.T) {
	root, _ := countedRoot(t, "Cacert.PEM", "Server.pem", "Testdata/a.PEM", "x.pem/testdata/a.pem", "cacert.pem/a.pem", "cacert.pem/b")
	s := search{root: root, name: "workspace", masks: masks(t, "file://workspace/**/*.pem/** except file://workspace/**/cacert.pem file://workspace/**/testdata/**")}
	_, hidden, err := s.look(t.Context(), ".")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"Server.pem", "x.pem", "cacert.pem/a.pem", "cacert.pem/b"}, hidden)
}

// TestSearchHidesWhatNoRuleCouldName checks that a name too long for a resource
// is hidden.
func TestSearchHidesWhatNoRuleCouldName(t *testing.T) {
	root, _ := countedRoot(t, "f")
	long := strings.Repeat("x", 9000)
	root.more = []disk.Info{{Name: long, Type: disk.TypeFile}}
	s := search{root: root, name: "workspace", masks: masks(t, "file://workspace/none")}
	_, hidden, err := s.look(t.Context(), ".")
	require.NoError(t, err)
	require.Equal(t, []string{long}, hidden)
}

// TestPatternsOfMasks checks that an invalid mask is refused, because its
// intended files are unknown.
func TestPatternsOfMasks(t *testing.T) {
	_, err := patterns([]string{"file://workspace/a", "nonsense"})
	require.ErrorContains(t, err, `the mask "nonsense"`)
}
