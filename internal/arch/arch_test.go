package arch_test

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPackages applies the rules about packages, on each system that the build constraints tell apart.
func TestPackages(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		t.Run(goos, func(t *testing.T) {
			pkgs := load(t, goos)
			require.True(t, slices.ContainsFunc(pkgs, func(p pkg) bool { return p.dir == "internal/arch" }),
				"go list did not list this package, so it cannot have listed the others")
			for _, rule := range []struct {
				name  string
				check func(pkg) []string
			}{
				{"imports point down", arrows},
				{"owned packages", owned},
				{"what is linked", linked},
				{"names", named},
				{"docs and examples", documented},
			} {
				t.Run(rule.name, func(t *testing.T) {
					var broken []string
					for _, p := range pkgs {
						broken = append(broken, rule.check(p)...)
					}
					report(t, broken)
				})
			}
		})
	}
}

// TestTree applies the rules about files.
func TestTree(t *testing.T) {
	files := tree(t)
	require.True(t, slices.ContainsFunc(files, func(s source) bool { return s.path == "go.mod" }), "not the root")
	for _, rule := range []struct {
		name  string
		check func(source) []string
	}{
		{"length", func(s source) []string {
			if s.isGenerated() || !slices.Contains([]string{".go", ".rego"}, path.Ext(s.path)) ||
				slices.Contains(strings.Split(s.path, "/"), "testdata") {
				return nil
			}
			return long(s.path, s.text)
		}},
		{"init", func(s source) []string {
			if s.file == nil || s.isTest() || path.Base(s.path) == "internals.go" { // packages internal/toolaccess and internal/handleaccess say why
				return nil
			}
			return inits(s.fset, s.file)
		}},
		{"locks", func(s source) []string {
			if s.file == nil || s.isTest() || !mustBeFreeOfLocks(s.dir()) {
				return nil
			}
			return locks(s.fset, s.file)
		}},
		{"seams", func(s source) []string {
			if s.file == nil || s.isTest() || !mustBeFreeOfLocks(s.dir()) {
				return nil
			}
			return seams(s.fset, s.file)
		}},
		{"words", func(s source) []string { return words(s.path, s.text) }},
	} {
		t.Run(rule.name, func(t *testing.T) {
			var broken []string
			for _, s := range files {
				broken = append(broken, rule.check(s)...)
			}
			report(t, broken)
		})
	}
}

func report(t *testing.T, broken []string) {
	t.Helper()
	for _, b := range broken {
		t.Error(b)
	}
}
