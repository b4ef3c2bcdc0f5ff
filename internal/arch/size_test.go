package arch_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a reader can hold: of a package's names, of a file, of a function.
const (
	maxNames    = 69
	medianLines = 150
	p90Lines    = 400
	p90Function = 40
)

// TestSizes applies the rules about sizes to the tree. Its code, without tests: a test's size is mostly its table's.
func TestSizes(t *testing.T) {
	names := map[string]int{}
	var files, functions []int
	for _, s := range tree(t) {
		if s.file == nil || s.isTest() || s.isGenerated() || isTestPackage(s.dir()) {
			continue
		}
		files = append(files, strings.Count(s.text, "\n"))
		functions = append(functions, functionLines(s.fset, s.file)...)
		if s.file.Name.Name != "main" && !strings.HasPrefix(s.path, "internal/") {
			names[s.dir()] += len(exported(s.file))
		}
	}
	report(t, overfullPackages(names))
	report(t, lengths("a file", files, medianLines, p90Lines))
	report(t, lengths("a function", functions, p90Function, p90Function))
	t.Logf("%d files, median %d, p90 %d lines; %d functions, median %d, p90 %d lines",
		len(files), quantile(files, 50), quantile(files, 90), len(functions), quantile(functions, 50), quantile(functions, 90))
	for _, dir := range slices.Sorted(maps.Keys(names)) {
		t.Logf("%3d exported names in %s", names[dir], dir)
	}
}

// exported are the names that a file gives to other packages, without methods, fields and constants of a type: those are
// read with their type.
func exported(file *ast.File) (names []string) {
	add := func(id *ast.Ident) {
		if id.IsExported() {
			names = append(names, id.Name)
		}
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					add(s.Name)
				case *ast.ValueSpec:
					if d.Tok == token.CONST && s.Type != nil {
						continue
					}
					for _, id := range s.Names {
						add(id)
					}
				}
			}
		}
	}
	return names
}

// overfullPackages reports packages that export more than maxNames names.
func overfullPackages(names map[string]int) (broken []string) {
	for _, dir := range slices.Sorted(maps.Keys(names)) {
		if names[dir] > maxNames {
			broken = append(broken, fmt.Sprintf("%s exports %d names, more than %d", dir, names[dir], maxNames))
		}
	}
	return broken
}

func functionLines(fset *token.FileSet, file *ast.File) (lines []int) {
	for _, decl := range file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok {
			lines = append(lines, fset.Position(fn.End()).Line-fset.Position(fn.Pos()).Line+1)
		}
	}
	return lines
}

func quantile(sizes []int, percent int) int {
	if len(sizes) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(sizes))
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}

func lengths(what string, sizes []int, median, p90 int) (broken []string) {
	if m := quantile(sizes, 50); m > median {
		broken = append(broken, fmt.Sprintf("%s has %d lines in the middle, more than %d", what, m, median))
	}
	if p := quantile(sizes, 90); p > p90 {
		broken = append(broken, fmt.Sprintf("one %s in ten has more than %d lines, wanted are %d", strings.TrimPrefix(what, "a "), p, p90))
	}
	return broken
}

// TestSizeRules shows what breaks them.
func TestSizeRules(t *testing.T) {
	require.Empty(t, overfullPackages(map[string]int{"tool": maxNames}))
	require.Equal(t, []string{"tool exports 70 names, more than 69"}, overfullPackages(map[string]int{"tool": 70}))
	many := slices.Repeat([]int{100}, 80)
	require.Empty(t, lengths("a file", append(many, slices.Repeat([]int{500}, 8)...), 150, 400))
	require.Equal(t, []string{"one file in ten has more than 500 lines, wanted are 400"}, lengths("a file", append(many, slices.Repeat([]int{500}, 9)...), 150, 400))
	require.Equal(t, []string{"a file has 151 lines in the middle, more than 150"}, lengths("a file", []int{1, 151, 151}, 150, 400))
	require.Empty(t, lengths("a file", nil, 1, 1))

	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "x.go", "package x\ntype A struct{ B int }\nfunc (A) C() {}\nfunc D() {\n}\nvar e, F = 1, 2\nconst (\n\tG = 1\n\th = 2\n\tI A = 3\n)\n", 0)
	require.NoError(t, err)
	require.Equal(t, []string{"A", "D", "F", "G"}, exported(file))
	require.Equal(t, []int{1, 2}, functionLines(fset, file))
}
