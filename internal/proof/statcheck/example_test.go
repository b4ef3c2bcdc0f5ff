package statcheck_test

import (
	"flag"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	_ "pgregory.net/rapid" // for its flags

	"github.com/remit-dev/remit/internal/proof/statcheck"
)

func Example() {
	for seed := 0; seed < statcheck.Size(100, 1_000_000); seed++ {
		_ = seed // a separate run
	}
	for at := 1; at < 1000; at += statcheck.Stride(7) {
		_ = at // a place to die at
	}
}

// TestWhole checks that everything is used on request, and never nothing.
func TestWhole(t *testing.T) {
	t.Setenv("REMIT_LONG", "")
	require.False(t, statcheck.Whole())
	for usually := 1; usually < 10; usually++ {
		require.Positive(t, statcheck.Size(usually, 1000))
		require.LessOrEqual(t, statcheck.Size(usually, 1000), usually)
		require.GreaterOrEqual(t, statcheck.Stride(usually), usually)
	}
	require.Equal(t, statcheck.Racing, statcheck.Size(8, 1000) == 1)
	require.Equal(t, statcheck.Racing, statcheck.Stride(8) == 64)
	t.Setenv("REMIT_LONG", "1")
	require.True(t, statcheck.Whole())
	require.Equal(t, 1000, statcheck.Size(8, 1000))
	require.Equal(t, 1, statcheck.Stride(8))
}

// TestChecks checks that properties draw this often during a test, unless the
// command line says otherwise.
func TestChecks(t *testing.T) {
	checks := flag.Lookup("rapid.checks").Value
	said := checks.String()
	defer func() { require.NoError(t, checks.Set(said)) }()
	for of, want := range map[string]string{flag.Lookup("rapid.checks").DefValue: strconv.Itoa(statcheck.Size(8, 1000)), "7": "7"} {
		require.NoError(t, checks.Set(of))
		t.Run(of, func(t *testing.T) {
			statcheck.Checks(t, 8, 1000)
			require.Equal(t, want, checks.String())
		})
		require.Equal(t, of, checks.String())
	}
}
