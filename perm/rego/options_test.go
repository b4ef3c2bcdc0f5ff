package rego_test

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

func tree() fstest.MapFS {
	return fstest.MapFS{
		"base/allow.rego": {Data: []byte(control)},
		"base/deny.rego":  {Data: []byte("package remit\ndeny contains \"go\" if input.access.resource.ext == \".go\"")},
		"notes.txt":       {Data: []byte("not a policy")},
	}
}

func TestSources(t *testing.T) {
	e, err := rego.Load(rego.Source{FS: tree()})
	require.NoError(t, err)
	require.Equal(t, "base/deny.rego:2", decide(t, e, request()).Reasons()[0].At)

	_, err = rego.Load(rego.Source{FS: tree()}, rego.Source{FS: tree()})
	require.NoError(t, err, "the same file counts once")

	e, err = rego.Load(rego.Source{FS: tree(), Globs: []string{"base/allow.rego", "base/a*"}})
	require.NoError(t, err)
	require.Equal(t, perm.Allow, decide(t, e, request()).Effect())
}

func TestSourceProblems(t *testing.T) {
	for name, tt := range map[string]struct {
		sources []rego.Source
		says    string
	}{
		"no file system":  {[]rego.Source{{}}, "no file system"},
		"nothing matches": {[]rego.Source{{FS: tree(), Globs: []string{"base/*.rego", "bas/*.rego"}}}, `no policy file matches "bas/*.rego"`},
		"bad glob":        {[]rego.Source{{FS: tree(), Globs: []string{"["}}}, `no policy file matches "["`},
		"twice":           {[]rego.Source{{FS: tree()}, {FS: fstest.MapFS{"base/deny.rego": {Data: []byte("package remit\n")}}}}, "two sources have a file of this name"},
		"nothing at all":  {nil, "the policy defines no rule"},
		"no policy files": {[]rego.Source{{FS: fstest.MapFS{"a.txt": {}}}}, "the policy defines no rule"},
		"broken listing":  {[]rego.Source{{FS: failingFS{tree(), "."}}}, "cannot be listed"},
		"broken file":     {[]rego.Source{{FS: failingFS{tree(), "base/deny.rego"}}}, "base/deny.rego: the file cannot be read: open base/deny.rego: broken disk"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rego.Load(tt.sources...)
			var bad *rego.LoadError
			require.ErrorAs(t, err, &bad)
			require.ErrorContains(t, err, tt.says)
		})
	}
}

// failingFS fails at one path.
type failingFS struct {
	fs.FS
	path string
}

func (b failingFS) Open(name string) (fs.File, error) {
	if name == b.path {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("broken disk")}
	}
	return b.FS.Open(name)
}

func TestDataProblems(t *testing.T) {
	modules := map[string]string{"p.rego": control}
	_, err := rego.New(rego.Options{Modules: modules, Data: map[string]any{"remit": 1}})
	require.ErrorContains(t, err, `a key "remit"`)
	_, err = rego.New(rego.Options{Modules: modules, Data: map[string]any{"f": func() {}}})
	require.ErrorContains(t, err, "not JSON")
	_, err = rego.New(rego.Options{Modules: modules, Data: map[string]any{"f": 1}})
	require.NoError(t, err)
}

func TestPrefix(t *testing.T) {
	bare, err := rego.Load(rego.Source{FS: tree()})
	require.NoError(t, err)
	named, err := rego.Load(rego.Source{FS: tree(), Prefix: "builtin:"})
	require.NoError(t, err)
	require.Equal(t, "builtin:base/deny.rego:2", decide(t, named, request()).Reasons()[0].At)
	require.Equal(t, bare.Revision(), named.Revision(), "where a policy lies is no part of it")

	both, err := rego.Load(rego.Source{FS: tree(), Prefix: "a/"}, rego.Source{FS: tree(), Prefix: "b/"})
	require.NoError(t, err)
	require.Len(t, decide(t, both, request()).Reasons(), 2)
	require.NotEqual(t, bare.Revision(), both.Revision())
	swapped, err := rego.Load(rego.Source{FS: tree(), Prefix: "b/"}, rego.Source{FS: tree(), Prefix: "c/"})
	require.NoError(t, err)
	require.Equal(t, both.Revision(), swapped.Revision())
}
