package define_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool/define"
)

// TestAllFaultsAtOnce: one run of Load tells everything that is wrong with each file, and a typo in a file is told there,
// and not as an implementation without a file.
func TestAllFaultsAtOnce(t *testing.T) {
	have := map[string]define.Implementation{"example/note": {Execute: note}}
	load := func(files map[string]string) []string {
		fsys := fstest.MapFS{}
		for name, text := range files {
			fsys[name] = &fstest.MapFile{Data: []byte(text)}
		}
		_, err := define.Load(fsys, have)
		require.Error(t, err)
		return strings.Split(err.Error(), "\n")
	}
	require.Equal(t, []string{`a.json:1:1: "implementation" is missing`, `a.json:1:51: unknown member "implementaton"; did you mean "implementation"?`},
		load(map[string]string{"a.json": `{"schemaVersion": 1, "id": "x", "version": "1.0", "implementaton": "example/note",
			"function": {"name": "note", "description": "Notes."}, "effectClass": "pure"}`}))
	require.Equal(t, []string{`a.json:1:2: want a member name in double quotes`}, load(map[string]string{"a.json": `{,}`}))
	require.Equal(t, []string{
		`implementation "example/note": no file names it; not read, because a definition's name ends in .json and begins with neither a point nor an underscore: note.JSON`,
	}, load(map[string]string{"note.JSON": `{}`, "README.md": ""}))
	require.Equal(t, []string{
		`a.json:2:73: has another value, want one of "array", "boolean", "integer", "null", "number", "object", "string"`,
		`a.json:2:99: is a string, want an integer`,
		`b.json:1:1: a reversible tool either acts only through handles, which tool.Confined(tool.Handles) declares, or has a Revert`,
	}, load(map[string]string{
		"a.json": `{"schemaVersion": 1, "id": "x", "version": "1.0", "implementation": "example/note", "effectClass": "pure",
"function": {"name": "note", "description": "d", "parameters": {"type": "objct", "minProperties": "x"}}}`,
		"b.json": `{"schemaVersion": 1, "id": "x", "version": "2.0", "implementation": "example/note", "effectClass": "reversible",
"function": {"name": "note", "description": "d"}}`,
	}))
}
