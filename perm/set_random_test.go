package perm_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
)

// access returns an access for a set and the same access for the reference.
func (m *maker) access() (perm.ResourceAccess, perm.ResourceAccess) {
	p, text := m.pattern()
	a := perm.Access(m.action(p.Kind()), p.String())
	if a.Action == perm.Connect && m.IntN(2) == 0 {
		a.Method = m.method()
	}
	ref := a
	ref.Resource = text
	return a, ref
}

func (m *maker) action(k perm.Kind) perm.Action {
	if k == perm.KindHTTPS || k == perm.KindHTTP {
		return perm.Connect
	}
	return perm.Action(m.one("write", "write", "write", "delete"))
}

func (m *maker) method() string { return m.one("GET", "POST") }

func (m *maker) accesses(least, most int) (code, ref []perm.ResourceAccess) {
	for range least + m.IntN(most-least+1) {
		a, r := m.access()
		code, ref = append(code, a), append(ref, r)
	}
	return code, ref
}

// set returns a random set, up to depth operations deep.
func (m *maker) set(depth int) (perm.Set, refSet) {
	op := ""
	if depth > 0 {
		op = m.one("", "except", "union", "intersect")
	}
	if op == "" {
		code, ref := m.accesses(1, 4)
		s, err := perm.NewSet(code...)
		require.NoError(m.t, err)
		return s, refSet{accesses: ref}
	}
	m.ops[op] = true
	left, refLeft := m.set(depth - 1)
	if op == "except" {
		code, ref := m.accesses(1, 2)
		s, err := left.Except(code...)
		require.NoError(m.t, err)
		require.True(m.t, left.CoversSet(s))
		return s, refSet{op: op, accesses: ref, left: &refLeft}
	}
	right, refRight := m.set(depth - 1)
	s := left.Union(right)
	if op == "intersect" {
		s = left.Intersect(right)
		require.True(m.t, left.CoversSet(s) && right.CoversSet(s), "narrowing never widens")
	} else {
		require.True(m.t, s.CoversSet(left) && s.CoversSet(right))
	}
	return s, refSet{op: op, left: &refLeft, right: &refRight}
}

// patterns returns the patterns that a set was made of.
func (s refSet) patterns() []perm.ResourceAccess {
	list := s.accesses
	for _, side := range []*refSet{s.left, s.right} {
		if side != nil {
			list = append(list[:len(list):len(list)], side.patterns()...)
		}
	}
	return list
}

// asked returns an exact access, mostly close to those of the set.
func (m *maker) asked(ref refSet) perm.ResourceAccess {
	text, action := m.resourceText(), perm.Action("")
	if m.IntN(20) > 0 {
		near := ref.patterns()
		a := near[m.IntN(len(near))]
		text, action = m.within(a.Resource), a.Action
	}
	r, err := perm.ParseResource(text)
	if err != nil { // such as exec:/// without a path
		r = resource(m.t, "tool://a")
	}
	if action == "" || m.IntN(12) == 0 {
		action = m.action(r.Kind())
	}
	a := perm.Access(action, r.String())
	if action == perm.Connect {
		a.Method = m.method()
	}
	return a
}

// TestSetAgainstReference checks that Allows agrees with the reference in every
// case.
func TestSetAgainstReference(t *testing.T) {
	cases := 100_000
	if statcheck.Whole() {
		cases = 1_000_000
	}
	m := &maker{Rand: rand.New(rand.NewPCG(1, 2)), t: t}
	hits, trues := map[string]int{}, map[string]int{}
	var s perm.Set
	var ref refSet
	for n := range cases {
		if n%4 == 0 { // check each set with four accesses
			m.ops = map[string]bool{"any": true}
			s, ref = m.set(n / 4 % 4)
		}
		asked := m.asked(ref)
		want := ref.allows(asked)
		if s.Allows(asked) != want {
			data, _ := json.Marshal(s)
			require.Fail(t, "the set and the reference differ", "case %d: %s\nset %s\nreference says %v", n, asked, data, want)
		}
		require.Equal(t, want, s.Covers(asked))
		if n%16 == 0 {
			roundTrip(t, s, asked, want)
		}
		for op := range m.ops {
			hits[op]++
			if want {
				trues[op]++
			}
		}
	}
	t.Logf("cases %v, of these allowed %v", hits, trues)
	require.GreaterOrEqual(t, trues["any"]*10, cases*3)
	for _, op := range []string{"*", "inner *", "**", "{param}", "host *.", "except", "union", "intersect"} {
		require.GreaterOrEqual(t, trues[op], 1000, op)
		require.GreaterOrEqual(t, hits[op]-trues[op], 1000, op)
	}
}

func roundTrip(t *testing.T, s perm.Set, asked perm.ResourceAccess, want bool) {
	data, err := json.Marshal(s)
	require.NoError(t, err)
	var back perm.Set
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, want, back.Allows(asked))
	require.Equal(t, s.IsEmpty(), back.IsEmpty())
	require.True(t, back.CoversSet(s) && s.CoversSet(back))
	bound, err := perm.NewSet(s.Accesses()...)
	require.NoError(t, err)
	require.True(t, bound.CoversSet(s), "the accesses of a set are an upper bound")
}

// TestSetCoversIsSound checks that Covers of a pattern is true only if the set
// allows everything that the pattern matches.
func TestSetCoversIsSound(t *testing.T) {
	m := &maker{Rand: rand.New(rand.NewPCG(3, 4)), t: t, ops: map[string]bool{}}
	covered := 0
	for n := range 30_000 {
		s, ref := m.set(n % 3)
		near := ref.patterns()
		wide := near[m.IntN(len(near))]
		if m.IntN(2) == 0 {
			_, wide = m.access()
		}
		if !s.Covers(wide) {
			continue
		}
		covered++
		asked := wide
		asked.Resource = m.within(wide.Resource)
		if asked.Method == "" && asked.Action == perm.Connect {
			asked.Method = m.method()
		}
		if _, err := perm.ParseResource(asked.Resource); err == nil {
			require.True(t, ref.allows(asked), "%s is of %s", asked, wide)
		}
	}
	require.Greater(t, covered, 5000)
}
