package vault_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/secrets"
	"github.com/remit-dev/remit/ctxperm/secrets/vault"
)

func TestVault(t *testing.T) {
	dir := t.TempDir()
	path, key := filepath.Join(dir, "v.age"), filepath.Join(dir, "key.txt")
	v := vault.At(path, key)
	_, err := v.Source("a")(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, v.Set("a", "value"), fs.ErrNotExist)
	require.NoFileExists(t, path)
	require.NoError(t, vault.NewIdentity(key))
	require.ErrorIs(t, vault.NewIdentity(key), fs.ErrExist, "never over another one")
	names, err := v.Names()
	require.NoError(t, err)
	require.Empty(t, names)

	require.NoError(t, v.Set("b", "the value of b"))
	require.NoError(t, v.Set("a", "the value of a\nin two lines"))
	names, err = v.Names()
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, names)
	got, err := v.Source("a")(t.Context())
	require.NoError(t, err)
	require.Equal(t, "the value of a\nin two lines", got)
	require.NoError(t, v.Remove("b"))
	require.ErrorIs(t, v.Remove("b"), secrets.ErrNotFound)
	_, err = v.Source("b")(t.Context())
	require.ErrorIs(t, err, secrets.ErrNotFound)

	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2, "no draft and no lock is left")
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode())
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		require.NotContains(t, string(data), "value")
	}
}

// TestVaultThatCannotBeRead checks that each case names the problem, changes
// nothing, and repeats no secret.
func TestVaultThatCannotBeRead(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(t *testing.T, path, key string)
		says  string
	}{
		"another identity": {func(t *testing.T, _, key string) {
			require.NoError(t, os.Remove(key))
			require.NoError(t, vault.NewIdentity(key))
		}, "is encrypted for another identity"},
		"readable by others": {func(t *testing.T, _, key string) { require.NoError(t, os.Chmod(key, 0o640)) }, "others can read the identity"},
		"lost identity":      {func(t *testing.T, _, key string) { require.NoError(t, os.Remove(key)) }, "the identity of the vault"},
		"no identity": {func(t *testing.T, _, key string) {
			require.NoError(t, os.WriteFile(key, []byte("AGE-SECRET-KEY-1TYPO"), 0o600))
		}, "is not an identity file of age"},
		"a flipped bit": {func(t *testing.T, path, _ string) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			data[len(data)-1] ^= 1
			require.NoError(t, os.WriteFile(path, data, 0o600))
		}, "is damaged"},
		"cut": {func(t *testing.T, path, _ string) { require.NoError(t, os.Truncate(path, 30)) }, "is damaged"},
		"other contents": {func(t *testing.T, path, key string) {
			seal(t, path, key, `{"v":2,"secrets":{"a":"the value of a"}}`)
		}, "holds something else"},
		"no list":       {func(t *testing.T, path, key string) { seal(t, path, key, `{"v":1,"secrets":null}`) }, "holds something else"},
		"being changed": {func(t *testing.T, path, _ string) { require.NoError(t, os.WriteFile(path+".lock", nil, 0o600)) }, "another process is changing"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, key := filepath.Join(dir, "v.age"), filepath.Join(dir, "key.txt")
			v := vault.At(path, key)
			require.NoError(t, vault.NewIdentity(key))
			require.NoError(t, v.Set("a", "the value of a"))
			test.spoil(t, path, key)
			before, err := os.ReadFile(path)
			require.NoError(t, err)
			_, err = v.Names()
			require.Equal(t, name != "being changed", err != nil)
			err = v.Set("b", "the value of b")
			require.ErrorContains(t, err, test.says)
			require.NotContains(t, err.Error(), "the value")
			require.NotContains(t, err.Error(), "AGE-SECRET")
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}

// TestVaultAfterAKill checks that a change does not write through the leftover
// of a killed process, for any kind of file in its place.
func TestVaultAfterAKill(t *testing.T) {
	dir := t.TempDir()
	path, key := filepath.Join(dir, "v.age"), filepath.Join(dir, "key.txt")
	v := vault.At(path, key)
	require.NoError(t, vault.NewIdentity(key))
	require.NoError(t, v.Set("a", "the value of a"))
	victim := filepath.Join(dir, "victim")
	require.NoError(t, os.WriteFile(victim, []byte("mine"), 0o600))
	require.NoError(t, os.Symlink(victim, path+".new"))
	require.NoError(t, v.Set("b", "the value of b"))
	data, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "mine", string(data))
	require.NoError(t, os.WriteFile(path+".new", []byte("half"), 0o600))
	require.NoError(t, os.Chmod(path+".new", 0o666))
	require.NoError(t, v.Set("c", "the value of c"))
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.True(t, info.Mode().IsRegular())
	require.Zero(t, info.Mode().Perm()&0o077)
	require.NoError(t, os.MkdirAll(filepath.Join(path+".new", "x"), 0o700))
	require.Error(t, v.Set("d", "the value of d"))
	names, err := v.Names()
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c"}, names)
}

func seal(t *testing.T, path, key, contents string) {
	data, err := os.ReadFile(key)
	require.NoError(t, err)
	ids, err := age.ParseIdentities(bytes.NewReader(data))
	require.NoError(t, err)
	id, ok := ids[0].(*age.X25519Identity)
	require.True(t, ok)
	f, err := os.Create(path)
	require.NoError(t, err)
	w, err := age.Encrypt(f, id.Recipient())
	require.NoError(t, err)
	_, err = w.Write([]byte(contents))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
}

// TestIdentities checks that post-quantum keys work, and keys without a public
// key do not.
func TestIdentities(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "key.txt")
	id, err := age.GenerateHybridIdentity()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(key, []byte(id.String()+"\n"), 0o600))
	v := vault.At(filepath.Join(dir, "v.age"), key)
	require.NoError(t, v.Set("a", "the value of a"))
	got, err := v.Source("a")(t.Context())
	require.NoError(t, err)
	require.Equal(t, "the value of a", got)
	require.ErrorContains(t, v.Set("big", strings.Repeat("x", 4<<20)), "at most")
	require.ErrorIs(t, vault.At(filepath.Join(dir, "none", "v.age"), key).Set("a", "value"), fs.ErrNotExist)
}

func Example() {
	dir, err := os.MkdirTemp("", "vault")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	key := filepath.Join(dir, "identity.txt")
	if err := vault.NewIdentity(key); err != nil {
		panic(err)
	}
	v := vault.At(filepath.Join(dir, "secrets.age"), key)
	if err := v.Set("github", "ghp_0123456789abcdef"); err != nil {
		panic(err)
	}
	store, err := secrets.New(map[string]secrets.Source{"github": v.Source("github")})
	fmt.Println(store.Names(), err)
	// Output: [github] <nil>
}
