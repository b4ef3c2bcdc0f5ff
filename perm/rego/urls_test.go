package rego_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// TestURLsAreInTheKey checks that a call denied for a URL that is not
// user-provided is decided anew after the user provides it.
func TestURLsAreInTheKey(t *testing.T) {
	e := engine(t, `package remit
allow contains "x" if true
deny contains "nobody looked" if not input.call.urls
deny contains "made up" if { some u in input.call.urls; not u.user_provided }
deny contains "leads elsewhere" if input.access.user_provided == false`)
	yes, no := true, false
	ask := func(urls []perm.URLFacts, given *bool) perm.Effect {
		r := request()
		r.Call.URLs, r.Access.UserProvided = urls, given
		return decide(t, e, r).Effect()
	}
	one := func(url string, given bool) []perm.URLFacts { return []perm.URLFacts{{URL: url, UserProvided: given}} }
	for range 2 { // the second time from the cache
		require.Equal(t, perm.Deny, ask(nil, nil))
		require.Equal(t, perm.Allow, ask([]perm.URLFacts{}, nil))
		require.Equal(t, perm.Deny, ask(one("https://a.example/", false), nil))
		require.Equal(t, perm.Allow, ask(one("https://a.example/", true), nil))
		require.Equal(t, perm.Deny, ask(append(one("https://a.example/", true), one("https://b.example/", false)...), nil))
		require.Equal(t, perm.Deny, ask([]perm.URLFacts{}, &no))
		require.Equal(t, perm.Allow, ask([]perm.URLFacts{}, &yes))
	}
}

// TestFactsThatAPolicyReads checks whether a policy reads URLs, and whether
// its labels depend on results.
func TestFactsThatAPolicyReads(t *testing.T) {
	for text, want := range map[string][2]bool{
		control: {},
		control + `deny contains "x" if input.call.urls[_].user_provided == false`:          {true, false},
		control + `hint contains "x" if input.access.user_provided`:                         {true, false},
		control + `label contains "x" if input.output == "x"`:                               {false, true},
		control + `label contains "x" if input.purpose == "verify"`:                         {false, true},
		control + `label contains "x" if count(input) > 3`:                                  {true, true},
		control + `label contains "x" if input.tool.name == "x"`:                            {},
		control + `ensure contains "x" if input.output == "x"`:                              {},
		control + "label contains \"x\" if seen\nseen if contains(input.output, \"top\")\n": {false, true},
	} {
		e := engine(t, text)
		r, err := rego.NewReloader(context.Background(), rego.Options{Modules: map[string]string{"p.rego": text}})
		require.NoError(t, err)
		for _, is := range []interface {
			ReadsURLs() bool
			LabelsResults() bool
		}{e, rego.NewSwappableEngine(e), r} {
			require.Equal(t, want, [2]bool{is.ReadsURLs(), is.LabelsResults()}, text)
		}
	}
	require.False(t, (*rego.Engine)(nil).ReadsURLs())
	require.False(t, (*rego.Engine)(nil).LabelsResults())
}
