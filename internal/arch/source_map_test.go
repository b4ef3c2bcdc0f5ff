package arch_test

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSourceMap checks that each file and function that source-map.md names exists. A name without a folder is below the
// folder of the name before it, and a function belongs to the file or folder before it.
func TestSourceMap(t *testing.T) {
	const page = "docs/explanation/source-map.md"
	text, paths := "", map[string]bool{}
	functions := map[string][]string{} // by file and by folder
	for _, s := range tree(t) {
		if s.path == page {
			text = s.text
		}
		for at := s.path; at != "."; at = path.Dir(at) {
			paths[at] = true
		}
		if s.file == nil {
			continue
		}
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				names := []string{f.Name.Name}
				if f.Recv != nil {
					names = append(names, receiver(f)+f.Name.Name)
				}
				functions[s.path] = append(functions[s.path], names...)
				functions[s.dir()] = append(functions[s.dir()], names...)
			}
		}
	}
	require.NotEmpty(t, text)
	span, checked := regexp.MustCompile("`([^`]+)`"), 0
	var broken []string
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || strings.HasPrefix(cells[1], " ---") {
			continue
		}
		dir, at := "", ""
		for _, m := range span.FindAllStringSubmatch(cells[2], -1) {
			name := m[1]
			switch {
			case strings.HasPrefix(name, "make ") || strings.HasPrefix(name, "remit") || strings.HasPrefix(name, "--") || name == "lib":
				continue
			case strings.Contains(name, "/") && paths[name]:
				dir, at = name, name
				if path.Ext(name) != "" {
					dir = path.Dir(name)
				}
			case paths[path.Join(dir, name)]:
				at = path.Join(dir, name)
			case paths[path.Join(path.Dir(dir), name)]: // beside the folder before it
				dir, at = path.Join(path.Dir(dir), path.Dir(name)), path.Join(path.Dir(dir), name)
			default:
				if !slices.Contains(functions[at], name) && !isRule(t, at, name) {
					broken = append(broken, page+" names "+name+", and "+at+" has no file or function of this name")
				}
			}
			checked++
		}
	}
	require.Greater(t, checked, 150)
	report(t, broken)
}

// isRule reports whether a file of Rego defines a rule of this name.
func isRule(t *testing.T, file, name string) bool {
	t.Helper()
	if path.Ext(file) != ".rego" {
		return false
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	require.NoError(t, err)
	return regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + `\b`).Match(text)
}
