package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/policy"
)

// TestRevisionIsOfTheContent: whatever path leads to a policy, what decides has
// one name, and another as soon as something else would decide.
func TestRevisionIsOfTheContent(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	for _, root := range []string{"one", "two/deep[1]*"} {
		write(root+"/a/p.rego", "package remit\nallow contains \"listed\" if input.tool.name in data.a.names\n")
		write(root+"/a/data.json", `{"names":["x"]}`)
		write(root+"/a/input.json", `{"not":"data"}`)
	}
	revision := func(paths ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		require.Equal(t, 0, run(t.Context(), append([]string{"policy", "check", "--json"}, paths...), testEnv(nil, &out, &errs)), out.String()+errs.String())
		var c policy.CheckOutput
		require.NoError(t, json.Unmarshal(out.Bytes(), &c))
		return c.Revision
	}
	t.Chdir(filepath.Join(dir, "one"))
	first := revision(".")
	for _, path := range []string{filepath.Join(dir, "one"), "../one/", filepath.Join(dir, "two", "deep[1]*"), "../two/./deep[1]*"} {
		require.Equal(t, first, revision(path), path)
	}
	require.Equal(t, first, revision(".", "a/p.rego", "a/data.json"), "each file counts once")
	require.NoError(t, os.Symlink(filepath.Join(dir, "one"), filepath.Join(dir, "link")))
	require.Equal(t, first, revision(filepath.Join(dir, "link")))
	write("one/a/data.json", `{"names":["x","y"]}`)
	require.NotEqual(t, first, revision("."))
	for _, root := range []string{"one", "two/deep[1]*"} { // it reads no data, which a file alone does not bring
		write(root+"/a/q.rego", "package remit\nallow contains \"listed\" if input.tool.name == \"x\"\n")
	}
	single := revision("a/q.rego")
	require.Equal(t, single, revision(filepath.Join(dir, "two", "deep[1]*", "a", "q.rego")))
}
