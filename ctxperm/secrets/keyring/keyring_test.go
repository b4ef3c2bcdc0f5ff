package keyring_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	zalando "github.com/zalando/go-keyring"

	"github.com/remit-dev/remit/ctxperm/secrets"
	"github.com/remit-dev/remit/ctxperm/secrets/keyring"
)

func TestKeyring(t *testing.T) {
	zalando.MockInit()
	names, err := keyring.Names()
	require.NoError(t, err)
	require.Empty(t, names)
	require.NoError(t, keyring.Set("b", "value of b"))
	require.NoError(t, keyring.Set("a", "value of a"))
	require.NoError(t, keyring.Set("a", "other value of a"))
	names, err = keyring.Names()
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, names)
	got, err := keyring.Source(keyring.Service, "a")(t.Context())
	require.NoError(t, err)
	require.Equal(t, "other value of a", got)
	require.NoError(t, keyring.Remove("a"))
	require.ErrorIs(t, keyring.Remove("a"), secrets.ErrNotFound)
	_, err = keyring.Source(keyring.Service, "a")(t.Context())
	require.ErrorIs(t, err, secrets.ErrNotFound)
	require.NoError(t, zalando.Set(keyring.Service, ".names", "no list"))
	require.ErrorContains(t, keyring.Set("c", "value of c"), "is not a list of names")
	require.ErrorContains(t, keyring.Remove("b"), "is not a list of names")
}

// TestKeyringThatIsNotThere checks that each operation reports the missing
// keyring, and names an alternative.
func TestKeyringThatIsNotThere(t *testing.T) {
	zalando.MockInitWithError(errors.New("no bus"))
	defer zalando.MockInit()
	_, err := keyring.Names()
	_, read := keyring.Source("s", "u")(t.Context())
	for _, err := range []error{err, read, keyring.Set("a", "value of a"), keyring.Remove("a")} {
		require.ErrorContains(t, err, "no bus")
		require.ErrorContains(t, err, "keyring of this system cannot be used")
	}
	zalando.MockInitWithError(zalando.ErrSetDataTooBig)
	require.ErrorContains(t, keyring.Set("a", "value of a"), "no value of that size")
}

func ExampleSource() {
	zalando.MockInit() // a keyring in memory, for this example
	if err := keyring.Set("github", "ghp_0123456789abcdef"); err != nil {
		panic(err)
	}
	store, err := secrets.New(map[string]secrets.Source{"github": keyring.Source(keyring.Service, "github")})
	fmt.Println(store.Names(), err)
	// Output: [github] <nil>
}
