package policies_test

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
)

func workspace(t *testing.T) *rego.Engine {
	t.Helper()
	e, err := rego.New(rego.Options{Sources: []rego.Source{{FS: policies.Workspace(), Prefix: policies.Prefix}}, Deadline: time.Minute})
	require.NoError(t, err)
	return e
}

func TestWorkspacePassesItsTests(t *testing.T) {
	report, err := workspace(t).Test(context.Background())
	require.NoError(t, err)
	require.Empty(t, report.Failed())
	require.GreaterOrEqual(t, len(report.Results), 10)
	require.Empty(t, report.Uncovered, "lines of the pack that no test reaches")
}

// TestWorkspaceRulesMatter takes one rule away at a time: its tests have to
// notice.
func TestWorkspaceRulesMatter(t *testing.T) {
	texts := map[string]string{}
	require.NoError(t, fs.WalkDir(policies.Workspace(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(policies.Workspace(), name)
		texts[name] = string(text)
		return err
	}))
	removed, missed := 0, 0
	for name, text := range texts {
		if strings.HasSuffix(name, "_test.rego") {
			continue
		}
		rules := strings.Split(text, "\n\n")
		for i, rule := range rules {
			if !strings.Contains(rule, " contains ") && !strings.Contains(rule, " if ") {
				continue
			}
			removed++
			without := map[string]string{}
			for n, other := range texts {
				without[n] = other
			}
			kept := append(append([]string{}, rules[:i]...), rules[i+1:]...)
			without[name] = strings.Join(kept, "\n\n")
			t.Run(fmt.Sprintf("%s %d", name, i), func(t *testing.T) {
				e, err := rego.New(rego.Options{Modules: without})
				if err != nil {
					return // another rule needs it
				}
				report, err := e.Test(context.Background())
				if err == nil {
					missed++
					require.NotEmpty(t, report.Failed(), "nobody misses:\n%s", rule)
				}
			})
		}
	}
	t.Logf("%d rules, %d of them found by a failed test, the others do not load", removed, missed)
	require.Greater(t, missed, 15)
}

func request(action perm.Action, path, class string) perm.Request {
	r := perm.Request{Purpose: perm.PurposeRun, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	r.Principal.ID = "coder"
	r.Tool = perm.ToolFacts{Name: "file", Confinement: "handles", Destination: "none"}
	r.Call = perm.CallFacts{EffectClass: class, Declared: true}
	segments := strings.Split(path, "/")
	r.Access.Action = action
	r.Access.Resource = perm.ResourceFacts{
		Kind: "file", Text: "file://workspace/" + path, Root: "workspace", Path: path,
		Segments: segments, Name: segments[len(segments)-1],
	}
	return r
}

func TestWorkspaceDecides(t *testing.T) {
	e := workspace(t)
	for _, tt := range []struct {
		action      perm.Action
		path, class string
		want        perm.Effect
		says        string
	}{
		{perm.Read, "src/a.go", "pure", perm.Allow, "may be read"},
		{perm.Write, "src/a.go", "reversible", perm.Allow, "can be taken back"},
		{perm.Write, "src/a.go", "pivot", perm.Ask, "no way back"},
		{perm.Write, "src/a.go", "pure", perm.Deny, "no rule allows this"},
		{perm.Write, ".git/config", "reversible", perm.Deny, "out of reach"},
		{perm.Read, ".ENV", "pure", perm.Deny, "secrets"},
	} {
		d, err := e.Decide(context.Background(), request(tt.action, tt.path, tt.class))
		require.NoError(t, err)
		require.Equal(t, tt.want, d.Effect(), "%v", tt)
		require.Contains(t, d.Reasons()[0].Text, tt.says)
		if tt.want == perm.Deny {
			require.NotEmpty(t, d.Details().Hints)
		}
	}
	r := request(perm.Read, "src/a.go", "pivot")
	r.Call.Declared = false
	d, err := e.Decide(context.Background(), r)
	require.NoError(t, err)
	require.Equal(t, perm.Deny, d.Effect())
	require.Contains(t, d.Reasons()[0].Text, "declares no effect class")
	require.Contains(t, d.Reasons()[0].At, "builtin:workspace/workspace.rego:")
}

// TestWorkspaceMasksWhatItDenies holds the two against each other: a path that
// a tool may not read is one that a program does not see.
func TestWorkspaceMasksWhatItDenies(t *testing.T) {
	e := workspace(t)
	for _, path := range []string{
		".git/config", "a/.git/x/y", ".env", "a/.env.local", ".ssh/id", "b/id_rsa", "id_ed25519.pub", "a/b.pem", "k.key",
		".netrc", ".npmrc", "credentials", "src/a.go", "env", ".gitignore", "a.git/x", "credentials.go", "a/monkey",
	} {
		d, err := e.Decide(context.Background(), request(perm.Read, path, "pure"))
		require.NoError(t, err)
		r, err := perm.FileResource("workspace", path)
		require.NoError(t, err)
		masked := false
		for _, text := range d.Details().Masks {
			p, err := perm.ParsePattern(text)
			require.NoError(t, err)
			masked = masked || p.Matches(r)
		}
		require.Equal(t, d.Effect() == perm.Deny, masked, path)
	}
}

func ExampleWorkspace() {
	e, err := rego.Load(rego.Source{FS: policies.Workspace(), Prefix: policies.Prefix})
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := e.Decide(context.Background(), request(perm.Write, "notes.txt", "reversible"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Effect(), "because", d.Reasons()[0].Text)
	// Output: allow because changes of the workspace that can be taken back may be made
}
