package perm_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
)

func pattern(t testing.TB, text string) perm.Pattern {
	t.Helper()
	p, err := perm.ParsePattern(text)
	require.NoError(t, err, text)
	return p
}

func resource(t testing.TB, text string) perm.Resource {
	t.Helper()
	r, err := perm.ParseResource(text)
	require.NoError(t, err, text)
	return r
}

type patternVector struct {
	Pattern, Canonical, Bound, Error string
	Matches, Not                     []string
	Bind                             map[string]string
	Outside                          bool
}

func TestPatternVectors(t *testing.T) {
	for _, v := range vectors[patternVector](t, "patterns.json", 40) {
		t.Run(fmt.Sprint(v.Pattern, v.Bind), func(t *testing.T) {
			p, err := perm.ParsePattern(v.Pattern)
			if v.Error != "" && v.Bind == nil {
				require.ErrorContains(t, err, v.Error)
				return
			}
			require.NoError(t, err)
			if v.Bind != nil {
				v.checkBind(t, p)
				return
			}
			v.checkMatches(t, p)
		})
	}
}

func (v patternVector) checkMatches(t *testing.T, p perm.Pattern) {
	want := v.Canonical
	if want == "" {
		want = v.Pattern
	}
	require.Equal(t, want, p.String())
	require.Equal(t, p, pattern(t, p.String()))
	require.NotEmpty(t, v.Matches)
	for _, text := range v.Matches {
		require.True(t, p.Matches(resource(t, text)), text)
		require.True(t, p.Covers(pattern(t, resource(t, text).String())), text)
	}
	for _, text := range v.Not {
		require.False(t, p.Matches(resource(t, text)), text)
		require.False(t, p.Covers(pattern(t, resource(t, text).String())), text)
	}
}

func (v patternVector) checkBind(t *testing.T, p perm.Pattern) {
	require.Subset(t, p.Params(), slices.Collect(maps.Keys(v.Bind)))
	bound, err := p.BindPattern(func(name string) (string, bool) { value, ok := v.Bind[name]; return value, ok })
	if v.Error != "" {
		require.ErrorContains(t, err, v.Error)
		require.Equal(t, v.Outside, errors.Is(err, perm.ErrOutside))
		return
	}
	require.NoError(t, err)
	require.Equal(t, v.Bound, bound.String())
	require.Equal(t, bound, pattern(t, v.Bound))
	require.True(t, p.Covers(bound), "what a parameter stood for was matched before it was bound")

	r, err := p.Bind(func(name string) (string, bool) { value, ok := v.Bind[name]; return value, ok })
	if exact, ok := bound.Exact().Get(); ok {
		require.NoError(t, err)
		require.Equal(t, exact, r)
	} else {
		require.ErrorContains(t, err, "wildcards")
	}
}

func TestPatternZero(t *testing.T) {
	var zero perm.Pattern
	require.False(t, zero.Matches(perm.Resource{}))
	require.False(t, zero.Matches(resource(t, "tool://a")))
	require.False(t, zero.Covers(zero))
	require.False(t, zero.Overlaps(zero))
	require.False(t, pattern(t, "tool://*").Covers(zero))
	require.True(t, zero.Exact().IsAbsent())
	_, err := zero.Bind(nil)
	require.Error(t, err)
}

func TestPatternKind(t *testing.T) {
	require.Equal(t, perm.KindExec, pattern(t, "exec:///**").Kind())
}

func TestPatternParams(t *testing.T) {
	require.Equal(t, []string{"root", "a", "b"}, pattern(t, "file://{root}/{a}-{b}/{a}/{root}").Params())
	require.Nil(t, pattern(t, "file://ws/**").Params())
}

func TestPatternCovers(t *testing.T) {
	for _, c := range []struct {
		wide, other string
		want        bool
	}{
		{"file://ws/**", "file://ws/a/*/b*", true},
		{"file://ws/**/*", "file://ws/*/**", true},
		{"file://ws/*/**", "file://ws/**/*", true},
		{"file://ws/*/**", "file://ws/**", false},
		{"file://ws/**/a/**", "file://ws/x/**/a", true},
		{"file://ws/**/a/**/a/**", "file://ws/**/a/a", true},
		{"file://ws/**/*/**/a/**", "file://ws/**/a", false},
		{"file://ws/*", "file://ws/**", false},
		{"file://ws/a*b", "file://ws/ab", true},
		{"file://ws/a*b", "file://ws/a*x*b", true},
		{"file://ws/a*x*b", "file://ws/a*b", false},
		{"file://ws/*", "file://ws/%2A", true},
		{"file://ws/%2A", "file://ws/*", false},
		{"file://ws/{path}", "file://ws/**", true},
		{"file://ws/**", "file://ws/{path}", true},
		{"file://*/**", "file://w*/a", true},
		{"exec:///**", "exec:///*/**", true},
		{"exec:///*/**", "exec:///**", true},
		{"exec:///**", "exec://*", false},
		{"db://main/users", "db://main/**/users", true},
		{"db://main/*", "db://main/**/*", true},
		{"db://main/*", "db://main/**", false},
		{"db://main/users", "db://main/users?statement=insert", true},
		{"db://main/users?statement=insert", "db://main/users", false},
		{"https://*/**", "https://*.org/**", true},
		{"https://*.org/**", "https://*.a.org/x", true},
		{"https://*.a.org/**", "https://*.org/x", false},
		{"https://*.org/**", "https://org/x", false},
		{"https://h:*/**", "https://h/x", true},
		{"https://h/**", "https://h:*/x", false},
		{"http://h/**", "https://h/x", false},
	} {
		require.Equal(t, c.want, pattern(t, c.wide).Covers(pattern(t, c.other)), "%s covers %s", c.wide, c.other)
	}
}

func TestPatternOverlaps(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"file://ws/**/a", "file://ws/b/**", true},
		{"file://ws/a/**", "file://ws/b/**", false},
		{"file://ws/a*", "file://ws/*b", true},
		{"file://ws/a*", "file://ws/b*", false},
		{"file://ws/*", "file://ws", false},
		{"file://ws/**", "file://ws", true},
		{"file://a*/x", "file://*b/*", true},
		{"exec:///**", "exec://*", false},
		{"db://m/t?statement=insert", "db://m/t", true},
		{"db://m/t?statement=insert", "db://m/t?statement=delete", false},
		{"https://*.a.org", "https://*.org", true},
		{"https://a.org:1", "https://*:*", true},
		{"https://a.org:1", "https://*", false},
	} {
		require.Equal(t, c.want, pattern(t, c.a).Overlaps(pattern(t, c.b)), "%s and %s", c.a, c.b)
		require.Equal(t, c.want, pattern(t, c.b).Overlaps(pattern(t, c.a)), "%s and %s", c.b, c.a)
	}
}

// TestMatchTimeIsBounded checks that the worst texts within the length limit
// match in well under a second, without backtracking.
func TestMatchTimeIsBounded(t *testing.T) {
	inner := pattern(t, "file://ws/"+strings.Repeat("a*", 4000)+"b")
	require.False(t, inner.Matches(resource(t, "file://ws/"+strings.Repeat("a", 8000))))
	outer := pattern(t, "file://ws/"+strings.Repeat("**/a/", 1600)+"b")
	require.False(t, outer.Matches(resource(t, "file://ws"+strings.Repeat("/a", 4000))))
	mixed := pattern(t, "file://ws/"+strings.Repeat("**/*a/", 1300)+"b")
	require.False(t, mixed.Matches(resource(t, "file://ws"+strings.Repeat("/a", 4000))))
	require.True(t, outer.Overlaps(pattern(t, "file://ws/"+strings.Repeat("**/*/", 1600)+"b")))
	require.True(t, outer.Covers(outer))
	require.False(t, pattern(t, "file://ws/"+strings.Repeat("**/a/*/", 1000)+"b").Covers(outer))
}

func FuzzParsePattern(f *testing.F) {
	for _, seed := range []string{"file://ws/**/*.go", "https://*.a.b:*/x", "exec://{p}", "db://m/{t}?statement=a", "file://ws/{a}*{b}/{path}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := perm.ParsePattern(text)
		if err != nil {
			return
		}
		again, err := perm.ParsePattern(p.String())
		require.NoError(t, err)
		require.Equal(t, p, again)
		require.True(t, p.Covers(p))
		require.True(t, p.Overlaps(p))
		bound, err := p.BindPattern(func(string) (string, bool) { return "a*", true })
		if err == nil {
			require.True(t, p.Covers(bound))
			require.Equal(t, bound, pattern(t, bound.String()))
		}
	})
}

func ExamplePattern_Bind() {
	p, err := perm.ParsePattern("file://workspace/{path}")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range []string{"src/*.go", "../secrets"} {
		r, err := p.Bind(func(string) (string, bool) { return path, true })
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(r)
	}
	// Output:
	// file://workspace/src/%2A.go
	// argument path: path outside its root: valid is a path below the root
}

func ExamplePattern_Matches() {
	p, err := perm.ParsePattern("https://*.example.com/v1/**")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{"https://api.example.com/v1/users", "https://example.com/v1/users"} {
		r, err := perm.ParseResource(text)
		fmt.Println(p.Matches(r), err)
	}
	// Output:
	// true <nil>
	// false <nil>
}
