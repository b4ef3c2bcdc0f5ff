package jsonfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Finding is one problem of a file.
type Finding struct {
	File         string
	Line, Column int // from 1; 0: the problem concerns the whole file
	Text         string
}

// String returns the finding with its place in the format of compilers.
func (f Finding) String() string { return f.Place() + ": " + f.Text }

// Place returns the file, and the line and column if they are known.
func (f Finding) Place() string {
	if f.Line == 0 {
		return f.File
	}
	return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
}

// Report collects findings.
type Report struct{ all []Finding }

// Add adds a finding.
func (r *Report) Add(f Finding) { r.all = append(r.all, f) }

// About reports whether there is a finding about a file.
func (r *Report) About(file string) bool {
	return slices.ContainsFunc(r.all, func(f Finding) bool { return f.File == file })
}

// Len returns the number of findings.
func (r *Report) Len() int { return len(r.all) }

// Err returns all findings as one error, or nil if there are none.
func (r *Report) Err() error {
	if len(r.all) == 0 {
		return nil
	}
	all := slices.Clone(r.all)
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &FindingsError{slices.Compact(all)}
}

// FindingsError is all findings about some files, by file, line and column.
type FindingsError struct{ All []Finding }

// Error returns one line for each finding.
func (e *FindingsError) Error() string {
	var lines []string
	for _, f := range e.All {
		lines = append(lines, f.String())
	}
	return strings.Join(lines, "\n")
}
