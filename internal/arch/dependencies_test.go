package arch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// requirement matches one line of go.mod that requires a module.
var requirement = regexp.MustCompile(`(?m)^(?:require )?\s*(\S+\.\S+/?\S*) (v\S+)( // indirect)?$`)

// TestDependencies checks that docs/explanation/rationale.md has a row for each
// module that go.mod requires directly, with its version.
func TestDependencies(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "explanation", "rationale.md"))
	require.NoError(t, err)
	required := map[string]string{}
	for _, m := range requirement.FindAllStringSubmatch(string(mod), -1) {
		if m[3] == "" {
			required[m[1]] = m[2]
		}
	}
	require.Greater(t, len(required), 20)
	report(t, unexplained(required, string(page)))
}

// unexplained lists the modules without a row in a page, and the rows with
// another version.
func unexplained(required map[string]string, page string) (broken []string) {
	rows := map[string]string{} // the second cell, by each module that the first one names
	for line := range strings.Lines(page) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| `") || len(cells) < 3 {
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[0], -1) {
			rows[m[1]] = cells[1]
		}
	}
	for module, version := range required {
		switch row, known := rows[module]; {
		case !known:
			broken = append(broken, fmt.Sprintf("docs/explanation/rationale.md has no row for %s: add what it gives, its facts and the alternatives", module))
		case strings.Fields(row)[0] != version:
			broken = append(broken, fmt.Sprintf("docs/explanation/rationale.md names %s %s, and go.mod %s: check the row", module, strings.Fields(row)[0], version))
		}
	}
	return broken
}

func TestDependenciesRule(t *testing.T) {
	page := "| `a.b/c` (`d`) | v1.0.0 of 2026-01-02 | MIT |\n"
	require.Empty(t, unexplained(map[string]string{"a.b/c": "v1.0.0"}, page))
	require.Len(t, unexplained(map[string]string{"a.b/c": "v1.0.1"}, page), 1)
	require.Len(t, unexplained(map[string]string{"a.b/x": "v1.0.0"}, page), 1)
}
