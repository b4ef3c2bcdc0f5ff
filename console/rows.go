package console

import (
	"slices"
	"strings"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/diff"
)

// rowTable has the rows of a table in a difference.
type rowTable struct {
	Columns []string
	Rows    []rowLine
}

// rowLine is a row before or after. A row that changed has both.
type rowLine struct {
	Kind  string // add, del
	Cells []rowCell
}

type rowCell struct {
	Text    string
	Differs bool // from the other line of the row
}

// rowsOf returns a row as a table with one row. ok is false if the resource is no
// row, or its values are not known.
func rowsOf(d diff.Delta) (t rowTable, ok bool) {
	was, columns, wasRow := cellsOf(d.Before)
	is, names, isRow := cellsOf(d.After)
	if !wasRow || !isRow || d.Before.Exists() && d.After.Exists() && !slices.Equal(columns, names) {
		return t, false
	}
	if !d.Before.Exists() {
		columns = names
	}
	t.Columns = columns
	both := d.Before.Exists() && d.After.Exists()
	for i := range columns {
		if both && was[i].Text != is[i].Text {
			was[i].Differs, is[i].Differs = true, true
		}
	}
	if d.Before.Exists() {
		t.Rows = append(t.Rows, rowLine{"del", was})
	}
	if d.After.Exists() {
		t.Rows = append(t.Rows, rowLine{"add", is})
	}
	return t, len(columns) > 0
}

// cellsOf splits the parts of a row into columns and values.
func cellsOf(v diff.ResourceVersion) (cells []rowCell, columns []string, ok bool) {
	if !v.Exists() {
		return nil, nil, true
	}
	for _, part := range v.Lines {
		name, value, found := strings.Cut(part, ": ")
		if !found {
			return nil, nil, false
		}
		columns, cells = append(columns, name), append(cells, rowCell{Text: value})
	}
	return cells, columns, v.Type == "row"
}

// tableOf returns the resource of the table of a row.
func tableOf(row string) string {
	at := strings.LastIndexByte(row, '/')
	if at < 0 {
		return row
	}
	if r, err := perm.ParseResource(row[:at]); err == nil && r.Facts().Table != "" {
		return row[:at]
	}
	return row
}

// joined adds the rows to the last file if it is the same table.
func joined(files []fileDiff, f fileDiff) bool {
	if len(files) == 0 || f.Table == nil {
		return false
	}
	last := &files[len(files)-1]
	if last.Table == nil || last.Resource != f.Resource || !slices.Equal(last.Table.Columns, f.Table.Columns) {
		return false
	}
	last.Table.Rows = append(last.Table.Rows, f.Table.Rows...)
	last.Added, last.Removed, last.Verb = last.Added+f.Added, last.Removed+f.Removed, "changed"
	return true
}
