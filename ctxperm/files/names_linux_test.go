package files_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/revert/effect"
)

// oddNames returns names that this system accepts, but that break other
// systems, shells, logs or JSON.
func oddNames() []string {
	return []string{
		"\xff", "caf\xe9", "caf%E9", "café", "cafe\u0301", "a\xc3(", "\xed\xa0\x80", // bytes that are not text, and text that looks like them
		"trailing.", "trailing", "trailing ", " leading", "...", "..x", "con", "nul.txt", "c:", `back\slash`,
		"-rf", "--", "~", "$HOME", "`id`", "*", "?[a]", "{path}", "a:b", "a?statement=x", "#", "line\nbreak", "\x1b[31mred", "\u202ename",
		"Case", "case", "CASE", "ß", "SS", "İ", strings.Repeat("n", 255), strings.Repeat("\x80", 255),
	}
}

// TestOddNames checks that names are bytes. Each names one file for every
// operation, and a revert restores it, also after a crash.
func TestOddNames(t *testing.T) {
	fresh := func() *testEnv {
		w := newTestEnv(t)
		require.NoError(t, os.MkdirAll(filepath.Join(w.dir, "odd/d\xff/sub"), 0o755))
		for _, name := range oddNames() {
			w.put("odd/"+name, name, 0o640)
		}
		w.put("odd/d\xff/x\xfe", "deep", 0o600)
		require.NoError(t, os.Symlink("to\xff", filepath.Join(w.dir, "odd/d\xff/link\xfd")))
		return w
	}
	for name, do := range map[string]func(context.Context, *files.Files) error{
		"delete all": func(ctx context.Context, f *files.Files) error { return f.DeleteAll(ctx, "odd") },
		"move":       func(ctx context.Context, f *files.Files) error { return f.Move(ctx, "odd", "other\xff") },
		"copy":       func(ctx context.Context, f *files.Files) error { return f.Copy(ctx, "odd", "other\xff") },
		"each": func(ctx context.Context, f *files.Files) error {
			for i, name := range oddNames() {
				var err error
				switch name = "odd/" + name; i % 4 {
				case 0:
					err = f.Delete(ctx, name)
				case 1:
					err = f.Write(ctx, name, []byte("new"), files.WriteOptions{})
				case 2:
					err = f.Move(ctx, name, "moved-"+filepath.Base(name)[:min(len(filepath.Base(name)), 200)])
				default:
					err = f.Chmod(ctx, name, 0o600)
				}
				if err != nil {
					return err
				}
			}
			return f.Mkdir(ctx, "odd/new\xff", 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := fresh()
			before := w.tree()
			h := w.host()
			points := 0
			h.OnPoint = func(string) error { points++; return nil }
			require.NoError(t, w.do(h, do))
			require.NotEqual(t, before, w.tree())
			require.Empty(t, w.revert().NotReverted())
			require.Equal(t, before, w.tree())
			for n := 1 + points%97; n < points; n += statcheck.Stride(1 + points/8) {
				w := fresh()
				before := w.tree()
				c := &crash{left: n}
				_ = w.do(c.on(w.host()), do)
				require.Empty(t, w.revert().NotReverted(), "died at point %d", n)
				require.Equal(t, before, w.tree(), "died at point %d", n)
				w.end()
			}
		})
	}
}

// TestOddNamesAreFound checks that lists and searches show each once.
func TestOddNamesAreFound(t *testing.T) {
	w := newTestEnv(t)
	for _, name := range oddNames() {
		w.put(name, "needle", 0o640)
	}
	f := w.files(w.begin(w.host()))
	want := slices.Sorted(slices.Values(oddNames()))
	list, err := f.List(t.Context(), ".")
	require.NoError(t, err)
	walk, err := f.Walk(t.Context(), ".", 1)
	require.NoError(t, err)
	found, err := f.Search(t.Context(), ".", files.Query{Pattern: "needle", Page: 1})
	require.NoError(t, err)
	var listed, walked, matched []string
	for _, e := range list {
		listed = append(listed, e.Name)
	}
	for _, e := range walk.Items {
		walked = append(walked, e.Path)
	}
	for _, m := range found.Items {
		matched = append(matched, m.Path)
	}
	require.Equal(t, want, listed)
	require.Equal(t, want, walked)
	require.Equal(t, want, matched)
}

// TestOddNameInAConflict checks that a message about a file whose name is not
// text fits into a record, and is readable.
func TestOddNameInAConflict(t *testing.T) {
	w := newTestEnv(t)
	w.put("caf\xe9", "one", 0o640)
	require.NoError(t, os.Mkdir(filepath.Join(w.dir, "d\xff"), 0o755))
	w.put("d\xff/x\xfe", "gone", 0o640)
	require.NoError(t, w.do(w.host(), func(ctx context.Context, f *files.Files) error {
		if err := f.Mkdir(ctx, "made", 0); err != nil {
			return err
		}
		if err := f.Delete(ctx, "d\xff/x\xfe"); err != nil {
			return err
		}
		return f.Write(ctx, "caf\xe9", []byte("two"), files.WriteOptions{})
	}))
	require.NoError(t, os.Remove(filepath.Join(w.dir, "d\xff")))
	w.put("caf\xe9", "theirs", 0o640)
	w.put("made/their\xe9", "x", 0o640)
	rep := w.revert()
	left := rep.NotReverted()
	require.Len(t, left, 3)
	for _, item := range left {
		require.Contains(t, []effect.Outcome{effect.Conflict, effect.Failed}, item.Outcome)
		require.True(t, utf8.ValidString(item.Why), item.Why)
		require.NotEmpty(t, item.Why)
	}
	require.Equal(t, "theirs", w.read("caf\xe9"))
}
