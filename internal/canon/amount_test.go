package canon_test

import (
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
)

// TestAmountsAreExact compares sums and comparisons of random decimals with
// fractions of integers.
func TestAmountsAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	sum, want := canon.Amount{}, new(big.Rat)
	for range 2000 {
		text := strconv.FormatInt(r.Int64N(2e6)-1e6, 10)
		if r.IntN(2) == 0 {
			text += "." + strconv.Itoa(r.IntN(1e6))
		}
		if r.IntN(4) == 0 {
			text += "e" + strconv.Itoa(r.IntN(60)-30)
		}
		a, err := canon.ParseAmount(text)
		require.NoError(t, err, text)
		exact, ok := new(big.Rat).SetString(text)
		require.True(t, ok)
		before, next := new(big.Rat).Set(want), sum
		if r.IntN(3) > 0 {
			next, want = sum.Plus(a), new(big.Rat).Add(want, exact)
		} else {
			next, want = sum.Minus(a), new(big.Rat).Sub(want, exact)
		}
		require.Equal(t, want.Cmp(before), next.Cmp(sum))
		require.Equal(t, want.Sign(), next.Sign())
		sum = next
		read, ok := new(big.Rat).SetString(sum.String())
		require.True(t, ok, sum.String())
		require.Zero(t, read.Cmp(want), sum.String())
	}
}

func TestAmountsAreWrittenLikeNumbers(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "1.50": "1.5", "1e3": "1000", "1e-7": "1e-7", "0.1": "0.1", "1e40": "1e+40", "-2.5e1": "-25",
	} {
		a, err := canon.ParseAmount(text)
		require.NoError(t, err)
		canonical, err := canon.Canonicalize([]byte(text), canon.DefaultLimits())
		require.NoError(t, err)
		require.Equal(t, want, a.String())
		require.Equal(t, string(canonical), a.String())
	}
	require.Equal(t, "0", canon.Amount{}.String())
	for _, bad := range []string{`"1"`, "", "1e999", "true", "1 2"} {
		_, err := canon.ParseAmount(bad)
		require.Error(t, err, bad)
	}
}
