package main

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// publicPackages returns the folders of all packages that a user can import.
func publicPackages(t *testing.T) (dirs []string) {
	t.Helper()
	root := filepath.Join("..", "..")
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		switch d.Name() {
		case "internal", "testdata", "examples", "bench", "cmd", ".git", "bin", "conformance":
			return filepath.SkipDir
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
			return filepath.SkipDir
		}
		files, err := filepath.Glob(filepath.Join(path, "*.go"))
		if len(files) > 0 {
			rel, relErr := filepath.Rel(root, path)
			require.NoError(t, relErr)
			dirs = append(dirs, filepath.ToSlash(rel))
		}
		return err
	}))
	require.Greater(t, len(dirs), 30)
	return dirs
}

// TestReferenceErrors holds the list of the errors of public packages.
func TestReferenceErrors(t *testing.T) {
	text := ""
	for _, dir := range publicPackages(t) {
		rows := errorRows(t, dir)
		if rows == "" {
			continue
		}
		text += "\n## " + dir + "\n\n" + header("error", "what it tells") + rows
	}
	holdPart(t, "errors.md", "errors", text)
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "errors.md"))
	require.NoError(t, err)
	lead, list, _ := strings.Cut(string(data), "<!-- generated")
	for _, m := range regexp.MustCompile("`[a-z]+\\.(Err[A-Z][A-Za-z]*|[A-Z][a-z]+Error)`").FindAllStringSubmatch(lead, -1) {
		require.Contains(t, list, "."+m[1]+"`", "errors.md names an error that no public package has")
	}
}

// errorRows returns a row for each exported error of a package: its sentinels,
// and its types with an Error method.
func errorRows(t *testing.T, dir string) (rows string) {
	t.Helper()
	files := parsePackage(t, dir)
	types := errorTypes(files)
	for _, file := range files {
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range group.Specs {
				name, text := "", ""
				switch s := spec.(type) {
				case *ast.ValueSpec:
					if group.Tok == token.VAR && strings.HasPrefix(s.Names[0].Name, "Err") {
						name, text = s.Names[0].Name, comment(s.Doc, s.Comment, group.Doc)
					}
				case *ast.TypeSpec:
					if types[s.Name.Name] && s.Name.IsExported() {
						name, text = s.Name.Name, comment(s.Doc, group.Doc)
					}
				}
				if name == "" {
					continue
				}
				text, ok := strings.CutPrefix(text, name+" ")
				require.True(t, ok, "%s: the comment of %s begins with its name", dir, name)
				rows += row(code(file.Name.Name+"."+name), text)
			}
		}
	}
	return rows
}

func errorTypes(files []*ast.File) map[string]bool {
	found := map[string]bool{}
	for _, file := range files {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "Error" {
				continue
			}
			of := f.Recv.List[0].Type
			if star, ok := of.(*ast.StarExpr); ok {
				of = star.X
			}
			if id, ok := of.(*ast.Ident); ok {
				found[id.Name] = true
			}
		}
	}
	return found
}
