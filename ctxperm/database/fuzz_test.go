package database

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/effect"
)

// FuzzInverse checks that the inverse of a row is complete, has its versions,
// and round-trips.
func FuzzInverse(f *testing.F) {
	of := engine.Table{Name: "t", Cols: []string{"id", "a"}, Key: []int{0}}
	for _, i := range []inverse{
		{At: "sqlite:/a", Mark: engine.TxnMarker{Identity: "x", Op: "o"}, Table: of, Was: engine.Image{"i1", "ta"}, Will: engine.Image{"i1", ""}},
		{At: "sqlite:/a", Table: of, Will: engine.Image{"i1", "ta"}},
		{At: "sqlite:/a", Table: of, Was: engine.Image{"i1"}},
		{At: "sqlite:/a", Table: engine.Table{Name: "t", Cols: []string{"id"}, Key: []int{1}}, Was: engine.Image{"i1"}},
		{At: "sqlite:/a", Table: engine.Table{Name: "t", Cols: []string{"id"}, Key: []int{-1}}, Will: engine.Image{"q"}},
		{At: "sqlite:/a", Table: of, Kept: &effect.BlobRef{Digest: "sha256:00", Size: 1}, Key: []string{"i1"}},
	} {
		raw, err := canon.Marshal(i)
		require.NoError(f, err)
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		i, err := readInverse(t.Context(), effect.Change{Scheme: schemeName, Inverse: raw}, nil)
		if err != nil {
			return
		}
		require.NotPanics(t, func() {
			for _, image := range []engine.Image{i.Was, i.Will} {
				if image != nil {
					token(i.Table, image)
					i.Table.Ref(image)
				}
			}
		})
		first, err := canon.Marshal(i)
		require.NoError(t, err)
		again, err := readInverse(t.Context(), effect.Change{Scheme: schemeName, Inverse: first}, nil)
		require.NoError(t, err)
		second, err := canon.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(first), string(second))
	})
}

// FuzzRowNames checks that two rows of one table never have one name, and that
// each name belongs to its table.
func FuzzRowNames(f *testing.F) {
	f.Add("t", "i1", "t1")
	f.Add("a/b", "ta','b", "ta,b")
	f.Add("t", "r1", "i1")
	f.Add("t", "", "tNULL")
	f.Add("é", "xYQ==", "bYQ==")
	f.Fuzz(func(t *testing.T, table, a, b string) {
		x, err := engine.Value(a)
		if err != nil || table == "" {
			return
		}
		y, err := engine.Value(b)
		if err != nil {
			return
		}
		a, b = engine.Cell(x), engine.Cell(y)
		of := func(cells ...string) string {
			return rowResource("main", engine.Ref{Table: engine.Table{Name: table}, Key: cells})
		}
		require.Equal(t, a == b, of(a) == of(b), "%q and %q", a, b)
		require.Equal(t, a == b, of(a, b) == of(b, a))
		require.NotEqual(t, of(a), of(a, b))
		require.Equal(t, "main", nameIn(of(a)))
		require.True(t, json.Valid([]byte(`"`+of(a)+`"`)), "%s", of(a))
	})
}
