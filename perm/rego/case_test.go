package rego_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

var update = flag.Bool("update", false, "rewrite the expected decisions of the cases")

// archive is a txtar file: a comment, and files that begin with "-- name --".
type archive struct {
	comment string
	names   []string
	files   map[string]string
}

func parseArchive(text string) archive {
	a := archive{files: map[string]string{}}
	name := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if head, ok := strings.CutPrefix(trimmed, "-- "); ok && strings.HasSuffix(head, " --") {
			name = strings.TrimSuffix(head, " --")
			a.names = append(a.names, name)
			continue
		}
		if name == "" {
			a.comment += line
			continue
		}
		a.files[name] += line
	}
	return a
}

func (a archive) String() string {
	var b strings.Builder
	b.WriteString(a.comment)
	for _, name := range a.names {
		fmt.Fprintf(&b, "-- %s --\n%s", name, a.files[name])
	}
	return b.String()
}

// TestCases decides the cases in testdata/policy/cases. Each case has policy
// files, optionally data.json, and pairs of N.json and N.want. N.json holds the
// differences from the request of these tests. A policy that does not load has
// load.want.
func TestCases(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/policy/cases/*.txtar")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), 8)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			a := parseArchive(string(text))
			for name, got := range a.decisions(t) {
				if *update {
					a.files[name] = got
					continue
				}
				require.Equal(t, a.files[name], got, name)
			}
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(a.String()), 0o600))
			}
		})
	}
}

// decisions returns the text of every .want file.
func (a archive) decisions(t *testing.T) map[string]string {
	t.Helper()
	o := rego.Options{Modules: map[string]string{}, Timeout: longTimeout}
	for name, text := range a.files {
		if strings.HasSuffix(name, ".rego") {
			o.Modules[name] = text
		}
	}
	if text, ok := a.files["data.json"]; ok {
		require.NoError(t, json.Unmarshal([]byte(text), &o.Data))
	}
	e, err := rego.New(o)
	if err != nil {
		var bad *rego.LoadError
		require.ErrorAs(t, err, &bad)
		var lines strings.Builder
		for _, p := range bad.Problems {
			lines.WriteString(p.String() + "\n")
		}
		return map[string]string{"load.want": lines.String()}
	}
	got := map[string]string{}
	for name, text := range a.files {
		base, ok := strings.CutSuffix(name, ".json")
		if !ok || name == "data.json" {
			continue
		}
		r := request()
		require.NoError(t, json.Unmarshal([]byte(text), &r))
		got[base+".want"] = describe(e.Decide(context.Background(), r))
	}
	return got
}

// describe writes a decision with one part per line.
func describe(d perm.Decision, err error) string {
	var b strings.Builder
	fmt.Fprintln(&b, d.Effect())
	if err != nil {
		for _, sentinel := range []error{rego.ErrSteps, perm.ErrTimeout, rego.ErrEvaluation, rego.ErrInput} {
			if errors.Is(err, sentinel) {
				fmt.Fprintln(&b, "error", err)
			}
		}
		return b.String()
	}
	details := d.Details()
	for _, list := range [][]perm.Reason{details.Reasons, details.Requires, details.HideReasons} {
		for _, r := range list {
			fmt.Fprintln(&b, strings.Join(strings.Fields(r.Set+" "+r.At+" "+r.Text), " "))
		}
	}
	for _, l := range []struct {
		name  string
		texts []string
	}{{"hint", details.Hints}, {"label", details.Labels}, {"redact", details.Redact}, {"mask", details.Masks}} {
		for _, text := range l.texts {
			fmt.Fprintln(&b, l.name, text)
		}
	}
	return b.String()
}
