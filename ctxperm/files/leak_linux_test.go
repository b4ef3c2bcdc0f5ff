package files_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// secret is the content of every file outside. Nothing inside has the word or
// the length.
var secret = strings.Repeat("secret ", 1000)

// escapeRace is a test environment whose folder "door" a goroutine swaps, as fast as
// possible, with a link to a similar folder outside of the root.
type escapeRace struct {
	*testEnv

	outside string
	before  map[string]string
	stop    atomic.Bool
	done    sync.WaitGroup
	swaps   int
}

func newEscapeRace(t *testing.T) *escapeRace {
	t.Helper()
	f := &escapeRace{testEnv: newTestEnv(t), outside: t.TempDir()}
	f.createSwappedDir(f.outside, secret)
	require.NoError(t, os.WriteFile(filepath.Join(f.outside, "secret-name"), []byte(secret), 0o640))
	require.NoError(t, os.Symlink(f.outside, filepath.Join(f.dir, "trap")))
	f.before = f.outsideState()
	t.Cleanup(f.close)
	return f
}

func (f *escapeRace) createSwappedDir(dir, content string) {
	require.NoError(f.t, os.MkdirAll(filepath.Join(dir, "sub"), 0o755))
	for _, name := range []string{"file", "made", "sub/inner"} {
		require.NoError(f.t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o640))
	}
}

// open restores the folder and starts to swap it.
func (f *escapeRace) open() {
	f.t.Helper()
	door, trap := filepath.Join(f.dir, "door"), filepath.Join(f.dir, "trap")
	if info, err := os.Lstat(door); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		require.NoError(f.t, unix.Renameat2(unix.AT_FDCWD, door, unix.AT_FDCWD, trap, unix.RENAME_EXCHANGE))
	}
	for _, name := range []string{"door", "to", "file"} {
		require.NoError(f.t, os.RemoveAll(filepath.Join(f.dir, name)))
	}
	if info, err := os.Lstat(trap); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		require.NoError(f.t, os.RemoveAll(trap)) // the folder was deleted during the swap
		require.NoError(f.t, os.Symlink(f.outside, trap))
	}
	f.createSwappedDir(door, "inside")
	f.stop.Store(false)
	f.done.Go(func() {
		for ; !f.stop.Load(); f.swaps++ {
			_ = unix.Renameat2(unix.AT_FDCWD, door, unix.AT_FDCWD, trap, unix.RENAME_EXCHANGE)
		}
	})
}

func (f *escapeRace) close() {
	f.stop.Store(true)
	f.done.Wait()
}

// outsideState returns everything that can be observed of the folder outside, except
// access times.
func (f *escapeRace) outsideState() map[string]string {
	f.t.Helper()
	out := map[string]string{}
	require.NoError(f.t, filepath.WalkDir(f.outside, func(at string, d fs.DirEntry, err error) error {
		require.NoError(f.t, err)
		var is unix.Stat_t
		require.NoError(f.t, unix.Lstat(at, &is))
		data, _ := os.ReadFile(at)
		out[at] = fmt.Sprint(is.Ino, is.Mode, is.Nlink, is.Mtim, is.Ctim, is.Uid, is.Gid, string(data), xattrs(f.t, at))
		return nil
	}))
	return out
}

// naive is the control: resolve, compare a prefix, read.
func (f *escapeRace) naive() bool {
	at := filepath.Join(f.dir, "door", "file")
	resolved, err := filepath.EvalSymlinks(at)
	if err != nil || !strings.HasPrefix(resolved, f.dir+"/") {
		return false
	}
	data, _ := os.ReadFile(at)
	return string(data) == secret
}

// leaked searches for the secret in everything that remit left: the root and
// the stored content.
func (f *escapeRace) leaked() bool {
	f.t.Helper()
	for name, e := range f.tree() {
		if strings.Contains(e.data, "secret") && e.mode.IsRegular() || strings.Contains(name, "secret") {
			return true
		}
	}
	return slices.ContainsFunc(f.kept(), func(blob string) bool { return strings.Contains(blob, "secret") })
}

// raced returns all operations, each on a path below that folder. They return
// what they read.
func raced() map[string]func(ctx context.Context, f *files.Files) (any, error) {
	only := func(do func(ctx context.Context, f *files.Files) error) func(context.Context, *files.Files) (any, error) {
		return func(ctx context.Context, f *files.Files) (any, error) { return nil, do(ctx, f) }
	}
	return map[string]func(ctx context.Context, f *files.Files) (any, error){
		"read": func(ctx context.Context, f *files.Files) (any, error) {
			data, err := f.ReadFile(ctx, "door/file")
			return string(data), err
		},
		"read a part": func(ctx context.Context, f *files.Files) (any, error) {
			part, err := f.Read(ctx, "door/file", 0, 100)
			return fmt.Sprintf("%+v %s", part, part.Data), err
		},
		"stat":      func(ctx context.Context, f *files.Files) (any, error) { return f.Stat(ctx, "door/file") },
		"list":      func(ctx context.Context, f *files.Files) (any, error) { return f.List(ctx, "door") },
		"list page": func(ctx context.Context, f *files.Files) (any, error) { return f.ListPage(ctx, "door", 1) },
		"walk":      func(ctx context.Context, f *files.Files) (any, error) { return f.Walk(ctx, ".", 1) },
		"search": func(ctx context.Context, f *files.Files) (any, error) {
			return f.Search(ctx, "door", files.Query{Pattern: "secret|inside", Page: 1})
		},
		"write": only(func(ctx context.Context, f *files.Files) error {
			return f.Write(ctx, "door/file", []byte("ours"), files.WriteOptions{})
		}),
		"create": only(func(ctx context.Context, f *files.Files) error {
			return f.Write(ctx, "door/new/deep", []byte("ours"), files.WriteOptions{MakeParents: true})
		}),
		"append": only(func(ctx context.Context, f *files.Files) error { return f.Append(ctx, "door/file", []byte("ours")) }),
		"edit":   only(func(ctx context.Context, f *files.Files) error { return f.Edit(ctx, "door/file", "i", "I", true) }),
		"mkdir":  only(func(ctx context.Context, f *files.Files) error { return f.Mkdir(ctx, "door/dir", 0) }),
		"mkdirs": only(func(ctx context.Context, f *files.Files) error { return f.MkdirAll(ctx, "door/a/b", 0) }),
		"delete": only(func(ctx context.Context, f *files.Files) error { return f.Delete(ctx, "door/made") }),
		"delete a tree": only(func(ctx context.Context, f *files.Files) error {
			return f.DeleteAll(ctx, "door/sub")
		}),
		"delete the door": only(func(ctx context.Context, f *files.Files) error { return f.DeleteAll(ctx, "door") }),
		"move out":        only(func(ctx context.Context, f *files.Files) error { return f.Move(ctx, "door/file", "file") }),
		"move in":         only(func(ctx context.Context, f *files.Files) error { return f.Move(ctx, "door/file", "door/moved") }),
		"move a tree":     only(func(ctx context.Context, f *files.Files) error { return f.Move(ctx, "door/sub", "to") }),
		"copy":            only(func(ctx context.Context, f *files.Files) error { return f.Copy(ctx, "door/file", "file") }),
		"copy a tree":     only(func(ctx context.Context, f *files.Files) error { return f.Copy(ctx, "door", "to") }),
		"chmod":           only(func(ctx context.Context, f *files.Files) error { return f.Chmod(ctx, "door/file", 0o600) }),
		"chmod a folder":  only(func(ctx context.Context, f *files.Files) error { return f.Chmod(ctx, "door/sub", 0o700) }),
		"symlink":         only(func(ctx context.Context, f *files.Files) error { return f.Symlink(ctx, "file", "door/link") }),
	}
}

// wants returns possible changes of a program below that folder.
func wants(now time.Time) []files.DesiredFile {
	return []files.DesiredFile{
		{Path: "door/file", Version: files.Version{Type: "file", Perm: 0o644}, Mtime: now, Open: content("ours")},
		{Path: "door/made"},
		{Path: "door/new", Version: files.Version{Type: "dir", Perm: 0o755}},
		{Path: "door/new/f", Version: files.Version{Type: "file", Perm: 0o644}, Mtime: now, Open: content("ours")},
		{Path: "door/sub", Version: files.Version{Type: "dir", Perm: 0o700}, Replaced: true},
		{Path: "door/way", Version: files.Version{Type: "link", Target: "file"}, Mtime: now},
	}
}

func content(text string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
}

// apply performs the changes of a program.
func (f *escapeRace) apply(ctx context.Context, c *callstate.Call) error {
	cfg := c.Config()
	cfg.Changes = func(context.Context, *callstate.Call, callstate.ProposedChanges) ([]*record.Approved, error) {
		return nil, nil
	}
	b, err := fileInternals.NewChangeSet(callstate.New(cfg))
	require.NoError(f.t, err)
	defer b.Close()
	now := time.Now()
	if err := b.Add(ctx, "workspace", now.Add(time.Hour), wants(now)); err != nil {
		return err
	}
	if err := b.Record(ctx); err != nil {
		return err
	}
	return b.Perform(ctx)
}

// TestNoEscapeFromRoot swaps a folder with a link that leads out during
// each operation, the application of a program's changes, and their revert.
// Nothing outside is read, made, changed or removed. No content from outside is
// stored. A reader that compares prefixes is led out in the same race. With
// REMIT_LONG it takes a minute, else a few rounds of each.
func TestNoEscapeFromRoot(t *testing.T) {
	if !newTestEnv(t).root.Features().Beneath {
		t.Skip("this kernel cannot refuse links while it walks")
	}
	names := slices.Sorted(maps.Keys(raced()))
	end, rounds := time.Now().Add(time.Minute), 6
	naive, swaps := 0, 0
	through, refused := map[string]int{}, map[string]int{}
	count := func(name string, err error) {
		if err == nil {
			through[name]++
		} else {
			refused[name]++
		}
	}
	tried := func() bool { return naive > 0 && through["read"] > 0 && through["write"] > 0 }
	for round := 0; round < rounds || !tried() && round < 10_000 || planStep() == 1 && time.Now().Before(end); round++ {
		f := newEscapeRace(t)
		for _, name := range append(names, "apply") {
			f.journal = journal.Memory()
			f.open()
			h := f.host()
			call := f.begin(h)
			for range 3 {
				count(name, f.try(t.Context(), call, name))
				if f.naive() {
					naive++
				}
				call = f.call(h)
			}
			rep, err := f.revertAs(t.Context(), f.host())
			require.NoError(t, err)
			for _, item := range rep.Items {
				count("undo, "+string(item.Outcome), nil)
			}
			f.close()
			require.Equal(t, f.before, f.outsideState(), "%s touched what is outside", name)
			require.False(t, f.leaked(), "%s brought something in", name)
		}
		swaps += f.swaps
		f.end()
	}
	t.Logf("%d swaps, the control leaked %d times; went through: %v; refused: %v", swaps, naive, through, refused)
	require.True(t, tried(), "the race was not real")
}

// try performs one operation once.
func (f *escapeRace) try(ctx context.Context, c *callstate.Call, name string) error {
	defer func() { require.NoError(f.t, c.Close(ctx)) }()
	if name == "apply" {
		return f.apply(ctx, c)
	}
	saw, err := raced()[name](ctx, f.files(c))
	require.NotContains(f.t, fmt.Sprint(saw), "secret", name)
	require.NotContains(f.t, fmt.Sprintf("%+v", saw), fmt.Sprint("Size:", len(secret)), name)
	return err
}
