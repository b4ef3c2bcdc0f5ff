package arch_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// impersonal are words that hide who acts. docs/reference/glossary.md has the
// actors of this project: the runtime, the policy, the caller, the approver.
var impersonal = regexp.MustCompile(`(?i)\b(some|no|any)(body|one else)\b|\b(someone|anyone|whoever|whomever|whatever|thereby)\b|\bof which\b`)

// maxImpersonal is how many of each 1,000 words of comments and pages may be
// impersonal. Quotations and rare sentences need a few.
const maxImpersonal = 0.5

// metaphors are words that named something before the glossary did. No declared
// name has one as a part: no type, function, method, field, constant or variable
// of a package, also not in tests.
var metaphors = []string{
	"seat", "errand", "lender", "veil", "wish", "fuss", "tailor", "patience", "foresee", "standing", "twin", "mishap",
	"unseen", "whereabouts", "shelf", "voice", "lingering", "world", "undoing",
	"told", "said", "heard", "hear", "deaf", "doomed", "mortal", "perish", "fate", "deed", "diary", "desk", "crowd", "house", "tally",
	"librarian", "parrot", "parrots", "forgetful", "meddle", "stranger", "ghost", "corpse", "gossip", "whisper", "keepsake", "errands",
}

// allowedMetaphors are names that have such a word for a reason.
var allowedMetaphors = []string{
	"OpenWorld",                                               // the hint of MCP
	"Heard", "heard", "KindHeard", "Said", "MostSaid", "told", // the words of a person, and those of calls: agent.Heard
}

func TestVocabulary(t *testing.T) {
	files := tree(t)
	t.Run("impersonal words", func(t *testing.T) {
		all, found, worst := 0, 0, map[string]int{}
		for _, s := range files {
			text := prose(s)
			all += len(strings.Fields(text))
			if n := len(impersonal.FindAllString(text, -1)); n > 0 {
				found, worst[s.dir()] = found+n, worst[s.dir()]+n
			}
		}
		require.Greater(t, all, 100_000, "the tree has more prose than that")
		per := 1000 * float64(found) / float64(all)
		t.Logf("%d impersonal words among %d: %.2f of 1,000", found, all, per)
		require.LessOrEqual(t, per, maxImpersonal, "name the actor: %v", worst)
	})
	t.Run("metaphors", func(t *testing.T) {
		for _, s := range files {
			report(t, metaphorsIn(s))
		}
	})
}

// prose returns the comments of a Go or Rego file, and the text of a page.
func prose(s source) string {
	if strings.Contains("/"+s.path, "/testdata/") || s.path == "internal/arch/vocabulary_test.go" {
		return ""
	}
	switch path.Ext(s.path) {
	case ".md":
		return s.text
	case ".rego":
		return commentLines(s.text, "#")
	case ".go":
		var b strings.Builder
		for _, group := range s.file.Comments {
			b.WriteString(group.Text())
		}
		return b.String()
	}
	return ""
}

func commentLines(text, mark string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if code, comment, ok := strings.Cut(line, mark); ok && strings.TrimSpace(code) == "" {
			b.WriteString(comment)
		}
	}
	return b.String()
}

// metaphorsIn lists the declared names that have a metaphor as one of their
// words.
func metaphorsIn(s source) (broken []string) {
	if s.file == nil || strings.Contains("/"+s.path, "/testdata/") {
		return nil
	}
	for _, name := range namesDeclaredIn(s.file) {
		if slices.Contains(allowedMetaphors, name) {
			continue
		}
		for _, word := range wordsOf(name) {
			if slices.Contains(metaphors, word) {
				broken = append(broken, fmt.Sprintf("%s: %s: %q is a metaphor; docs/reference/glossary.md has the terms", s.path, name, word))
			}
		}
	}
	return broken
}

// namesDeclaredIn returns the names that a file declares for its package: also of
// methods and fields, but not of what is local to a function.
func namesDeclaredIn(file *ast.File) (names []string) {
	for _, decl := range file.Decls {
		ast.Inspect(decl, func(n ast.Node) bool {
			switch v := n.(type) {
			case *ast.FuncDecl:
				names = append(names, v.Name.Name)
				return false
			case *ast.TypeSpec:
				names = append(names, v.Name.Name)
			case *ast.ValueSpec:
				names = append(names, namesOf(v.Names)...)
			case *ast.FuncType, *ast.FuncLit:
				return false
			case *ast.InterfaceType:
				for _, method := range v.Methods.List {
					names = append(names, namesOf(method.Names)...)
				}
				return false
			case *ast.Field:
				names = append(names, namesOf(v.Names)...)
			}
			return true
		})
	}
	return names
}

func namesOf(ids []*ast.Ident) (names []string) {
	for _, id := range ids {
		names = append(names, id.Name)
	}
	return names
}

func exportedNames(file *ast.File) (names []string) {
	add := func(id *ast.Ident) {
		if id.IsExported() {
			names = append(names, id.Name)
		}
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			add(d.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch v := spec.(type) {
				case *ast.TypeSpec:
					add(v.Name)
				case *ast.ValueSpec:
					for _, id := range v.Names {
						add(id)
					}
				}
			}
		}
	}
	return names
}

// wordsOf splits a Go name into its words, in lower case.
func wordsOf(name string) (words []string) {
	start := 0
	letters := []rune(name)
	for i := 1; i <= len(letters); i++ {
		if i == len(letters) || unicode.IsUpper(letters[i]) && !unicode.IsUpper(letters[i-1]) {
			words = append(words, strings.ToLower(string(letters[start:i])))
			start = i
		}
	}
	return words
}

func TestVocabularyRules(t *testing.T) {
	for text, n := range map[string]int{
		"Somebody reads it, whatever it is.": 2, "Nobody and anyone": 2, "of which one": 1, "The runtime reads the record.": 0, "no one-line comment": 0,
	} {
		require.Len(t, impersonal.FindAllString(text, -1), n, text)
	}
	require.Equal(t, " a comment\n", commentLines("# a comment\nx := \"#\"\n", "#"))
	require.Equal(t, []string{"call", "lender"}, wordsOf("CallLender"))
	require.Equal(t, []string{"id"}, wordsOf("ID"))
	file, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\ntype seat struct{ veil, b int }\ntype i interface{ wish(x int) }\nfunc (s seat) fuss(y int) { var z int }\nvar twin = struct{ desk int }{}\n", 0)
	require.NoError(t, err)
	require.Equal(t, []string{"seat", "veil", "b", "i", "wish", "fuss", "twin", "desk"}, namesDeclaredIn(file))
}
