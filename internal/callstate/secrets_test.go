package callstate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/callstate"
)

type hider struct{ h *callstate.SecretValues }

func init() {
	callstate.InstallSecretSource(func(driver any) *callstate.SecretValues {
		d, _ := driver.(hider)
		return d.h
	})
}

// TestHidden checks that hidden values are removed, longer ones first, and
// nothing else.
func TestHidden(t *testing.T) {
	var none callstate.SecretSets
	require.True(t, none.None())
	require.Equal(t, "text", none.Scrub("text"))
	require.Nil(t, callstate.SecretsOf([]any{1, hider{}}))
	h := new(callstate.SecretValues)
	s := callstate.SecretsOf([]any{1, hider{h}})
	require.True(t, s.None())
	h.Add("")
	require.True(t, s.None(), "an empty value would be everywhere")
	h.Add("pass-word")
	h.Add("pass-word")
	h.Add("pass-word/longer")
	require.False(t, s.None())
	for text, want := range map[string]string{
		"a pass-word b":                     "a (hidden) b",
		"pass-word/longer":                  "(hidden)",
		"pass-worm":                         "pass-worm",
		"706173732d776f7264":                "(hidden)",
		"dTpwYXNzLXdvcmQ=":                  "dTp(hidden)Q=", // u:pass-word; four bits remain
		"pass-word%2Flonger":                "(hidden)",
		"pass-word%2flonger":                "(hidden)",
		`pass-word\/longer`:                 "(hidden)",
		"112 97 115 115 45 119 111 114 100": "(hidden)",
	} {
		require.Equal(t, want, s.Scrub(text))
	}
	h.Add("line one of it\nline two of it\nx")
	require.Equal(t, "(hidden)|x", s.Scrub("line two of it|x"))
}
