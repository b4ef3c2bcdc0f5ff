package define_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/define"
)

// post is a watch under way, with what it tells.
type post struct {
	*testing.T
	reported chan error
	ended    chan error
	stop     func()
	live     *define.Watcher
	names    chan []string // of the tools that were put in force
	now      []string
}

func watched(t *testing.T, dir string) *post {
	ctx, stop := context.WithCancel(t.Context())
	p := &post{T: t, reported: make(chan error, 4096), ended: make(chan error, 1), names: make(chan []string, 4096), stop: stop}
	var err error
	p.live, err = define.Open(dir, implementations(t), func(tools []tool.Tool) error {
		var names []string
		for _, t := range tools {
			names = append(names, t.Name())
		}
		p.names <- names
		return nil
	}, define.AllowUnused())
	require.NoError(t, err)
	go func() { p.ended <- p.live.Watch(ctx, func(_ bool, err error) { p.reported <- err }) }()
	t.Cleanup(func() {
		stop()
		require.ErrorIs(t, <-p.ended, context.Canceled)
	})
	p.until("the first look", func(err error) bool { return err == nil })
	return p
}

// until takes what is told up to what is meant.
func (p *post) until(what string, is func(err error) bool) {
	p.Helper()
	for {
		select {
		case err := <-p.reported:
			for len(p.names) > 0 {
				p.now = <-p.names
			}
			if is(err) {
				return
			}
		case err := <-p.ended:
			p.ended <- err
			p.Fatalf("%s: the watch ended: %v", what, err)
		}
	}
}

func (p *post) has(names ...string) func(error) bool {
	return func(error) bool { return strings.Join(p.now, " ") == strings.Join(names, " ") }
}

func called(name string) string {
	return strings.Replace(bare(), `"name": "note"`, `"name": "`+name+`"`, 1)
}

// TestWatchOfALink: a folder that is a link is watched where it leads to, and again where it
// is made to lead elsewhere.
func TestWatchOfALink(t *testing.T) {
	home := t.TempDir()
	first, second, link := filepath.Join(home, "v1"), filepath.Join(home, "v2"), filepath.Join(home, "now")
	for _, dir := range []string{first, second} {
		require.NoError(t, os.Mkdir(dir, 0o755))
	}
	put(t, first, "note.json", called("one"))
	put(t, second, "note.json", called("two"))
	require.NoError(t, os.Symlink("v1", link))
	p := watched(t, link)
	put(t, first, "note.json", called("other"))
	p.until("a file behind the link", p.has("other"))
	require.NoError(t, os.Symlink(second, link+".new"))
	require.NoError(t, os.Rename(link+".new", link))
	p.until("the link leads elsewhere", p.has("two"))
	put(t, second, "note.json", called("third"))
	p.until("a file there", p.has("third"))
}

// TestWatchOfLinkedFiles, as a cluster gives them: each is a link through one folder that
// is exchanged in one step.
func TestWatchOfLinkedFiles(t *testing.T) {
	dir := t.TempDir()
	for version, name := range map[string]string{"..1": "one", "..2": "two"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, version), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, version, "note.json"), []byte(called(name)), 0o644))
	}
	require.NoError(t, os.Symlink("..1", filepath.Join(dir, "..data")))
	require.NoError(t, os.Symlink("..data/note.json", filepath.Join(dir, "note.json")))
	p := watched(t, dir)
	require.NoError(t, os.Symlink("..2", filepath.Join(dir, "..new")))
	require.NoError(t, os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")))
	p.until("the folder was exchanged", p.has("two"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "..2", "note.json"), []byte(called("three")), 0o644))
	p.until("a file behind two links", p.has("three"))
}

// TestWatchOfAFolderThatGoes removes the folder of definitions. The tools stay,
// and Watch reports an error. Watch loads a new folder in its place, even if
// the folder above was replaced too.
func TestWatchOfAFolderThatGoes(t *testing.T) {
	above := filepath.Join(t.TempDir(), "above")
	dir := filepath.Join(above, "tools")
	made := func(name string) {
		require.NoError(t, os.MkdirAll(dir, 0o755))
		put(t, dir, "note.json", called(name))
	}
	made("one")
	p := watched(t, dir)
	bad := func(err error) bool { return err != nil }
	require.NoError(t, os.RemoveAll(dir))
	p.until("it is gone", bad)
	made("two")
	p.until("it is there again", p.has("two"))
	require.NoError(t, os.RemoveAll(above))
	p.until("so is the folder above", bad)
	made("three")
	p.until("both are there again", p.has("three"))
	put(t, dir, "note.json", called("four"))
	p.until("a change in there", p.has("four"))
	require.NoError(t, os.Rename(above, above+".old"))
	p.until("it was moved away", bad)
	require.NoError(t, os.Rename(above+".old", above))
	put(t, dir, "note.json", called("five"))
	p.until("and back", p.has("five"))
}

// TestWatchOfAHalfWrittenFile: what is in force stays until the file is whole.
func TestWatchOfAHalfWrittenFile(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "note.json", called("one"))
	p := watched(t, dir)
	text := called("two")
	f, err := os.Create(filepath.Join(dir, "note.json"))
	require.NoError(t, err)
	_, err = f.WriteString(text[:len(text)/2])
	require.NoError(t, err)
	p.until("half of it", func(err error) bool {
		require.True(t, p.now == nil || p.has("one")(nil), "%v", p.now)
		return err != nil
	})
	_, err = f.WriteString(text[len(text)/2:])
	require.NoError(t, errors.Join(err, f.Close()))
	p.until("all of it", p.has("two"))
}

// TestWatchOfManyChanges checks that the last of many changes is in force, even
// if Watch skips earlier ones.
func TestWatchOfManyChanges(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "note.json", called("first"))
	p := watched(t, dir)
	const many = 1000
	for i := range many {
		put(t, dir, "note.json", called(fmt.Sprint("note", i)))
	}
	p.until("the last one", p.has(fmt.Sprint("note", many-1)))
	changed, err := p.live.Reload()
	require.NoError(t, err)
	require.False(t, changed)
}

// oneLookContext is a context that ends once it was looked at.
type oneLookContext struct {
	context.Context //nolint:containedctx // it is one

	looked bool
}

// Err is nil once.
func (b *oneLookContext) Err() error {
	if !b.looked {
		b.looked = true
		return nil
	}
	return b.Context.Err()
}

// TestWatchThatEndsWhileItLoads checks that Watch applies and reports nothing
// after its context has ended.
func TestWatchThatEndsWhileItLoads(t *testing.T) {
	dir, uses := t.TempDir(), 0
	put(t, dir, "note.json", called("one"))
	live, err := define.Open(dir, implementations(t), func([]tool.Tool) error {
		uses++
		return nil
	}, define.AllowUnused())
	require.NoError(t, err)
	put(t, dir, "note.json", called("two"))
	ended, end := context.WithCancel(t.Context())
	end()
	err = live.Watch(&oneLookContext{Context: ended}, func(bool, error) { t.Error("nothing is to be told any more") })
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, uses)
}
