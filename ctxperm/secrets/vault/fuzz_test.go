package vault_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/secrets/vault"
)

// FuzzContents checks that the vault reads the secrets of version 1 or nothing
// from any decrypted content. Adding a secret keeps the others, and no error
// repeats the content.
func FuzzContents(f *testing.F) {
	for _, seed := range []string{
		`{"v":1,"secrets":{"a":"the value"}}`, `{"v":2,"secrets":{}}`, `{"v":1}`, `{"v":1,"secrets":null}`, `{"v":1,"secrets":{"a":"x","a":"y"}}`,
		`{"v":1,"Secrets":{}}`, `{"v":1,"secrets":{"a":7}}`, ``, `[]`, `{"v":1,"secrets":{"":""}}`, `{"v":1,"secrets":{"a":"\ud800"}}`,
	} {
		f.Add([]byte(seed))
	}
	dir := f.TempDir()
	key := filepath.Join(dir, "key.txt")
	require.NoError(f, vault.NewIdentity(key))
	data, err := os.ReadFile(key)
	require.NoError(f, err)
	ids, err := age.ParseIdentities(bytes.NewReader(data))
	require.NoError(f, err)
	id, ok := ids[0].(*age.X25519Identity)
	require.True(f, ok)
	f.Fuzz(func(t *testing.T, plain []byte) {
		path := filepath.Join(t.TempDir(), "v.age")
		var sealed bytes.Buffer
		w, err := age.Encrypt(&sealed, id.Recipient())
		require.NoError(t, err)
		_, err = w.Write(plain)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.NoError(t, os.WriteFile(path, sealed.Bytes(), 0o600))
		v := vault.At(path, key)
		names, err := v.Names()
		if err != nil {
			if len(plain) > 8 {
				require.NotContains(t, err.Error(), string(plain))
			}
			require.Error(t, v.Set("new", "value"), "what cannot be read is not replaced")
			now, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, sealed.Bytes(), now)
			return
		}
		var want struct {
			V       int               `json:"v"`
			Secrets map[string]string `json:"secrets"`
		}
		require.NoError(t, json.Unmarshal(plain, &want))
		require.Equal(t, 1, want.V)
		if want.Secrets == nil {
			want.Secrets = map[string]string{}
		}
		require.Equal(t, slices.Sorted(maps.Keys(want.Secrets)), append([]string(nil), names...))
		require.NoError(t, v.Set("new", "value"))
		want.Secrets["new"] = "value"
		for name, value := range want.Secrets {
			got, err := v.Source(name)(t.Context())
			require.NoError(t, err)
			require.Equal(t, value, got)
		}
		require.NoFileExists(t, path+".lock")
	})
}
