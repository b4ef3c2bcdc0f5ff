package perm_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
)

// TestIntersectAgainstPairs checks that Intersect, which compares only clauses
// that can overlap, returns the same as a comparison of every pair.
func TestIntersectAgainstPairs(t *testing.T) {
	m := &maker{Rand: rand.New(rand.NewPCG(5, 6)), t: t, ops: map[string]bool{}}
	filled, smaller := 0, 0
	for range 10_000 {
		a, _ := m.set(m.IntN(3))
		b, _ := m.set(m.IntN(3))
		if m.IntN(3) == 0 { // sets that share clauses
			b = b.Union(a)
		}
		got, want := a.Intersect(b), a.IntersectPairs(b)
		if !got.CoversSet(want) || !want.CoversSet(got) || len(got.Accesses()) > len(want.Accesses()) {
			require.Fail(t, "differs from the comparison of every pair", "%s\nwith %s\ngives %s\nnot   %s", text(t, a), text(t, b), text(t, got), text(t, want))
		}
		if !want.IsEmpty() {
			filled++
		}
		if len(want.Accesses()) < len(a.Accesses()) {
			smaller++
		}
	}
	require.Greater(t, filled, 2_000)
	require.Greater(t, smaller, 2_000)
}

func text(t *testing.T, s perm.Set) string {
	t.Helper()
	data, err := s.MarshalJSON()
	require.NoError(t, err)
	return string(data)
}

// TestOverlapsAgainstTable checks Overlaps on random paths and names, with
// more symbols than an enumeration can have.
func TestOverlapsAgainstTable(t *testing.T) {
	m := &maker{Rand: rand.New(rand.NewPCG(7, 8)), t: t, ops: map[string]bool{}}
	random := func() perm.Pattern {
		if m.IntN(2) == 0 {
			return pattern(t, "file://w/"+m.glob(12))
		}
		var names []string
		for range m.IntN(10) {
			names = append(names, m.one("**", m.glob(3), m.glob(3)))
		}
		return pattern(t, strings.Join(append([]string{"file://w"}, names...), "/"))
	}
	hits := 0
	const cases = 300_000
	for range cases {
		a, b := random(), random()
		want := a.OverlapsByTable(b)
		if want {
			hits++
		}
		if a.Overlaps(b) != want {
			require.Fail(t, "differs from the table", "%s and %s: %v", a, b, want)
		}
	}
	require.Greater(t, hits, cases/10)
	require.Less(t, hits, cases*9/10)
}

// glob returns a name of a and b with stars, never empty and without **.
func (m *maker) glob(most int) string {
	var b strings.Builder
	for n := 1 + m.IntN(most); b.Len() < n; {
		b.WriteString(m.one("a", "b", "*"))
	}
	for name := b.String(); ; {
		less := strings.ReplaceAll(name, "**", "*")
		if less == name {
			return name
		}
		name = less
	}
}

// TestIntersectOfManyAccesses makes the sets of a runtime with thousands of
// tools. A comparison of every pair, or a table of every byte of long names,
// takes minutes.
func TestIntersectOfManyAccesses(t *testing.T) {
	const tools = 3_000
	grant := func(from, to int, last string) perm.Set {
		var list []perm.ResourceAccess
		for i := from; i < to; i++ {
			list = append(list,
				perm.Access(perm.Read, fmt.Sprintf("file://ws/t%d/**", i)),
				perm.Access(perm.Write, fmt.Sprintf("file://ws/t%d/%s", i, last)),
				perm.Access(perm.Connect, fmt.Sprintf("https://t%d.example.com/**", i)))
		}
		s, err := perm.NewSet(list...)
		require.NoError(t, err)
		return s
	}
	s := grant(0, tools, "*")
	require.Equal(t, 3*tools, len(s.Intersect(s).Accesses()))
	require.Equal(t, 3*2_000, len(s.Intersect(grant(1_000, 4_000, "*")).Accesses()))
	both := s.Intersect(grant(0, tools, "a"))
	require.Equal(t, 3*tools, len(both.Accesses()))
	require.True(t, both.Allows(perm.Access(perm.Write, "file://ws/t7/a")))
	require.False(t, both.Allows(perm.Access(perm.Write, "file://ws/t7/b")))
	require.Equal(t, tools, len(s.Intersect(set(t, "read file://ws/**")).Accesses()))

	long := func(end string) perm.Set {
		var list []perm.ResourceAccess
		for i := range 300 {
			name := strings.Repeat("a", 120) + fmt.Sprint(i) + "-"
			list = append(list, perm.Access(perm.Read, "file://ws/*"+name+"*"+strings.Repeat("b", 100)+end))
		}
		s, err := perm.NewSet(list...)
		require.NoError(t, err)
		return s
	}
	require.Equal(t, 300, len(long("c*").Intersect(long("c*")).Accesses()))
	require.True(t, long("c").Intersect(long("d")).IsEmpty())
}
