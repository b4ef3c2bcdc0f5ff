package tool_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/tool"
)

func versioned(t require.TestingT, name, version string) tool.Tool {
	made, err := tool.Create(name, "Says its version.", func(context.Context, string) (string, error) { return version, nil },
		tool.Pure(), func(s *tool.Spec) { s.Version = version })
	require.NoError(t, err)
	return made
}

func registry(t require.TestingT, name string, versions ...string) (tool.Registry, error) {
	var all []tool.Tool
	for _, v := range versions {
		all = append(all, versioned(t, name, v))
	}
	return tool.NewRegistry(all...)
}

func order(r tool.Registry, name string) (versions []string) {
	for _, t := range r.Versions(name) {
		versions = append(versions, t.Spec().Version)
	}
	return versions
}

func TestVersionsOfOneName(t *testing.T) {
	for what, test := range map[string]struct {
		given, newestFirst []string
	}{
		"one":                       {[]string{"7"}, []string{"7"}},
		"semantic":                  {[]string{"1.10.0", "1.9.0", "1.10.0-rc.1"}, []string{"1.10.0", "1.10.0-rc.1", "1.9.0"}},
		"with and without v":        {[]string{"1.2.0", "v1.10.0"}, []string{"v1.10.0", "1.2.0"}},
		"one is not semantic":       {[]string{"1.10.0", "1.9.0", "beta"}, []string{"beta", "1.9.0", "1.10.0"}},
		"1.2 is not semantic":       {[]string{"1.10", "1.9"}, []string{"1.9", "1.10"}},
		"dates, as they were given": {[]string{"2026-01", "2025-12"}, []string{"2025-12", "2026-01"}},
	} {
		t.Run(what, func(t *testing.T) {
			r, err := registry(t, "look", test.given...)
			require.NoError(t, err)
			require.Equal(t, test.newestFirst, order(r, "look"))
			require.Equal(t, []string{"look"}, r.Names())
			require.Len(t, r.All(), len(test.given))
			newest, err := r.Find("look")
			require.NoError(t, err)
			require.Equal(t, test.newestFirst[0], newest.Spec().Version)
			for _, v := range test.given {
				exact, ok := r.Get("look@" + v)
				require.True(t, ok)
				require.Equal(t, v, exact.Spec().Version)
				require.Equal(t, "look@"+v, exact.QualifiedName())
			}
		})
	}
}

func TestVersionsThatAreRefused(t *testing.T) {
	for what, test := range map[string]struct {
		given []string
		want  string
	}{
		"twice":          {[]string{"1.0.0", "2.0.0", "1.0.0"}, `two tools are named "look" and have version "1.0.0"`},
		"one without":    {[]string{"1.0.0", ""}, `2 tools are named "look", and one has no version; give each a version`},
		"both without":   {[]string{"", ""}, `2 tools are named "look", and one has no version; give each a version`},
		"v before it":    {[]string{"1.0.0", "v1.0.0"}, `versions 1.0.0 and v1.0.0 of tool "look" could be taken for one another`},
		"build metadata": {[]string{"1.0.0+a", "1.0.0+b"}, `could be taken for one another`},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := registry(t, "look", test.given...)
			require.ErrorContains(t, err, test.want)
		})
	}
	_, err := tool.NewRegistry(versioned(t, "look_up", "1"), versioned(t, "lookup", "2"))
	require.EqualError(t, err, `tools "look_up" and "lookup" could be taken for one another; rename one`)
}

func TestUnknownVersionNamesTheValidOnes(t *testing.T) {
	r, err := registry(t, "look", "1.0.0", "2.0.0")
	require.NoError(t, err)
	for asked, want := range map[string]string{
		"look@3":      `tool "look" has no version "3"; valid are 2.0.0, 1.0.0, or no version for the newest`,
		"look@":       `"look@" names no version; valid are 2.0.0, 1.0.0, or "look" for the newest`,
		"look@1.0.0@": `tool "look" has no version "1.0.0@"; valid are 2.0.0, 1.0.0, or no version for the newest`,
		"lok@1.0.0":   `there is no tool "lok"; did you mean "look"?`,
		"@1.0.0":      `there is no tool ""; there are: look`,
	} {
		_, err := r.Find(asked)
		require.EqualError(t, err, want)
		_, ok := r.Get(asked)
		require.False(t, ok)
	}
	any, err := registry(t, "look", "")
	require.NoError(t, err)
	got, err := any.Find("look@7") // a tool without a version is any
	require.NoError(t, err)
	require.Equal(t, "look", got.QualifiedName())
	_, err = any.Find("look@")
	require.EqualError(t, err, `"look@" names no version; valid are any: the tool has no version, or "look" for the newest`)
}

// TestOrderOfVersionsIsTotal: the newest of a set does not depend on the order in
// which semantic versions were given, and each of the set is found exactly.
func TestOrderOfVersionsIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		version := rapid.StringMatching(`[0-3]\.[0-3]\.[0-3](-(a|b|rc\.[0-9]))?`)
		versions := rapid.SliceOfNDistinct(version, 1, 6, rapid.ID[string]).Draw(t, "versions")
		one, err := registry(t, "look", versions...)
		require.NoError(t, err)
		other, err := registry(t, "look", rapid.Permutation(versions).Draw(t, "again")...)
		require.NoError(t, err)
		require.Equal(t, order(one, "look"), order(other, "look"))
		got := order(one, "look")
		slices.Sort(got)
		slices.Sort(versions)
		require.Equal(t, versions, got)
	})
}

func TestDeprecated(t *testing.T) {
	old, err := versioned(t, "look", "1.0.0").Modify(func(s *tool.Spec) { s.Deprecated = "use see" })
	require.NoError(t, err)
	require.Equal(t, "Says its version. Deprecated: use see.", old.ModelDescription())
	require.Equal(t, "Says its version.", versioned(t, "look", "1.0.0").ModelDescription())
	require.NotEqual(t, versioned(t, "look", "1.0.0").Digest(), old.Digest(), "a model reads something else")
}
