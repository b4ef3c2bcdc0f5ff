package policies_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
)

// load makes an engine of packs. Its timeout is long, because the machine may
// be busy.
func load(t *testing.T, packs ...fs.FS) *rego.Engine {
	t.Helper()
	o := rego.Options{Timeout: time.Minute}
	for _, pack := range packs {
		o.Sources = append(o.Sources, rego.Source{FS: pack, Prefix: policies.Prefix})
	}
	e, err := rego.New(o)
	require.NoError(t, err)
	return e
}

func workspace(t *testing.T) *rego.Engine {
	t.Helper()
	return load(t, policies.Workspace())
}

// packs returns every pack, each with the packs that it needs to decide.
func packs() map[string][]fs.FS {
	nothing := fstest.MapFS{"nothing.rego": {Data: []byte("package remit\n\nallow contains \"x\" if false\n")}}
	return map[string][]fs.FS{
		"workspace":     {policies.Workspace()},
		"readonly":      {policies.ReadOnly()},
		"askall":        {policies.AskAll()},
		"coding-agent":  {policies.CodingAgent()},
		"flow":          {policies.Flow()},
		"user_provided": {policies.UserProvided()},
		"untrusted":     {policies.Untrusted()},
		"provenance":    {policies.Provenance()},
		"commit-gate":   {policies.CommitGate()},
		"lib":           {policies.Lib(), nothing},
	}
}

func TestPacksPassTheirTests(t *testing.T) {
	for name, pack := range packs() {
		t.Run(name, func(t *testing.T) {
			e := load(t, pack...)
			report, err := e.Test(context.Background())
			require.NoError(t, err)
			require.Empty(t, report.Failed())
			require.GreaterOrEqual(t, len(report.Results), 4)
			uncovered := slices.DeleteFunc(report.Uncovered, func(at string) bool {
				// The tests of a pack reach its own files. It can have files of others.
				from, _, _ := policies.ParseName(at)
				return from != name
			})
			require.Empty(t, uncovered, "lines of the pack that no test reaches")
			for _, n := range e.SlowRules() {
				t.Log(n.At, n.Text)
			}
		})
	}
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
		{perm.Write, "src/a.go", "reversible", perm.Allow, "reversible changes"},
		{perm.Write, "src/a.go", "pivot", perm.Ask, "cannot be reverted"},
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

// TestWorkspaceMasksWhatItDenies compares masks and denials: a program does not
// see a path that a tool may not read. Each pair and triple of names is a path,
// because the position of a name matters.
func TestWorkspaceMasksWhatItDenies(t *testing.T) {
	e := workspace(t)
	d, err := e.Decide(context.Background(), request(perm.Read, "a", "pure"))
	require.NoError(t, err)
	var masks []perm.Mask
	for _, text := range d.Details().Masks {
		m, err := perm.ParseMask(text)
		require.NoError(t, err)
		masks = append(masks, m)
	}
	names := []string{
		".git", ".gitignore", "a.git", ".env", ".env.local", ".env.Example", ".ssh", "id_rsa", "ID_ed25519.pub", "b.pem", "Cacert.pem", "key-cert.pem",
		"k.key", "..env.swp", "k.key.bak", "p.env", ".docker", "config.json", ".npmrc", "credentials", "credentials.go", "src", "test", "Tests", "testdata", "fixtures", "a",
	}
	paths := slices.Clone(names)
	for _, one := range names {
		for _, two := range names {
			paths = append(paths, one+"/"+two)
			for _, three := range []string{"config.json", "Example.env", "src", "test", "a", "b.pem", "cacert.pem", ".env.example", ".env", "id_rsa"} {
				paths = append(paths, one+"/"+two+"/"+three)
			}
		}
	}
	for _, path := range paths {
		d, err := e.Decide(context.Background(), request(perm.Read, path, "pure"))
		require.NoError(t, err)
		require.Equal(t, d.Effect() == perm.Deny, hides(t, masks, path), path)
	}
}

// hides reports whether masks hide a path, or one of its parents.
func hides(t *testing.T, masks []perm.Mask, path string) bool {
	for end := range len(path) + 1 {
		if end < len(path) && path[end] != '/' {
			continue
		}
		own, err := perm.FileResource("workspace", path[:end])
		require.NoError(t, err)
		lower, err := perm.FileResource("workspace", strings.ToLower(path[:end]))
		require.NoError(t, err)
		if slices.ContainsFunc(masks, func(m perm.Mask) bool { return m.Matches(own, lower) }) {
			return true
		}
	}
	return false
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
	// Output: allow because reversible changes of the workspace are allowed
}

// TestFlowBesideWorkspace checks that the pack denies what the other one asks
// about, and adds its labels.
func TestFlowBesideWorkspace(t *testing.T) {
	e := load(t, policies.Workspace(), policies.Flow())
	r := request(perm.Read, "src/a.go", "pure")
	d, err := e.Decide(context.Background(), r)
	require.NoError(t, err)
	require.Equal(t, perm.Allow, d.Effect())
	require.Equal(t, []string{"private"}, d.Details().Labels)

	r.Access = perm.AccessFacts{Action: perm.Connect, Resource: perm.ResourceFacts{Kind: "https", Host: "example.com", Text: "https://example.com/"}}
	r.Tool.Destination, r.Call.EffectClass = "model_chosen", "pivot"
	d, err = e.Decide(context.Background(), r)
	require.NoError(t, err)
	require.Equal(t, perm.Ask, d.Effect())
	require.Equal(t, []string{"untrusted"}, d.Details().Labels)

	r.Session.Labels = []string{"private", "untrusted"}
	d, err = e.Decide(context.Background(), r)
	require.NoError(t, err)
	require.Equal(t, perm.Deny, d.Effect())
	require.Contains(t, d.Reasons()[0].At, "builtin:flow/flow.rego:")
}

func TestReadOnlyAndAskAllDecide(t *testing.T) {
	only, all := load(t, policies.ReadOnly()), load(t, policies.AskAll())
	for _, tt := range []struct {
		action      perm.Action
		path, class string
		only, all   perm.Effect
	}{
		{perm.Read, "src/a.go", "pure", perm.Allow, perm.Ask},
		{perm.Write, "src/a.go", "reversible", perm.Deny, perm.Ask},
		{perm.Write, "src/a.go", "pure", perm.Deny, perm.Ask},
		{perm.Read, ".env", "pure", perm.Deny, perm.Deny},
	} {
		d, err := only.Decide(context.Background(), request(tt.action, tt.path, tt.class))
		require.NoError(t, err)
		require.Equal(t, tt.only, d.Effect(), "%v", tt)
		d, err = all.Decide(context.Background(), request(tt.action, tt.path, tt.class))
		require.NoError(t, err)
		require.Equal(t, tt.all, d.Effect(), "%v", tt)
	}
}

func TestPackByName(t *testing.T) {
	decide := packs()
	delete(decide, "lib") // it decides nothing, and belongs to each policy that refers to it
	require.Equal(t, slices.Sorted(maps.Keys(decide)), policies.Names())
	for _, name := range policies.Names() {
		pack, ok := policies.Pack(name)
		require.True(t, ok)
		_, err := fs.Stat(pack, name)
		require.NoError(t, err, "its files lie in a folder of its name")
	}
	_, ok := policies.Pack("flwo")
	require.False(t, ok)
}

func ExampleParseName() {
	fmt.Println(policies.ParseName("builtin:workspace/workspace.rego:51"))
	fmt.Println(policies.ParseName("policy.rego:3"))
	// Output:
	// workspace workspace.rego:51 true
	//   false
}

func ExampleLib() {
	mine := fstest.MapFS{"mine.rego": {Data: []byte(`package remit

import data.remit.lib

allow contains "docs may be changed" if {
	lib.changes
	lib.below("workspace", "docs")
}
`)}}
	e, err := rego.Load(rego.Source{FS: mine}, rego.Source{FS: policies.Lib(), Prefix: policies.Prefix})
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := e.Decide(context.Background(), request(perm.Write, "docs/a.md", "reversible"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Effect(), "because", d.Reasons()[0].Text, "at", d.Reasons()[0].At)
	// Output: allow because docs may be changed at mine.rego:5
}
