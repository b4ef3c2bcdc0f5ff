package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool/settings"
)

// TestReferenceSettings holds the tables of settings.md, and the members of a file.
func TestReferenceSettings(t *testing.T) {
	const dir, page = "tool/settings", "settings.md"
	text, constants := header("layer", "set by"), textConstants(t, dir)
	for _, layer := range []settings.Layer{settings.Locked, settings.User, settings.Preset, settings.Default} {
		for _, c := range constants {
			if c.value == string(layer) {
				text += row(code(c.value), c.text)
			}
		}
	}
	holdPart(t, page, "layers", text)
	all := typesOf(t, dir)
	for _, name := range []string{"Status", "Value", "Problem"} {
		rows, _ := all.rows(t, name)
		holdPart(t, page, name, header("member", "type", "meaning")+regexp.MustCompile(`\[(\w+)\]\(#\w+\)`).ReplaceAllString(rows, "$1"))
	}

	source, err := os.ReadFile(filepath.Join("..", "..", dir, "file.go"))
	require.NoError(t, err)
	known := regexp.MustCompile(`root\.Closed\((.*?)\)`).FindSubmatch(source)
	require.NotNil(t, known)
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", page))
	require.NoError(t, err)
	var listed string
	for i, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| \\w+ \\|").FindAllSubmatch(data, 4) {
		if i > 0 {
			listed += ", "
		}
		listed += `"` + string(m[1]) + `"`
	}
	require.Equal(t, string(known[1]), listed)
}
