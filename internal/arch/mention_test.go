package arch_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// qualified is a Go name with its package, such as agent.Approver.
var qualified = regexp.MustCompile(`(?:^|[^\w/.-])([a-z]+)\.([A-Z]\w*)`)

// TestMentionedNames checks that messages, comments and pages name only
// identifiers that exist: advice to use a renamed option is untrue.
func TestMentionedNames(t *testing.T) {
	files := tree(t)
	known := declaredNames(files)
	require.True(t, known["agent"]["Approver"])
	for _, s := range files {
		report(t, unknownMentions(s, known))
	}
}

// declaredNames returns the exported names of each package of the module:
// declarations, methods and fields.
func declaredNames(files []source) map[string]map[string]bool {
	known := map[string]map[string]bool{}
	for _, s := range files {
		if s.file == nil || s.isTest() || strings.HasPrefix(s.path, "examples/") {
			continue
		}
		names := known[s.file.Name.Name]
		if names == nil {
			names = map[string]bool{}
			known[s.file.Name.Name] = names
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				names[n.Name.Name] = true
				return false
			case *ast.TypeSpec:
				names[n.Name.Name] = true
			case *ast.ValueSpec:
				for _, id := range n.Names {
					names[id.Name] = true
				}
			case *ast.Field:
				for _, id := range n.Names {
					names[id.Name] = true
				}
			}
			return true
		})
	}
	return known
}

// unknownMentions returns the qualified names of a file that its package does
// not declare. It leaves out packages of other modules.
func unknownMentions(s source, known map[string]map[string]bool) (broken []string) {
	if strings.HasPrefix(s.path, "examples/") || s.isTest() || strings.Contains(s.path, "testdata/") {
		return nil
	}
	see := func(text string) {
		for _, m := range qualified.FindAllStringSubmatch(text, -1) {
			if names := known[m[1]]; names != nil && !names[m[2]] {
				broken = append(broken, fmt.Sprintf("%s: %s.%s does not exist", s.path, m[1], m[2]))
			}
		}
	}
	if s.file == nil {
		if strings.HasSuffix(s.path, ".md") {
			see(s.text)
		}
		return broken
	}
	for _, group := range s.file.Comments {
		see(group.Text())
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, err := strconv.Unquote(lit.Value)
			if err == nil {
				see(text)
			}
		}
		return true
	})
	return broken
}

// TestUnknownMentions shows what the rule refuses.
func TestUnknownMentions(t *testing.T) {
	known := map[string]map[string]bool{"agent": {"Approver": true}}
	for text, want := range map[string]string{
		"package p\nvar x = \"use agent.Approver\"":                      "",
		"package p\nvar x = \"use agent.Approve\"":                       "agent.Approve does not exist",
		"package p\n\n// x uses agent.Wait.\nvar x = 1":                  "agent.Wait does not exist",
		"package p\nvar x = \"user-agent.Name other.Name a/agent.Name\"": "",
	} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "p.go", text, parser.ParseComments)
		require.NoError(t, err)
		got := unknownMentions(source{path: "p.go", text: text, fset: fset, file: file}, known)
		require.Equal(t, want != "", len(got) > 0, "%s: %v", text, got)
	}
	require.Len(t, unknownMentions(source{path: "docs/p.md", text: "Give it `agent.Wait`."}, known), 1)
}
