package engine

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCells checks that values round-trip, and that other texts are refused.
func TestCells(t *testing.T) {
	for _, v := range []any{nil, int64(math.MinInt64), 0.1, math.Inf(1), 5.0, "", "é\x00", "\xff", []byte{}, []byte{0, 255}} {
		got, err := Values([]string{Cell(v)})
		require.NoError(t, err)
		require.Equal(t, []any{v}, got)
	}
	for _, bad := range []string{"z", "i1.5", "rx", "b!", "x!"} {
		_, err := Values([]string{bad})
		require.Error(t, err, bad)
	}
	require.Panics(t, func() { Cell(struct{}{}) })
	require.Equal(t, "+Inf", Plain(math.Inf(1)))
	require.False(t, Image{"a"}.Same(nil))
	require.False(t, Image{"a"}.Same(Image{"b"}))
	require.NotEqual(t, Image{"a", "b"}.Digest(Table{Name: "t", Cols: []string{"x", "y"}}), Image{"ab", ""}.Digest(Table{Name: "t", Cols: []string{"x", "y"}}))
}
