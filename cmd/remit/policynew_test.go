package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/policies"
)

// says runs the command and returns its exit code and what it wrote.
func says(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, testEnv(nil, &o, &e))
	return code, o.String(), e.String()
}

// TestPolicyNew: each pack can be copied, and its copy decides and passes its tests.
func TestPolicyNew(t *testing.T) {
	for _, name := range policies.Names() {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "mine")
			code, out, errs := says(t, "policy", "new", "--from", name, dir)
			require.Zero(t, code, errs)
			require.Contains(t, out, "remit policy check "+dir)
			code, out, errs = says(t, "policy", "test", dir)
			require.Zero(t, code, out+errs)
			before, err := os.ReadDir(dir)
			require.NoError(t, err)
			code, _, errs = says(t, "policy", "new", "--from", "builtin:"+name, dir)
			require.Equal(t, 2, code)
			require.Contains(t, errs, "is there already")
			require.Contains(t, errs, "nothing was written")
			after, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
	code, _, errs := says(t, "policy", "new", "--from", "worksapce", t.TempDir())
	require.Equal(t, 2, code)
	require.Contains(t, errs, "did you mean builtin:workspace?")
	code, _, errs = says(t, "policy", "new")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "builtin:askall, builtin:coding-agent, builtin:commit-gate, builtin:flow")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	code, _, errs = says(t, "policy", "new", "--from", "flow", filepath.Join(file, "below"))
	require.Equal(t, 2, code)
	require.NotContains(t, errs, "internal")
}

// TestPacksByName: a pack is named wherever a policy is, alone or beside files.
func TestPacksByName(t *testing.T) {
	for _, name := range policies.Names() {
		code, out, errs := says(t, "policy", "test", "builtin:"+name)
		require.Zero(t, code, "%s: %s%s", name, out, errs)
	}
	dir := t.TempDir()
	mine := filepath.Join(dir, "mine.rego")
	require.NoError(t, os.WriteFile(mine, []byte("package remit\n\nimport data.remit.lib\n\nallow contains \"docs\" if lib.below(\"workspace\", \"docs\")\n"), 0o600))
	code, out, errs := says(t, "policy", "check", "builtin:workspace", "builtin:flow", "builtin:readonly", mine)
	require.Zero(t, code, out+errs)
	require.Contains(t, out, "loaded; 0 tests", "tests of a pack hold for it alone")
	require.NotContains(t, out, "no test reaches builtin:")
	code, _, errs = says(t, "policy", "check", "builtin:flwo")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "did you mean builtin:flow?")
	require.Contains(t, errs, "builtin:workspace")
}
