package arch_test

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// goName matches a name of a package in code, such as agent.Txn.
var goName = regexp.MustCompile(`\b([a-z]\w*)\.([A-Z]\w*)`)

// TestGoNames checks that pages for users name only what packages export.
func TestGoNames(t *testing.T) {
	files := tree(t)
	exported, packages := map[string]bool{}, map[string]bool{} // by "package.Name", and by package
	for _, s := range files {
		if s.file == nil || s.isTest() {
			continue
		}
		name := s.file.Name.Name
		packages[name] = true
		if strings.Contains("/"+s.path, "/internal/") {
			continue
		}
		for _, n := range exportedNames(s.file) {
			exported[name+"."+n] = true
		}
	}
	require.Greater(t, len(exported), 500)
	var broken []string
	for _, s := range files {
		switch {
		case path.Ext(s.path) != ".md", s.path == "docs/guides/seed.md": // for contributors
		case s.path == "README.md", strings.HasPrefix(s.path, "docs/guides/"), strings.HasPrefix(s.path, "docs/tutorial/"), strings.HasPrefix(s.path, "docs/reference/"):
			broken = append(broken, unknownNames(s.path, s.text, packages, exported)...)
		}
	}
	report(t, broken)
}

// unknownNames lists the names in code on a page that no package exports.
func unknownNames(page, text string, packages, exported map[string]bool) (broken []string) {
	for _, span := range codeSpan.FindAllString(text, -1) {
		for _, m := range goName.FindAllStringSubmatch(span, -1) {
			if packages[m[1]] && !exported[m[0]] {
				broken = append(broken, fmt.Sprintf("%s names %s, which no package exports", page, m[0]))
			}
		}
	}
	return broken
}

func TestGoNamesRule(t *testing.T) {
	packages, exported := map[string]bool{"agent": true, "review": true}, map[string]bool{"agent.Txn": true}
	require.Empty(t, unknownNames("a.md", "`agent.Txn.Invoke` `input.Call` agent.None", packages, exported))
	require.Len(t, unknownNames("a.md", "`agent.None` `review.Tools(tools...)`", packages, exported), 2)
}
