package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// template is a world that the others are copies of, because creating one with
// git is slow.
var template string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "undo-test-")
	if err != nil {
		panic(err)
	}
	template = dir
	w, err := newTestEnv(filepath.Join(dir, "w"), false)
	if err != nil {
		panic(err)
	}
	code := m.Run()
	if err := errors.Join(w.close(), os.RemoveAll(dir)); err != nil {
		panic(err)
	}
	os.Exit(code)
}

func somewhere(t *testing.T) *testEnv {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "w")
	require.NoError(t, cp(filepath.Join(template, "w"), dir))
	w := testEnvAt(dir)
	var err error
	w.service, err = newService()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.close()) })
	return w
}

func looked(t *testing.T, w *testEnv) snapshot {
	t.Helper()
	s, err := w.look()
	require.NoError(t, err)
	return s
}

// TestOracle checks that the oracle finds each kind of difference, with its
// name, and none between equal worlds.
func TestOracle(t *testing.T) {
	hole := func(w *testEnv) string { return w.path("hole") }
	for name, tt := range map[string]struct {
		prepare, change func(w *testEnv) error
		want            string
		time            bool
	}{
		"bytes":            {change: put("README.md", "# A project\n\nHello, World.\n"), want: "file README.md"},
		"mode":             {change: func(w *testEnv) error { return os.Chmod(w.path("README.md"), 0o600) }, want: "file README.md"},
		"setgid":           {change: func(w *testEnv) error { return os.Chmod(w.path("bin/tool"), 0o755|os.ModeSetgid) }, want: "file bin/tool"},
		"mode of a folder": {change: func(w *testEnv) error { return os.Chmod(w.path("src"), 0o700) }, want: "file src"},
		"type": {change: func(w *testEnv) error {
			return w.sh("rm README.md && mkdir README.md")
		}, want: "file README.md"},
		"gone":             {change: func(w *testEnv) error { return os.Remove(w.path("link")) }, want: "file link"},
		"new":              {change: put("cache/more", "x"), want: "file cache/more"},
		"empty folder":     {change: func(w *testEnv) error { return os.Remove(w.path("empty")) }, want: "file empty"},
		"target of a link": {change: func(w *testEnv) error { return w.sh("ln -sfn README.md link") }, want: "file link"},
		"hard link":        {change: func(w *testEnv) error { return w.sh("cp -p pair.twin t && mv t pair.twin") }, want: "file pair.twin"},
		"attribute":        {change: func(w *testEnv) error { return unix.Setxattr(w.path("data.bin"), "user.a", []byte("b"), 0) }, want: "file data.bin"},
		"value of an attribute": {
			prepare: func(w *testEnv) error { return unix.Setxattr(w.path("data.bin"), "user.a", []byte("a"), 0) },
			change:  func(w *testEnv) error { return unix.Setxattr(w.path("data.bin"), "user.a", []byte("b"), 0) }, want: "file data.bin",
		},
		"hole": {
			prepare: func(w *testEnv) error { return w.sh("truncate -s 4M hole") },
			change:  func(w *testEnv) error { return os.WriteFile(hole(w), make([]byte, 4<<20), 0o644) }, want: "file hole",
		},
		"time":            {change: func(w *testEnv) error { return os.Chtimes(w.path("README.md"), time.Unix(1, 0), time.Unix(1, 2)) }, want: "file README.md", time: true},
		"time of a link":  {change: func(w *testEnv) error { return w.sh("touch -h -d 2020-01-01 link") }, want: "file link", time: true},
		".git":            {change: func(w *testEnv) error { return w.sh("git tag new") }, want: "file .git/refs/tags/new"},
		"outside":         {change: func(w *testEnv) error { return os.WriteFile(filepath.Join(w.outside, "a"), nil, 0o644) }, want: "outside a"},
		"value of a row":  {change: func(w *testEnv) error { return w.sql("UPDATE users SET age = 31 WHERE id = 1") }, want: "row users int64 1"},
		"type of a value": {change: func(w *testEnv) error { return w.sql("UPDATE posts SET text = CAST('hi' AS BLOB) WHERE id = 2") }, want: "row posts int64 2"},
		"null":            {change: func(w *testEnv) error { return w.sql("UPDATE users SET age = 0 WHERE id = 3") }, want: "row users int64 3"},
		"new row":         {change: func(w *testEnv) error { return w.sql("INSERT INTO posts VALUES (9, 1, 'x')") }, want: "row posts int64 9"},
		"row gone":        {change: func(w *testEnv) error { return w.sql("DELETE FROM posts WHERE id = 1") }, want: "row posts int64 1"},
		"schema":          {change: func(w *testEnv) error { return w.sql("CREATE INDEX i ON users (name)") }, want: "schema i"},
		"object": {change: func(w *testEnv) error {
			_, err := envPaths{Service: w.service.at}.act(step{Do: "put", Item: "first", Text: "x"})
			return err
		}, want: "item first"},
		"object gone": {change: func(w *testEnv) error {
			_, err := envPaths{Service: w.service.at}.act(step{Do: "remove", Item: "first"})
			return err
		}, want: "item first"},
		"new object": {change: func(w *testEnv) error {
			_, err := envPaths{Service: w.service.at}.act(step{Do: "post", Text: "x"})
			return err
		}, want: "item n1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := somewhere(t)
			if tt.prepare != nil {
				require.NoError(t, tt.prepare(w))
			}
			before := looked(t, w)
			require.Empty(t, differInTime(before, looked(t, w)), "looking changes nothing")
			require.NoError(t, tt.change(w))
			after := looked(t, w)
			require.Contains(t, differInTime(before, after), tt.want)
			if tt.time {
				require.Empty(t, differ(before, after), "times are apart")
				return
			}
			require.Contains(t, differ(before, after), tt.want)
		})
	}
}

// TestOverlay checks that the expected world keeps another actor's change, with
// its parent folders, and nothing else of the agent.
func TestOverlay(t *testing.T) {
	before := snapshot{"file .": {is: "d"}, "file a": {is: "1"}, "file b": {is: "1"}, "row t 1": {is: "x"}}
	after := snapshot{"file .": {is: "d"}, "file a": {is: "2"}, "file made": {is: "d"}, "file made/theirs": {is: "3"}, "file made/ours": {is: "4"}, "row t 1": {is: "y"}}
	require.Equal(t, snapshot{"file .": {is: "d"}, "file a": {is: "1"}, "file made": {is: "d"}, "file made/theirs": {is: "3"}, "row t 1": {is: "x"}},
		overlay(before, after, []string{"file made/theirs", "file b"}))
}

func TestDoubled(t *testing.T) {
	steps := []step{{Do: "post", Text: "a"}, {Do: "post", Text: "b"}}
	require.Zero(t, doubled(steps, snapshot{"item n1": {is: `{"id":"n1","text":"a"}`}, "item n2": {is: `{"id":"n2","text":"b"}`}}))
	require.Equal(t, 1, doubled(steps, snapshot{"item n1": {is: `{"id":"n1","text":"a"}`}, "item n2": {is: `{"id":"n2","text":"a"}`}}))
}

// TestJudge checks how items that were not restored are counted, and compared
// with the report.
func TestJudge(t *testing.T) {
	w := somewhere(t)
	first := looked(t, w)
	require.NoError(t, put("src/main.txt", "ours\n")(w))
	mine := looked(t, w)
	require.NoError(t, put("src/other.txt", "theirs\n")(w))
	last := looked(t, w)
	r := result{claim: undone}
	tr := &trial{scenario: scenario{}, env: w, result: &r, seen: []snapshot{first, last}, others: last, names: map[string]bool{"file src/other.txt": true}}
	require.NoError(t, tr.judge())
	require.False(t, r.exact)
	require.True(t, r.falsely)
	require.Equal(t, 1, r.left, "%v", r.wrong)
	require.Zero(t, r.foreign)

	require.NoError(t, w.sh("printf 'one\\ntwo\\nthree\\n' > src/main.txt"))
	r = result{claim: undone}
	require.NoError(t, tr.judge())
	require.True(t, r.exact)
	require.False(t, r.inTime)
	require.False(t, r.falsely)

	require.NoError(t, put("src/other.txt", "overwritten\n")(w))
	r = result{claim: partly}
	require.NoError(t, tr.judge())
	require.Equal(t, 1, r.foreign)
	require.False(t, r.falsely, "it did not say so")

	r = result{claim: undone}
	tr.ask, tr.seen = "redo", []snapshot{first, mine}
	require.NoError(t, tr.judge())
	require.Positive(t, r.lost+r.left+r.foreign)
}

func TestScenariosHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range scenarios() {
		require.False(t, seen[s.name], s.name)
		seen[s.name] = true
		require.NotEmpty(t, s.steps)
		require.NotContains(t, s.about, "|")
	}
	require.GreaterOrEqual(t, len(seen), 40)
}

func TestTables(t *testing.T) {
	all := []result{
		{scenario: "edit", method: "remit", exact: true, claim: undone, stored: 20 << 20},
		{scenario: "edit", method: "git", falsely: true, claim: undone, left: 2},
		{scenario: "delete", method: "remit", claim: partly, lost: 1, wrong: []string{"file a"}},
		{scenario: "delete", method: "git", exact: true},
	}
	require.Contains(t, table(all), "| **restored exactly** | **1** | **1** |")
	require.Contains(t, table(all), "| **falsely reported as undone** | **0** | **1** |")
	require.Contains(t, details(all), "**falsely \"undone\"**, 2 left over")
	require.Contains(t, misses(all), "- **delete** was not restored, and remit reported it: partly (file a).")
	require.Equal(t, 2, strings.Count(chart(all), "#c23b32"), "the legend, and one false claim")
}
