package engine

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzCell checks that every value round-trips with its type, and that two
// values never have one cell.
func FuzzCell(f *testing.F) {
	f.Add(int64(math.MinInt64), math.Inf(-1), "té", []byte{0xff}, "i+5")
	f.Add(int64(0), math.Copysign(0, -1), "", []byte{}, "r1.50")
	f.Add(int64(7), 1e300, "\xff", []byte("a"), "xYQ==")
	f.Add(int64(-1), 0.1, "NULL", []byte(nil), "bYQ==\n")
	f.Add(int64(1), 5e-324, "x", []byte("t"), "q")
	f.Fuzz(func(t *testing.T, i int64, r float64, s string, b []byte, cell string) {
		if b == nil {
			b = []byte{}
		}
		seen := map[string]any{}
		for _, v := range []any{nil, i, r, s, b} {
			c := Cell(v)
			require.NotContains(t, seen, c)
			seen[c] = v
			again, err := Value(c)
			require.NoError(t, err)
			if v == any(r) || math.IsNaN(r) && c == Cell(r) {
				read, isFloat := again.(float64)
				require.True(t, isFloat)
				require.Equal(t, r == 0 && math.Signbit(r), read == 0 && math.Signbit(read))
			}
			require.Equal(t, c, Cell(again))
			if !math.IsNaN(r) || c != Cell(r) {
				require.Equal(t, v, again)
			}
		}
		v, err := Value(cell)
		if err != nil {
			require.Zero(t, v)
			return
		}
		require.Equal(t, cell, Cell(v), "a value has one cell, so comparing cells compares values")
	})
}
