package arch_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

const maxLines = 600

// freeOfLocks are the folders, with everything below them, in which a goroutine that waits must hold no mutex: such a
// wait can be neither scheduled nor simulated, nor ended by a context.
var freeOfLocks = []string{"agent/...", "tool/...", "ctxperm/...", "revert/...", "internal/callstate", "internal/pipeline"}

// shortLockComment stands on the line of a mutex that may be there all the same.
const shortLockComment = "never held across a wait"

func mustBeFreeOfLocks(dir string) bool {
	if dir == "revert/sqlite" || dir == "revert/postgres" || isTestPackage(dir) {
		return false // a database driver waits inside anyway; tests are not runtime code
	}
	for _, pattern := range freeOfLocks {
		if withinOrAt(pattern, dir) {
			return true
		}
	}
	return false
}

// locks: a mutex in runtime code carries the pledge.
func locks(fset *token.FileSet, file *ast.File) (broken []string) {
	sync := importName(file, "sync")
	pledged := map[int]bool{}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if strings.Contains(c.Text, shortLockComment) {
				pledged[fset.Position(c.Pos()).Line] = true
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if !ok || sync == "" || x.Name != sync || sel.Sel.Name != "Mutex" && sel.Sel.Name != "RWMutex" {
			return true
		}
		if at := fset.Position(sel.Pos()); !pledged[at.Line] {
			broken = append(broken, fmt.Sprintf("%s: sync.%s without the comment %q", at, sel.Sel.Name, shortLockComment))
		}
		return true
	})
	return broken
}

// outside are the functions that take from the operating system what runtime code must be given by its host: a run could
// not be repeated with them.
var outside = map[string][]string{
	"time":         {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"context":      {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"},
	"math/rand":    {""},
	"math/rand/v2": {""},
	"crypto/rand":  {""},
}

// seams: clock, randomness and timers of runtime code come from its host. The empty name forbids the whole package.
func seams(fset *token.FileSet, file *ast.File) (broken []string) {
	forbidden := map[string]map[string]bool{} // by the file's name of the package
	for path, names := range outside {
		local := importName(file, path)
		if local == "" {
			continue
		}
		if local == "v2" {
			local = "rand"
		}
		forbidden[local] = map[string]bool{}
		for _, name := range names {
			forbidden[local][name] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if !ok || x.Obj != nil {
			return true
		}
		if names := forbidden[x.Name]; names[""] || names[sel.Sel.Name] {
			broken = append(broken, fmt.Sprintf("%s: %s.%s; the host gives it", fset.Position(sel.Pos()), x.Name, sel.Sel.Name))
		}
		return true
	})
	return broken
}

// importName is the name that a file has for an imported package, or empty.
func importName(file *ast.File, importPath string) string {
	for _, spec := range file.Imports {
		if strings.Trim(spec.Path.Value, `"`) != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return importPath[strings.LastIndex(importPath, "/")+1:]
	}
	return ""
}

// inits: nothing happens because a package was imported.
func inits(fset *token.FileSet, file *ast.File) (broken []string) {
	for _, decl := range file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			broken = append(broken, fmt.Sprintf("%s: func init", fset.Position(fn.Pos())))
		}
	}
	return broken
}

// examplesIn are the names of the example functions of a test file.
func examplesIn(file *ast.File) (names []string) {
	for _, decl := range file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Example") {
			names = append(names, fn.Name.Name)
		}
	}
	return names
}

// long reports a file with more than maxLines lines.
func long(name, text string) (broken []string) {
	if n := strings.Count(text, "\n"); n > maxLines {
		broken = append(broken, fmt.Sprintf("%s has %d lines, more than %d", name, n, maxLines))
	}
	return broken
}

// foreign lists patterns of paths and addresses that exist on one machine or
// network only. A text without any of the parts cannot match. Searching for the
// parts first is a hundred times faster.
var foreign = []struct {
	parts []string
	is    *regexp.Regexp
}{
	{[]string{"work/", "root/"}, regexp.MustCompile(`(^|[^A-Za-z0-9_./])/(work|root)/`)},
	{[]string{"proxy.golang.", "sum.golang.", "goproxy."}, regexp.MustCompile(`\b(proxy|sum)\.golang\.org\b|\bgoproxy\.[a-z]+\b`)},
	{
		[]string{"registry.", "pypi"},
		regexp.MustCompile(`\bregistry\.(npmjs\.org|yarnpkg\.com|terraform\.io)\b|\b(files\.)?pypi(hosted)?\.org\b`),
	},
	{[]string{"crates.", "rubygems."}, regexp.MustCompile(`\b(index\.|static\.)?crates\.io\b|\brubygems\.org\b`)},
	{
		[]string{"ghcr.", "gcr.", "quay.", "docker."},
		regexp.MustCompile(`\b(ghcr|gcr|quay|docker)\.io\b|\bhub\.docker\.com\b`),
	},
}

// words: the tree speaks of the project alone.
func words(name, text string) (broken []string) {
	if strings.HasPrefix(name, "policies/lib/") {
		return nil // it lists the public registries for rules about programs
	}
	for _, word := range foreign {
		if !slices.ContainsFunc(word.parts, func(part string) bool { return strings.Contains(text, part) }) {
			continue
		}
		for _, at := range word.is.FindAllStringIndex(text, -1) {
			line := 1 + strings.Count(text[:at[1]], "\n")
			found := strings.TrimSpace(text[at[0]:at[1]])
			broken = append(broken, fmt.Sprintf("%s:%d: %q belongs to one machine or network", name, line, found))
		}
	}
	return broken
}
