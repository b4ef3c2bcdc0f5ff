package jsonfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Finding is one thing that is wrong.
type Finding struct {
	File         string
	Line, Column int // from 1; 0: it is about the file as a whole
	Text         string
}

// String begins with the place as compilers write it.
func (f Finding) String() string { return f.Place() + ": " + f.Text }

// Place is the file, and the line and column where they are known.
func (f Finding) Place() string {
	if f.Line == 0 {
		return f.File
	}
	return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
}

// Report collects findings.
type Report struct{ all []Finding }

// Add adds one.
func (r *Report) Add(f Finding) { r.all = append(r.all, f) }

// About reports whether there is one about a file.
func (r *Report) About(file string) bool {
	return slices.ContainsFunc(r.all, func(f Finding) bool { return f.File == file })
}

// Len is how many there are.
func (r *Report) Len() int { return len(r.all) }

// Err returns all of them as one error, nil where there are none.
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

// FindingsError is all that is wrong with some files, by file, line and column.
type FindingsError struct{ All []Finding }

// Error has one line for each.
func (e *FindingsError) Error() string {
	var lines []string
	for _, f := range e.All {
		lines = append(lines, f.String())
	}
	return strings.Join(lines, "\n")
}
