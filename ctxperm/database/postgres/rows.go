package postgres

import (
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
)

func columns(fields []pgconn.FieldDescription) []string {
	out := make([]string, 0, len(fields))
	for _, f := range fields {
		out = append(out, f.Name)
	}
	return out
}

// rowOf returns a displayed row, and its bytes.
func rowOf(fields []pgconn.FieldDescription, raw [][]byte) (row []any, size int) {
	row = make([]any, len(raw))
	for i, v := range raw {
		row[i] = value(fields[i].DataTypeOID, v)
		size += len(v) + 4
	}
	return row, size
}

// page reads all rows of a statement and keeps the wanted ones.
func page(r *pgconn.ResultReader, w engine.Page) (out engine.Rows, err error) {
	out.Rows = [][]any{}
	out.Columns = columns(r.FieldDescriptions())
	size := 0
	for r.NextRow() {
		if out.More || len(out.Rows) == w.Max {
			out.More = true
			continue
		}
		row, n := rowOf(r.FieldDescriptions(), r.Values())
		if size += n; size > w.Bytes {
			out.More = true
			continue
		}
		out.Rows = append(out.Rows, row)
	}
	tag, err := r.Close()
	if err == nil && !tag.Select() {
		out.Affected = tag.RowsAffected()
	}
	return out, err
}
