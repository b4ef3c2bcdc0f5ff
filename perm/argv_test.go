package perm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
)

// TestArgv checks that a command line is one value. It equals only a command
// line with the same words in the same places, and round-trips.
func TestArgv(t *testing.T) {
	seen := map[perm.Argv]string{}
	for _, words := range [][]string{nil, {""}, {"", ""}, {"a"}, {"a", ""}, {"", "a"}, {"a", "b"}, {"a b"}, {"ab"}, {"a\nb", "é"}} {
		a, err := perm.NewArgv(words...)
		require.NoError(t, err)
		name := strings.Join(words, "|")
		require.NotContains(t, seen, a, name)
		seen[a] = name
		require.Equal(t, words, a.List())
		text, err := json.Marshal(a)
		require.NoError(t, err)
		var again perm.Argv
		require.NoError(t, json.Unmarshal(text, &again))
		require.Equal(t, a, again)
	}
	_, err := perm.NewArgv("a", "b\x00c")
	require.EqualError(t, err, "an argument of a command line holds a NUL")
	var a perm.Argv
	require.ErrorContains(t, json.Unmarshal([]byte(`["a\u0000"]`), &a), "holds a NUL")
	require.Error(t, json.Unmarshal([]byte(`"a"`), &a))
	require.Empty(t, a.List())
}
