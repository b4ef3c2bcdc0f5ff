package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/policy"
	"github.com/remit-dev/remit/policies"
)

var updateMistakes = flag.Bool("update-mistakes", false, "rewrite what remit policy check says of each typical mistake")

// archived splits a text into a comment and files that begin with "-- name --".
func archived(text string) (comment string, names []string, files map[string]string) {
	files = map[string]string{}
	name := ""
	for line := range strings.Lines(text) {
		if head, ok := strings.CutPrefix(strings.TrimSpace(line), "-- "); ok && strings.HasSuffix(head, " --") {
			name = strings.TrimSuffix(head, " --")
			names = append(names, name)
		} else if name == "" {
			comment += line
		} else {
			files[name] += line
		}
	}
	return comment, names, files
}

// TestTypicalMistakes holds remit policy check to the place and the remedy of each
// policy in testdata/mistakes. A policy without a mistake has nothing in its want.
func TestTypicalMistakes(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	all, err := filepath.Glob(filepath.Join(here, "testdata/mistakes/*.txtar"))
	require.NoError(t, err)
	require.Greater(t, len(all), 85)
	found := 0
	for _, path := range all {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			comment, names, files := archived(string(text))
			got := mistakes(t, files)
			if *updateMistakes {
				var b strings.Builder
				b.WriteString(comment)
				for _, name := range names {
					if name == "want" {
						files[name] = got
					}
					fmt.Fprintf(&b, "-- %s --\n%s", name, files[name])
				}
				require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
				return
			}
			require.Equal(t, files["want"], got)
			require.Equal(t, strings.HasPrefix(filepath.Base(path), "right-"), got == "", "a mistake is refused or warned of, and nothing else is")
			if got != "" {
				found++
			}
		})
	}
	if flag.Lookup("test.run").Value.String() == "" {
		require.GreaterOrEqual(t, found, 60)
	}
	t.Logf("%d of %d policies are refused or warned of", found, len(all))
}

// mistakes are what remit policy check says of a policy, a problem a line.
func mistakes(t *testing.T, files map[string]string) string {
	dir := t.TempDir()
	for name, text := range files {
		if name == "want" {
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	t.Chdir(dir)
	args := []string{"policy", "check", "--json", "--strict", "."}
	if strings.Contains(files["policy.rego"], "--tools") {
		args = append(args, "--tools")
	}
	code, out, errs := says(t, args...)
	var c policy.CheckOutput
	require.NoError(t, json.Unmarshal([]byte(out), &c), errs)
	list := append(c.Problems, c.Warnings...)
	require.Equal(t, len(list) > 0, code == 5, "%s%s", out, errs)
	var b strings.Builder
	for _, p := range list {
		require.NotEmpty(t, p.At, p.Text)
		require.NotEmpty(t, p.Fix, p.Text)
		fmt.Fprintln(&b, p)
	}
	return b.String()
}

// TestShippedPoliciesAreClean: packs and examples show no warning.
func TestShippedPoliciesAreClean(t *testing.T) {
	paths, err := filepath.Glob("../../examples/*/policy.rego")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, name := range policies.Names() {
		paths = append(paths, policies.Prefix+name)
	}
	for _, path := range paths {
		code, out, errs := says(t, "policy", "check", "--strict", path)
		require.Zero(t, code, "%s: %s%s", path, out, errs)
	}
}
