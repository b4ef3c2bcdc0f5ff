package files_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/revert/effect"
)

// TestTokens compares the form of tokens with vectors, because a journal
// outlives the program that wrote it.
func TestTokens(t *testing.T) {
	var vectors []struct {
		Name    string            `json:"name"`
		Type    string            `json:"type"`
		Perm    string            `json:"perm"` // octal, with setuid 4000, setgid 2000, sticky 1000
		Content string            `json:"content"`
		Target  []byte            `json:"target"`
		Xattrs  map[string][]byte `json:"xattrs"`
		Token   effect.Token      `json:"token"`
	}
	data, err := os.ReadFile("../../testdata/files/tokens.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &vectors))
	require.NotEmpty(t, vectors)
	seen := map[effect.Token]string{}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			bits, err := strconv.ParseUint("0"+v.Perm, 8, 12)
			require.NoError(t, err)
			perm := fs.FileMode(bits) & fs.ModePerm
			for bit, mode := range map[uint64]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
				if bits&bit != 0 {
					perm |= mode
				}
			}
			got := files.Version{Type: v.Type, Perm: perm, Content: v.Content, Target: string(v.Target), Xattrs: v.Xattrs}.Token()
			require.Equal(t, v.Token, got)
			require.Empty(t, seen[got], "two versions with one token")
			seen[got] = v.Name
		})
	}
}

func TestOrderOfAttributesDoesNotCount(t *testing.T) {
	a := files.Version{Type: "file", Xattrs: map[string][]byte{"user.a": {1}, "user.b": nil}}
	b := files.Version{Type: "file", Xattrs: map[string][]byte{"user.b": {}, "user.a": {1}}}
	require.Equal(t, a.Token(), b.Token())
	require.True(t, a.Token().Known())
	require.Equal(t, effect.Absent, files.Version{}.Token())
}
