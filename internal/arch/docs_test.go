package arch_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	mdLink   = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	codeSpan = regexp.MustCompile("`[^`\n]*`")
	testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)")
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9_]+)\(`)
)

// TestDocs: what the docs point at is there: files, and tests.
func TestDocs(t *testing.T) {
	files := tree(t)
	tests := map[string]bool{}
	for _, s := range files {
		if s.isTest() {
			for _, m := range testFunc.FindAllStringSubmatch(s.text, -1) {
				tests[m[1]] = true
			}
		}
	}
	var broken []string
	for _, s := range files {
		if path.Ext(s.path) == ".md" {
			broken = append(broken, pointing(s.path, s.text, tests, func(name string) bool {
				_, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
				return err == nil
			})...)
		}
	}
	report(t, broken)
}

// pointing: a text names no file and no test that is not there.
func pointing(name, text string, tests map[string]bool, there func(string) bool) (broken []string) {
	for _, m := range mdLink.FindAllStringSubmatch(codeSpan.ReplaceAllString(text, ""), -1) {
		if to := m[1]; !strings.Contains(to, "://") && !there(path.Join(path.Dir(name), to)) {
			broken = append(broken, fmt.Sprintf("%s leads to %s, which is not there", name, to))
		}
	}
	for _, m := range testName.FindAllStringSubmatch(text, -1) {
		if !tests[m[1]] {
			broken = append(broken, fmt.Sprintf("%s names the test %s, which is not there", name, m[1]))
		}
	}
	return broken
}

// TestDocsRule shows what breaks it.
func TestDocsRule(t *testing.T) {
	there := func(name string) bool { return name == "docs/limits.md" || name == "README.md" }
	tests := map[string]bool{"TestText": true}
	require.Empty(t, pointing("docs/a.md", "[x](limits.md#of-files) [y](../README.md) [z](https://a.b/c) [w](#here) `a[T](nil)` `TestText`", tests, there))
	require.Equal(t, []string{"docs/a.md leads to README.md, which is not there"}, pointing("docs/a.md", "[x](README.md)", tests, there))
	require.Equal(t, []string{"a.md names the test TestNone, which is not there"}, pointing("a.md", "`TestNone`", tests, there))
}
