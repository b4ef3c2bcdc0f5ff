package mutation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Table maps the name of each bug to the test that noticed it: the import path
// of a package, and the test. That test runs first.
type Table map[string]string

const heading = "| bug | noticed by |\n| --- | --- |\n"

// ParseTable parses a table in a Markdown text.
func ParseTable(text string) (Table, error) {
	_, rows, found := strings.Cut(text, heading)
	if !found {
		return nil, fmt.Errorf("there is no table of bugs: want the line %q", strings.SplitN(heading, "\n", 2)[0])
	}
	t := Table{}
	for row := range strings.Lines(rows) {
		bug, by, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(row), "| "), " |"), " | ")
		if !ok {
			break // the table has ended
		}
		if t[bug] != "" {
			return nil, fmt.Errorf("%s: named twice", bug)
		}
		t[bug] = by
	}
	return t, nil
}

// Into replaces the table in a Markdown text.
func (t Table) Into(text string) string {
	before, rows, _ := strings.Cut(text, heading)
	for strings.HasPrefix(rows, "| ") {
		_, rows, _ = strings.Cut(rows, "\n")
	}
	var b strings.Builder
	b.WriteString(before + heading)
	for _, bug := range slices.Sorted(maps.Keys(t)) {
		fmt.Fprintf(&b, "| %s | %s |\n", bug, t[bug])
	}
	b.WriteString(rows)
	return b.String()
}

// Suite returns the test that noticed a bug before, as the arguments of go
// test, or none.
func (t Table) Suite(bug string) []string {
	folder, test, ok := strings.Cut(t[bug], " ")
	if !ok {
		return nil
	}
	return []string{"-run", "^" + test + "$", folder}
}

// Title returns the name of a bug in a file, which stays the same when lines
// move.
func (m Mutant) Title(path string) string { return path + " " + m.Name + ", " + m.How }
