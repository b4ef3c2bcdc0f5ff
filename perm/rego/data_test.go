package rego_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

const tabled = `package remit

allow contains "on the list" if input.tool.name in data.allowed

allow contains "in the table" if data.teams.red.tools[_].name == input.tool.name
`

func dataTree(files map[string]string) rego.Source {
	tree := fstest.MapFS{"p.rego": {Data: []byte(tabled)}}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return rego.Source{FS: tree}
}

func TestDataFiles(t *testing.T) {
	files := map[string]string{
		"data.json":           `{"allowed":["a"],"teams":{"blue":{}}}`,
		"teams/red/data.json": `{"tools":[{"name":"b"}]}`,
		"fixture.json":        `no data: it has another name`,
	}
	e, err := rego.New(rego.Options{Sources: []rego.Source{dataTree(files)}, Data: map[string]any{"more": 1}, Timeout: longTimeout})
	require.NoError(t, err)
	for name, want := range map[string]perm.Effect{"a": perm.Allow, "b": perm.Allow, "c": perm.Deny} {
		r := request()
		r.Tool.Name = name
		require.Equal(t, want, decide(t, e, r).Effect(), name)
	}
	// If a glob names a file, its name does not matter.
	s := dataTree(map[string]string{"list.json": `{"allowed":["c"],"teams":{"red":{"tools":[]}}}`})
	s.Globs = []string{"*.rego", "*.json"}
	e, err = rego.New(rego.Options{Sources: []rego.Source{s}, Timeout: longTimeout})
	require.NoError(t, err)
	r := request()
	r.Tool.Name = "c"
	require.Equal(t, perm.Allow, decide(t, e, r).Effect())
}

func TestDataFilesRefused(t *testing.T) {
	for want, c := range map[string]struct {
		files map[string]string
		data  map[string]any
	}{
		"data.json: data.a.x is also said elsewhere (fix: rename one of them)":   {files: map[string]string{"data.json": `{"a":{"x":1,"z":1}}`, "a/data.json": `{"x":2}`}},
		"data.x is said by a file and by Options.Data (fix: rename one of them)": {files: map[string]string{"data.json": `{"x":1}`}, data: map[string]any{"x": 1}},
		"data.json: the data is not an object (fix: write one JSON object)":      {files: map[string]string{"data.json": `[1]`}},
		"more than once": {files: map[string]string{"data.json": `{"a":1,"a":2}`}},
		"key \"remit\"":  {files: map[string]string{"data.json": `{"remit":1}`}},
	} {
		_, err := rego.New(rego.Options{Sources: []rego.Source{dataTree(c.files)}, Data: c.data})
		var bad *rego.LoadError
		require.ErrorAs(t, err, &bad, want)
		require.ErrorContains(t, err, want)
	}
}

// TestRevisionOfData checks that the revision covers everything that decides,
// and nothing else.
func TestRevisionOfData(t *testing.T) {
	of := func(files map[string]string, prefix string, data map[string]any) string {
		s := dataTree(files)
		tree, ok := s.FS.(fstest.MapFS)
		require.True(t, ok)
		tree["p.rego"] = &fstest.MapFile{Data: []byte(control)}
		s.Prefix = prefix
		e, err := rego.New(rego.Options{Sources: []rego.Source{s}, Data: data})
		require.NoError(t, err)
		return e.Revision()
	}
	one := map[string]string{"data.json": `{"allowed":["a"], "n": 1.0}`}
	same := map[string]string{"data.json": ` {"n": 1, "allowed": ["a"]}`}
	require.Equal(t, of(one, "x/", nil), of(one, "/somewhere/else/", nil))
	require.Equal(t, of(one, "", nil), of(same, "", nil), "what it says, not how it is written")
	require.Equal(t, of(nil, "", map[string]any{"k": map[string]any{"v": 1}}), of(map[string]string{"k/data.json": `{"v":1}`}, "", nil))
	require.NotEqual(t, of(one, "", nil), of(map[string]string{"data.json": `{"allowed":["b"],"n":1}`}, "", nil))
	require.NotEqual(t, of(one, "", nil), of(nil, "", nil))
}
