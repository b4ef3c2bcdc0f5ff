package perm_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
)

func TestParseAccess(t *testing.T) {
	for _, text := range []string{"read file://ws/**", "connect https://h/x", "connect POST https://h/x", "write file://ws/{path}"} {
		a, err := perm.ParseAccess(text)
		require.NoError(t, err)
		require.Equal(t, text, a.String())
		p, err := a.Pattern()
		require.NoError(t, err)
		require.Equal(t, a.Resource, p.String())
	}
}

func TestParseAccessRefuses(t *testing.T) {
	for text, why := range map[string]string{
		"":                   "not a valid access",
		"read":               "not a valid access",
		"read  file://ws":    "not a valid access",
		"look file://ws":     "unknown action",
		"READ file://ws":     "unknown action",
		"read GET file://ws": "only connect has a method",
		"connect AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA https://h": "bad method",
		"connect get https://h":                               "bad method",
		"connect GET https://h x":                             "not a valid access",
		"connect GET POST https://h":                          "not a valid access",
		"read ws/a":                                           "valid kinds",
		"read file://ws/a\n":                                  "percent-encoded",
	} {
		_, err := perm.ParseAccess(text)
		require.ErrorContains(t, err, why, text)
	}
}

func ExampleAccess() {
	s, err := perm.NewSet(perm.Access(perm.Read, "file://workspace/**"))
	fmt.Println(s.Allows(perm.Access(perm.Read, "file://workspace/a/b.go")), err)
	fmt.Println(s.Allows(perm.Access(perm.Write, "file://workspace/a/b.go")))
	// Output:
	// true <nil>
	// false
}
