package callstate_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/callstate"
)

// FuzzScrub checks that a secret is removed at any place and in any form, and
// the text around it stays. A text without one does not change. A second scrub
// changes nothing.
func FuzzScrub(f *testing.F) {
	f.Add("pass-word/1", "user:", "@host")
	f.Add("a\"b\\c\nd<e>", "{\"k\":\"", "\"}")
	f.Add("é漢\U0001F600", "", "")
	f.Add("-----BEGIN KEY-----\nMIIEvQIBADANBg\n-----END KEY-----\n", "x", "y")
	f.Add("aaaa", "aaa", "a")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		if len(secret) < 8 || len(secret) > 200 || strings.Contains(callstate.HiddenText, secret) || strings.ToValidUTF8(secret, "") != secret {
			t.Skip() // shorter ones occur in any text by chance
		}
		h := new(callstate.SecretValues)
		h.Add(secret)
		s := callstate.SecretsOf([]any{hider{h}})
		inJSON, err := json.Marshal(secret)
		require.NoError(t, err)
		for _, form := range []string{
			secret, hex.EncodeToString([]byte(secret)), url.QueryEscape(secret), url.PathEscape(secret), string(inJSON[1 : len(inJSON)-1]),
			strings.Trim(strconv.Quote(secret), `"`), base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)),
		} {
			if len(form) < 8 {
				continue // a quote at its end was trimmed
			}
			got := s.Scrub(before + form + after)
			require.NotContains(t, strings.ReplaceAll(got, callstate.HiddenText, "\x00"), form)
			require.Equal(t, got, s.Scrub(got), "twice is once")
		}
		// inside a longer text that is encoded as a whole
		whole := base64.StdEncoding.EncodeToString([]byte(before + secret + after))
		require.NotEqual(t, whole, s.Scrub(whole))
		if s.Scrub(before) == before && s.Scrub(after) == after && s.Scrub(before+after) == before+after {
			require.Equal(t, before+" "+after, s.Scrub(before+" "+after))
		}
	})
}
