package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRedactedIsNowhere runs a call whose content the policy redacts, and looks
// for it in all that the command writes: answers, records, the state folder.
func TestRedactedIsNowhere(t *testing.T) {
	const secret = "correct-horse"
	workspace, state := testPlace(t)
	policy := filepath.Join(filepath.Dir(workspace), "p.rego")
	require.NoError(t, os.WriteFile(policy, []byte(`package remit
redact contains "/args/content" if input.tool.name == "file_write"
allow contains "everything" if input.access.resource.name != "no.txt"
`), 0o600))
	script := `{"tool":"file_write","args":{"path":"a.txt","content":"` + secret + `"}}
{"tool":"file_write","args":{"path":"no.txt","content":"` + secret + `"}}
`
	all := map[string]string{}
	command := func(code int, args ...string) string {
		var out, errs bytes.Buffer
		require.Equal(t, code, run(t.Context(), args, testEnv(strings.NewReader(script), &out, &errs)), errs.String())
		all[strings.Join(args[:1], " ")+strings.Join(args[len(args)-1:], " ")] = out.String() + errs.String()
		return out.String()
	}
	command(3, "run", "--workspace", workspace, "--state", state, "--policy", policy, "-")
	command(3, "run", "--workspace", workspace, "--state", state, "--policy", policy, "--json", "-")
	written, err := os.ReadFile(filepath.Join(workspace, "a.txt"))
	require.NoError(t, err)
	require.Equal(t, secret, string(written), "the tool saw it")
	log := command(0, "log", "--state", state, "--json")
	_, after, found := strings.Cut(log, `"txn":"`)
	require.True(t, found)
	txn, _, _ := strings.Cut(after, `"`)
	shown := command(0, "show", "--state", state, txn)
	require.Contains(t, shown, "(hidden)")
	require.Contains(t, shown, "redacted")
	require.Contains(t, command(0, "show", "--state", state, "--json", txn), `"redacted":["/args/content"]`)
	for name, text := range all {
		require.NotContains(t, text, secret, name)
	}
	require.NoError(t, filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		require.NotContains(t, string(data), secret, path)
		return err
	}))
}
