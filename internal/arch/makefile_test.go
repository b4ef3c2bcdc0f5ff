package arch_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlainTests: make test runs the tests that PLAIN names in these packages alone. A test of such a name in another package would not run at
// all.
func TestPlainTests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	list := regexp.MustCompile(`(?m)^PLAIN = \^\((\S+)\)\$\$$`).FindSubmatch(text)
	require.NotNil(t, list)
	in := regexp.MustCompile(`(?m)^PLAIN_IN = (.+)$`).FindSubmatch(text)
	require.NotNil(t, in)
	process := regexp.MustCompile(`(?m)^PROCESS = (\S+)$`).FindSubmatch(text)
	require.NotNil(t, process)
	packages := strings.Fields(strings.ReplaceAll(string(in[1]), "$(PROCESS)", string(process[1])))
	named := map[string]bool{}
	for _, name := range strings.Split(string(list[1]), "|") {
		named[name] = false
	}
	for _, s := range tree(t) {
		if !s.isTest() {
			continue
		}
		for _, m := range testFunc.FindAllStringSubmatch(s.text, -1) {
			if _, is := named[m[1]]; is {
				require.Contains(t, packages, "./"+filepath.ToSlash(filepath.Dir(s.path)), m[1])
				named[m[1]] = true
			}
		}
	}
	for name, there := range named {
		require.True(t, there, "%s is no test any more", name)
	}
}
