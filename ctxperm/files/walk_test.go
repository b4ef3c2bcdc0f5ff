package files_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/perm"
)

// denying denies resources whose text contains one of the parts.
func (w *testEnv) denying(parts ...string) {
	w.gate = func(_ context.Context, a perm.ResourceAccess) (callstate.Ruling, error) {
		w.asked = append(w.asked, a)
		for _, part := range parts {
			if strings.Contains(a.String(), part) {
				return callstate.Ruling{}, &callstate.DeniedError{Access: a, Stage: "policy", Why: "no"}
			}
		}
		return callstate.Ruling{}, nil
	}
}

func TestWalk(t *testing.T) {
	w := newTestEnv(t)
	w.createFiles()
	require.NoError(t, os.MkdirAll(filepath.Join(w.dir, "secret/deep"), 0o755))
	w.put("secret/in", "two", 0o600)
	w.put(".remit-stage-0", "", 0o600)
	w.denying("/secret", "run.sh")
	f, ctx := w.files(w.begin(w.host())), t.Context()
	paths := func(dir string) (out []string) {
		page, err := f.Walk(ctx, dir, 1)
		require.NoError(t, err)
		require.False(t, page.HasMore)
		for _, e := range page.Items {
			out = append(out, e.Path+" "+e.Type)
		}
		return out
	}
	require.Equal(t, []string{"a.txt file", "dir dir", "dir/b.txt file", "dir/empty dir", "link link", "long.txt file"}, paths("."))
	require.Equal(t, []string{"dir/b.txt file", "dir/empty dir"}, paths("dir"))
	for _, a := range w.asked {
		require.NotContains(t, a.String(), "deep", "below what is denied nobody asks")
	}
	_, err := f.Walk(ctx, "secret", 1)
	require.ErrorIs(t, err, ctxperm.ErrDenied)
	_, err = f.Walk(ctx, "dir", 0)
	require.ErrorIs(t, err, ctxperm.ErrInvalid)
}

func TestPages(t *testing.T) {
	w := newTestEnv(t)
	const all = files.PageEntries + 7
	for i := range all {
		w.put(fmt.Sprintf("f%04d", i), "here\n", 0o600)
	}
	f, ctx := w.files(w.begin(w.host())), t.Context()
	for page, want := range map[int]struct {
		n    int
		more bool
	}{1: {files.PageEntries, true}, 2: {7, false}, 3: {0, false}} {
		listed, err := f.ListPage(ctx, ".", page)
		require.NoError(t, err)
		require.Len(t, listed.Items, want.n)
		require.Equal(t, want.more, listed.HasMore)
		walked, err := f.Walk(ctx, ".", page)
		require.NoError(t, err)
		require.Len(t, walked.Items, want.n)
		require.Equal(t, want.more, walked.HasMore)
	}
	seen := map[string]bool{}
	for page := 1; ; page++ {
		found, err := f.Search(ctx, ".", files.Query{Pattern: "here", Page: page})
		require.NoError(t, err)
		for _, m := range found.Items {
			require.False(t, seen[m.Path])
			seen[m.Path] = true
		}
		if !found.HasMore {
			break
		}
		require.Len(t, found.Items, files.PageMatches)
	}
	require.Len(t, seen, all)
}

func TestSearch(t *testing.T) {
	w := newTestEnv(t)
	w.createFiles()
	require.NoError(t, os.MkdirAll(filepath.Join(w.dir, "src/deep"), 0o755))
	for name, data := range map[string]string{
		"src/x.go": "two\r\nf(x)\n", "src/deep/y.go": "two", "src/secret": "two", "src/bin": "two\x00", "src/odd": "two\xff",
		"src/wide": "two" + strings.Repeat("é", 400), "src/huge": strings.Repeat("two\n", files.MaxSearched/4+1),
	} {
		w.put(name, data, 0o600)
	}
	w.denying("secret")
	f, ctx := w.files(w.begin(w.host())), t.Context()
	for _, c := range []struct {
		dir  string
		q    files.Query
		want []string
	}{
		{".", files.Query{Pattern: "^t.o$"}, []string{"a.txt:2:two", "src/deep/y.go:1:two", "src/x.go:1:two"}},
		{"src", files.Query{Pattern: "two", Glob: "*.go"}, []string{"src/deep/y.go:1:two", "src/x.go:1:two"}},
		{".", files.Query{Pattern: "two", Glob: "src/*.go"}, []string{"src/x.go:1:two"}},
		{".", files.Query{Pattern: "two", Glob: "src/**/*.go"}, []string{"src/deep/y.go:1:two", "src/x.go:1:two"}},
		{".", files.Query{Pattern: "two", Glob: "**/a.txt/**"}, []string{"a.txt:2:two"}},
		{".", files.Query{Pattern: "f(x)", Literal: true}, []string{"src/x.go:2:f(x)"}},
		{"a.txt", files.Query{Pattern: "(?i)TWO|three"}, []string{"a.txt:2:two", "a.txt:3:three"}},
		{"dir", files.Query{Pattern: "two"}, nil},
		{"src/secret", files.Query{Pattern: "x"}, nil},
	} {
		c.q.Page = 1
		page, err := f.Search(ctx, c.dir, c.q)
		if strings.Contains(c.dir, "secret") {
			require.ErrorIs(t, err, ctxperm.ErrDenied)
			continue
		}
		require.NoError(t, err)
		var got []string
		for _, m := range page.Items {
			got = append(got, fmt.Sprintf("%s:%d:%s", m.Path, m.Line, m.Text))
		}
		require.Equal(t, c.want, got, "%v", c.q)
		require.False(t, page.HasMore)
	}
	page, err := f.Search(ctx, "src/wide", files.Query{Pattern: "two", Page: 1})
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	require.LessOrEqual(t, len(page.Items[0].Text), files.MaxLine)
	for _, bad := range []files.Query{
		{Pattern: "x"},
		{Pattern: "", Page: 1},
		{Pattern: "(", Page: 1},
		{Pattern: strings.Repeat("x", 1001), Page: 1},
		{Pattern: "x", Glob: "[", Page: 1},
		{Pattern: "x", Page: 1 << 40},
	} {
		_, err := f.Search(ctx, ".", bad)
		require.ErrorIs(t, err, ctxperm.ErrInvalid)
	}
}
