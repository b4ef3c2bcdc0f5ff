package rego_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

func reloader(t *testing.T, tree fstest.MapFS) *rego.Reloader {
	t.Helper()
	r, err := rego.NewReloader(context.Background(), rego.Options{Sources: []rego.Source{{FS: tree}}, Timeout: longTimeout})
	require.NoError(t, err)
	return r
}

func TestReload(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("p.rego", control)
	ctx := context.Background()
	r, err := rego.NewReloader(ctx, rego.Options{Sources: []rego.Source{{FS: os.DirFS(dir), Prefix: "mine/"}}, Timeout: longTimeout})
	require.NoError(t, err)
	require.Equal(t, perm.Allow, decide(t, r, request()).Effect())
	first := r.Engine()

	changed, err := r.Reload(ctx)
	require.NoError(t, err)
	require.False(t, changed)
	require.Same(t, first, r.Engine(), "what it remembers is kept")

	for name, broken := range map[string]struct{ file, text, says string }{
		"does not compile": {"p.rego", control + "deny contains \"x\" if {", "mine/p.rego:4"},
		"unknown field":    {"p.rego", control + "deny contains \"x\" if input.tol.name == \"x\"", "tol"},
		"failed test":      {"p_test.rego", "package remit_test\ntest_x if data.remit.deny[\"x\"]", "mine/p_test.rego:2: the policy's own test test_x does not hold"},
		"test that errs":   {"p_test.rego", "package remit_test\ntest_x if to_number(\"x\") == 1", "to_number"},
		"broken test":      {"p_test.rego", "package remit_test\ntest_x if nothing", "mine/p_test.rego:2"},
		"a second broken":  {"q.rego", "package remit\nalow contains \"x\"", "did you mean allow?"},
	} {
		t.Run(name, func(t *testing.T) {
			write(broken.file, broken.text)
			changed, err := r.Reload(ctx)
			require.False(t, changed)
			var bad *rego.LoadError
			require.ErrorAs(t, err, &bad)
			require.ErrorContains(t, err, broken.says)
			require.ErrorContains(t, err, first.Revision()+" still decides")
			require.Same(t, first, r.Engine())
			require.NoError(t, os.Remove(filepath.Join(dir, broken.file)))
			write("p.rego", control)
		})
	}

	write("p.rego", control+`deny contains "closed"`)
	require.Equal(t, perm.Allow, decide(t, r, request()).Effect(), "nothing watches")
	changed, err = r.Reload(ctx)
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, []perm.Reason{{Text: "closed", At: "mine/p.rego:4", Set: "deny"}}, decide(t, r, request()).Reasons())
	require.NotEqual(t, first.Revision(), r.Revision())

	require.NoError(t, os.Remove(filepath.Join(dir, "p.rego")))
	_, err = r.Reload(ctx)
	require.ErrorContains(t, err, "defines no rule", "a policy that is gone is no policy that denies")
	require.Equal(t, perm.Deny, decide(t, r, request()).Effect())
}

func TestReloaderBegins(t *testing.T) {
	_, err := rego.NewReloader(context.Background(), rego.Options{})
	require.ErrorContains(t, err, "defines no rule")
	_, err = rego.NewReloader(context.Background(), rego.Options{Modules: map[string]string{
		"p.rego": control, "p_test.rego": "package remit_test\ntest_x if false",
	}})
	require.ErrorContains(t, err, "test_x does not hold")
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = rego.NewReloader(gone, rego.Options{Modules: map[string]string{"p.rego": control}})
	require.ErrorIs(t, err, context.Canceled)
	r := reloader(t, fstest.MapFS{"p.rego": {Data: []byte(control)}})
	_, err = r.Reload(gone)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, perm.Allow, decide(t, r, request()).Effect())
}

// TestReloadsAtOnce checks that the last reload to start wins, in any order of
// completion. One policy makes all of each decision.
func TestReloadsAtOnce(t *testing.T) {
	text := [2]string{"package remit\nallow contains \"gen 0\"\nhint contains \"gen 0\"", "package remit\nallow contains \"gen 1\"\nhint contains \"gen 1\""}
	dir := t.TempDir()
	write := func(i int) {
		name := filepath.Join(dir, "p.rego")
		require.NoError(t, os.WriteFile(name+".new", []byte(text[i%2]), 0o600))
		require.NoError(t, os.Rename(name+".new", name))
	}
	write(0)
	ctx := context.Background()
	r, err := rego.NewReloader(ctx, rego.Options{Sources: []rego.Source{{FS: os.DirFS(dir)}}, Timeout: longTimeout})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for i := range 12 {
		write(i)
		for range 3 {
			wg.Go(func() { _, _ = r.Reload(ctx) })
		}
		d := decide(t, r, request())
		require.Equal(t, []string{d.Reasons()[0].Text}, d.Details().Hints)
	}
	last, err := r.Reload(ctx)
	require.NoError(t, err)
	wg.Wait()
	t.Log("the last one changed something:", last)
	require.Equal(t, "gen 1", decide(t, r, request()).Reasons()[0].Text)
}

// TestNoTests loads a pack beside rules that its own tests do not expect.
func TestNoTests(t *testing.T) {
	pack := fstest.MapFS{
		"p.rego":      {Data: []byte(control)},
		"p_test.rego": {Data: []byte("package remit_p_test\n\ntest_free if count(data.remit.deny) == 0\n")},
	}
	mine := map[string]string{"mine.rego": "package remit\ndeny contains \"closed\"\nensure contains \"never\" if false"}
	o := rego.Options{Modules: mine, Sources: []rego.Source{{FS: pack, Prefix: "builtin:"}}, Timeout: longTimeout}
	_, err := rego.NewReloader(context.Background(), o)
	require.ErrorContains(t, err, "builtin:p_test.rego:3")
	o.Sources[0].NoTests = true
	r, err := rego.NewReloader(context.Background(), o)
	require.NoError(t, err)
	require.Equal(t, perm.Deny, decide(t, r, request()).Effect())
	require.True(t, r.Ensures())
	require.False(t, (&rego.SwappableEngine{}).Ensures())
}
