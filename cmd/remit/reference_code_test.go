package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// parsePackage parses the files of a package that are not tests.
func parsePackage(t *testing.T, dir string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(dir), "*.go"))
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, file)
	}
	require.NotEmpty(t, files, dir)
	return files
}

// described is a value of the code with the comment that describes it.
type described struct{ name, value, text string }

// textConstants returns the constants of a package that are texts.
func textConstants(t *testing.T, dir string) map[string]described {
	t.Helper()
	found := map[string]described{}
	for _, file := range parsePackage(t, dir) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				value, err := strconv.Unquote(lit.Value)
				require.NoError(t, err)
				found[spec.Names[0].Name] = described{spec.Names[0].Name, value, comment(spec.Comment, spec.Doc)}
			}
			return true
		})
	}
	return found
}

// listOf returns the names of the constants that a function lists.
func listOf(t *testing.T, dir, function string) (names []string) {
	t.Helper()
	for _, file := range parsePackage(t, dir) {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Name.Name != function {
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if list, ok := n.(*ast.CompositeLit); ok {
					for _, e := range list.Elts {
						id, ok := e.(*ast.Ident)
						require.True(t, ok, "%s lists constants", function)
						names = append(names, id.Name)
					}
				}
				return true
			})
		}
	}
	require.NotEmpty(t, names, "%s of %s", function, dir)
	return names
}

// member is a field of a struct, by its name in JSON.
type member struct{ name, kind, text string }

// members returns the fields of a struct that JSON has.
func members(t *testing.T, dir, name string) (all []member) {
	t.Helper()
	for _, file := range parsePackage(t, dir) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != name {
				return true
			}
			body, ok := spec.Type.(*ast.StructType)
			require.True(t, ok, name)
			for _, f := range body.Fields.List {
				if f.Tag == nil {
					continue
				}
				tag, err := strconv.Unquote(f.Tag.Value)
				require.NoError(t, err)
				json, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
				all = append(all, member{json, goType(f.Type), comment(f.Comment, f.Doc)})
			}
			return false
		})
	}
	require.NotEmpty(t, all, "%s of %s", name, dir)
	return all
}

// comment returns the first comment that there is, as one line.
func comment(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if g != nil {
			return strings.Join(strings.Fields(g.Text()), " ")
		}
	}
	return ""
}

// goType returns a type of Go in the words of JSON.
func goType(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.StarExpr:
		return goType(x.X)
	case *ast.ArrayType:
		return "list of " + goType(x.Elt)
	case *ast.MapType:
		return "object by name"
	case *ast.SelectorExpr:
		return map[string]string{"Number": "number", "RawMessage": "any", "Time": "time"}[x.Sel.Name]
	case *ast.Ident:
		if word, ok := map[string]string{"int": "integer", "int64": "integer", "bool": "boolean", "string": "string"}[x.Name]; ok {
			return word
		}
	}
	return "object"
}
