package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzTableName checks that the name of a table in a resource identifies its
// schema and table, and no other.
func FuzzTableName(f *testing.F) {
	for _, s := range [][2]string{{"public", "users"}, {"a", "b"}, {"public", "a.b"}, {`a"`, `"b`}, {"", "."}, {"a.b", "c"}, {"public", `""`}} {
		f.Add(s[0], s[1], "public", "users")
	}
	f.Fuzz(func(t *testing.T, schema, table, otherSchema, otherTable string) {
		if schema == "" || table == "" || otherSchema == "" || otherTable == "" {
			return // PostgreSQL has no such names
		}
		require.Equal(t, quote(schema)+"."+quote(table), split(nameOf(schema, table)))
		same := schema == otherSchema && table == otherTable
		require.Equal(t, same, nameOf(schema, table) == nameOf(otherSchema, otherTable))
	})
}
