package arch_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// keptNames are exported names that only tests of their own package use, each with the user who needs it.
var keptNames = map[string]string{
	"agent.ErrClosed":           "a server that stops tells its callers to go elsewhere",
	"agent.ErrNestedOpen":       "a caller ends the nested transactions and commits again",
	"agent.Txn.NestedID":        "a caller that resumes finds its nested transaction by it",
	"ctxperm/files.ErrConflict": "a tool reads the file again",
	"ctxperm/files.PageMatches": "a limit, next to PageEntries",
	"perm.PerSession":           "a value of Limit.Per, next to the others",
	"perm/rego.ErrEvaluation":   "an operator sees that a rule failed, and not that it denied",
	"perm/rego.ErrInput":        "an engine in front of the rules sends a valid request",
	"perm/rego.ErrSteps":        "an operator raises Options.Steps",
	"perm/rego.RuleMatched":     "a value of RuleTrace.Outcome, next to the others",
}

// mention is one use of a name: by the package that declares it, or "" for a method.
type mention struct{ pkg, name string }

// TestAPI applies the rules about exported names to the public packages: those of docs/explanation/design.md.
func TestAPI(t *testing.T) {
	files := tree(t)
	users := map[mention][]string{} // the folders that use a name; "(test)" are the tests of a folder
	pages := map[string]bool{}
	for _, s := range files {
		if path.Ext(s.path) == ".md" && s.path != "docs/reference/errors.md" { // it lists all errors, used or not
			for _, word := range regexp.MustCompile(`\w+`).FindAllString(s.text, -1) {
				pages[word] = true
			}
		}
		for _, m := range mentions(s) {
			users[m] = append(users[m], place(s))
		}
	}
	var broken []string
	kept := maps.Clone(keptNames)
	for _, s := range files {
		if !importable(s) {
			continue
		}
		broken = append(broken, optional(s.path, s.file)...)
		for _, m := range offered(s) {
			full := m.name
			word := full[strings.LastIndexByte(full, '.')+1:]
			used := mention{s.dir(), full}
			if word != full {
				used = mention{"", word}
			}
			elsewhere := slices.ContainsFunc(users[used], func(from string) bool { return from != s.dir() && from != s.dir()+"(test)" })
			full = s.dir() + "." + full
			if elsewhere || pages[word] || isTestPackage(s.dir()) {
				continue
			}
			if delete(kept, full); keptNames[full] == "" {
				broken = append(broken, full+" is exported, and no other package and no page uses it; make it unexported, or give a reason in keptNames")
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		broken = append(broken, name+" has users; take it out of keptNames")
	}
	report(t, broken)
}

// importable reports whether other modules can import what a file declares.
func importable(s source) bool {
	return s.file != nil && !s.isTest() && s.file.Name.Name != "main" && !strings.Contains("/"+s.path, "/internal/") &&
		!slices.Contains([]string{"bench", "cmd", "examples"}, strings.Split(s.path, "/")[0]) && s.dir() != "mcp/conformance"
}

func place(s source) string {
	if s.isTest() && !strings.Contains(s.text, "\nfunc Example") {
		return s.dir() + "(test)"
	}
	if s.isTest() {
		return s.dir() + "(example)"
	}
	return s.dir()
}

// offered lists the functions, methods and variables that a file exports. Types, and constants of a type, come with what
// uses them.
func offered(s source) (names []mention) {
	for _, name := range exported(s.file) {
		if !isType(s.file, name) {
			names = append(names, mention{s.dir(), name})
		}
	}
	for _, decl := range s.file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.IsExported() && ast.IsExported(receiver(fn)) && !slices.Contains(conventional, fn.Name.Name) {
			names = append(names, mention{s.dir(), receiver(fn) + fn.Name.Name})
		}
	}
	return names
}

// conventional are methods that packages of the standard library call.
var conventional = []string{"Error", "Is", "Unwrap", "String", "GoString", "Format", "LogValue", "MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText"}

func isType(file *ast.File, name string) bool {
	for _, decl := range file.Decls {
		if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.TYPE {
			for _, spec := range d.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok && t.Name.Name == name {
					return true
				}
			}
		}
	}
	return false
}

// mentions lists what a file uses of packages of this module, and each name that it selects of a value.
func mentions(s source) (all []mention) {
	if s.file == nil {
		return nil
	}
	of := map[string]string{}
	for _, im := range s.file.Imports {
		if dir, local := folder(strings.Trim(im.Path.Value, `"`)); local {
			name := path.Base(dir)
			if im.Name != nil {
				name = im.Name.Name
			}
			of[name] = dir
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); ok && of[id.Name] != "" {
			all = append(all, mention{of[id.Name], sel.Sel.Name})
			return true
		}
		all = append(all, mention{"", sel.Sel.Name})
		return true
	})
	return all
}

// optional reports functions that break the rule about absent results: docs/explanation/design.md has it.
func optional(file string, of *ast.File) (broken []string) {
	check := func(name string, fn *ast.FuncType) {
		args, results := fn.Params.NumFields(), fn.Results.NumFields()
		switch last := lastResult(fn); {
		case args == 0 && results == 2 && last == "bool":
			broken = append(broken, fmt.Sprintf("%s: %s returns (T, bool) without a key; an optional part is a mo.Option", file, name))
		case args > 0 && strings.HasPrefix(last, "mo."):
			broken = append(broken, fmt.Sprintf("%s: %s has arguments and returns a %s; a look-up returns (T, bool), what can fail (T, error)", file, name, last))
		}
	}
	ast.Inspect(of, func(n ast.Node) bool {
		switch d := n.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
				check(d.Name.Name, d.Type)
			}
			return false
		case *ast.InterfaceType:
			for _, m := range d.Methods.List {
				if fn, ok := m.Type.(*ast.FuncType); ok && len(m.Names) == 1 && m.Names[0].IsExported() {
					check(m.Names[0].Name, fn)
				}
			}
		case *ast.StructType:
			for _, field := range d.Fields.List {
				if t := typeName(field.Type); strings.HasPrefix(t, "mo.") {
					broken = append(broken, fmt.Sprintf("%s: a field is a %s; a field that can be absent is nil or empty", file, t))
				}
			}
		}
		return true
	})
	return broken
}

func lastResult(fn *ast.FuncType) string {
	if fn.Results.NumFields() == 0 {
		return ""
	}
	return typeName(fn.Results.List[len(fn.Results.List)-1].Type)
}

func typeName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.SelectorExpr:
		return typeName(t.X) + "." + t.Sel.Name
	case *ast.IndexExpr:
		return typeName(t.X)
	}
	return ""
}

// TestAPIRules shows what breaks them.
func TestAPIRules(t *testing.T) {
	fset := token.NewFileSet()
	parse := func(text string) source {
		file, err := parser.ParseFile(fset, "x.go", "package tool\n"+text, 0)
		require.NoError(t, err)
		return source{path: "tool/x.go", text: text, fset: fset, file: file}
	}
	for text, want := range map[string]string{
		"func (t T) Part() (r int, ok bool) { return 0, false }":         "Part returns (T, bool) without a key",
		"type T interface { Part() (int, bool) }":                        "Part returns (T, bool) without a key",
		"func Find(name string) mo.Option[int] { return nil }":           "Find has arguments and returns a mo.Option",
		"func Run() mo.Result[int] { return nil }":                       "",
		"type T struct { Part mo.Option[int] }":                          "a field is a mo.Option",
		"func (t T) Part() mo.Option[int] { return nil }":                "",
		"func (t T) Part(name string) (int, bool) { return 0, false }":   "",
		"func (t t) Part() (r int, ok bool) { return 0, false }":         "",
		"func (t T) part() (r int, ok bool) { return 0, false }":         "",
		"func (t T) Part() (r int, err error) { return 0, nil }":         "",
		"func (t T) Parts() (first, second bool) { return false, true }": "Parts returns (T, bool)",
	} {
		if got := strings.Join(optional("x.go", parse(text).file), "\n"); want == "" {
			require.Empty(t, got, text)
		} else {
			require.Contains(t, got, want, text)
		}
	}
	s := parse("import \"" + module + "/perm\"\ntype A struct{}\nfunc (A) B() { perm.C(); a.D() }\nfunc (A) String() {}\nfunc (b) E() {}\nvar F = 1\nfunc (*G[T]) H() {}\n")
	require.Equal(t, []mention{{"tool", "F"}, {"tool", "A.B"}, {"tool", "G.H"}}, offered(s))
	require.Equal(t, []mention{{"perm", "C"}, {"", "D"}}, mentions(s))
}
