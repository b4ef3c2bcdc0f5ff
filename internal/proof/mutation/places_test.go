package mutation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/mutation"
)

// TestEveryPlaceIsTagged checks that each place has its tag, and each tag its
// place.
func TestEveryPlaceIsTagged(t *testing.T) {
	files, err := mutation.All("../../..")
	require.NoError(t, err)
	n := 0
	for _, f := range files {
		all, err := f.Mutants()
		require.NoError(t, err, f.Path)
		n += len(all)
	}
	t.Log(n, "bugs can be planted")
	require.Greater(t, n, 60)
}
