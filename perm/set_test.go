package perm_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
)

func access(t testing.TB, text string) perm.ResourceAccess {
	t.Helper()
	a, err := perm.ParseAccess(text)
	require.NoError(t, err, text)
	return a
}

func accesses(t testing.TB, texts []string) []perm.ResourceAccess {
	t.Helper()
	list := make([]perm.ResourceAccess, len(texts))
	for i, text := range texts {
		list[i] = access(t, text)
	}
	return list
}

func set(t testing.TB, texts ...string) perm.Set {
	t.Helper()
	s, err := perm.NewSet(accesses(t, texts)...)
	require.NoError(t, err)
	return s
}

func except(t testing.TB, s perm.Set, texts ...string) perm.Set {
	t.Helper()
	s, err := s.Except(accesses(t, texts)...)
	require.NoError(t, err)
	return s
}

func TestSetZero(t *testing.T) {
	var zero perm.Set
	require.True(t, zero.IsEmpty())
	require.Empty(t, zero.Accesses())
	require.False(t, zero.Allows(perm.Access(perm.Read, "file://ws/a")))
	require.False(t, zero.Covers(perm.Access(perm.Read, "file://ws/a")))
	require.True(t, zero.CoversSet(zero))
	require.False(t, zero.CoversSet(set(t, "read file://ws")))
	require.True(t, set(t, "read file://ws").Intersect(zero).IsEmpty())
	require.True(t, set(t, "read file://ws").Intersect(zero).IsEmpty())
	require.Equal(t, set(t, "read file://ws"), zero.Union(set(t, "read file://ws")))
	data, err := json.Marshal(zero)
	require.NoError(t, err)
	require.Equal(t, "[]", string(data))
}

func TestSetKeepsActionsApart(t *testing.T) {
	s := set(t, "write file://ws/**")
	for _, action := range perm.Actions() {
		require.Equal(t, action == perm.Write, s.Allows(perm.Access(action, "file://ws/a")), action)
	}
}

func TestSetRefusesWhatIsNotValid(t *testing.T) {
	for _, a := range []perm.ResourceAccess{{}, {Action: "look", Resource: "file://ws"}, {Action: perm.Read, Resource: "ws"}, {Action: perm.Read, Resource: "file://ws", Method: "GET"}} {
		_, err := perm.NewSet(perm.Access(perm.Read, "file://ws"), a)
		require.ErrorContains(t, err, "access 2")
		_, err = set(t, "read file://ws").Except(a)
		require.ErrorContains(t, err, "access 1")
		s := set(t, "read file://ws/**")
		require.False(t, s.Allows(a))
		require.False(t, s.Covers(a))
	}
}

func TestSetAllowsOnlyExactAccesses(t *testing.T) {
	s := set(t, "read file://ws/**")
	require.True(t, s.Covers(perm.Access(perm.Read, "file://ws/*")))
	require.False(t, s.Allows(perm.Access(perm.Read, "file://ws/*")))
	require.False(t, s.Allows(perm.Access(perm.Read, "file://ws/{path}")))
	require.False(t, s.AllowsResource(perm.Read, perm.Resource{}, ""))
}

func TestSetMethods(t *testing.T) {
	all := set(t, "connect https://h/**")
	get := set(t, "connect GET https://h/**")
	noPost := except(t, all, "connect POST https://h/**")
	for _, c := range []struct {
		asked           string
		all, get, nopst bool
	}{
		{"connect GET https://h/x", true, true, true},
		{"connect POST https://h/x", true, false, false},
		{"connect https://h/x", true, false, false}, // matches every method
	} {
		a := access(t, c.asked)
		require.Equal(t, []bool{c.all, c.get, c.nopst}, []bool{all.Allows(a), get.Allows(a), noPost.Allows(a)}, c.asked)
	}
}

func TestSetStatements(t *testing.T) {
	s := except(t, set(t, "write db://main/**"), "write db://main/*?statement=delete")
	require.True(t, s.Allows(access(t, "write db://main/users?statement=insert")))
	require.False(t, s.Allows(access(t, "write db://main/users?statement=delete")))
	require.False(t, s.Allows(access(t, "write db://main/users")), "stands for every statement")
	require.True(t, s.Allows(access(t, "write db://main?statement=create_table")))
}

func TestSetExcept(t *testing.T) {
	s := except(t, set(t, "read file://ws/**", "write file://ws/**"), "read file://ws/**/.git/**", "write file://ws/*.lock")
	require.False(t, s.Allows(access(t, "read file://ws/a/.git/config")))
	require.True(t, s.Allows(access(t, "write file://ws/a/.git/config")))
	require.False(t, s.Allows(access(t, "write file://ws/go.lock")))
	require.False(t, s.Covers(access(t, "read file://ws/**")), "an except is in it")
	require.True(t, s.Covers(access(t, "read file://ws/src/*.go")))
	require.False(t, s.Covers(access(t, "write file://ws/*")))

	require.Equal(t, s, except(t, s, "read file://other/**"), "what it does not touch changes nothing")
	require.True(t, except(t, s, "read file://*/**", "write file://ws/**").IsEmpty())
}

// TestSetAlgebra checks that a union holds what either side holds, and an
// intersection what both hold.
func TestSetAlgebra(t *testing.T) {
	a := except(t, set(t, "read file://ws/**"), "read file://ws/x")
	b := set(t, "read file://ws/x", "read file://ws/y")
	x, y, z := access(t, "read file://ws/x"), access(t, "read file://ws/y"), access(t, "read file://ws/z")
	holds := func(s perm.Set) []bool { return []bool{s.Allows(x), s.Allows(y), s.Allows(z)} }
	require.Equal(t, []bool{false, true, true}, holds(a))
	require.Equal(t, []bool{true, true, true}, holds(a.Union(b)))
	require.Equal(t, []bool{false, true, false}, holds(a.Intersect(b)))
	require.Equal(t, holds(a.Intersect(b)), holds(b.Intersect(a)))
	require.True(t, a.CoversSet(a.Intersect(b)) && b.CoversSet(a.Intersect(b)))
	require.False(t, a.CoversSet(b))
	require.Equal(t, a, a.Union(a))
	require.Equal(t, a, a.Intersect(a))
}

// TestSetIntersectKeepsBothPatterns checks that an intersection keeps both
// patterns. They can share paths that are not those of one pattern.
func TestSetIntersectKeepsBothPatterns(t *testing.T) {
	s := set(t, "read file://ws/**/a/**").Intersect(set(t, "read file://ws/**/b/**"))
	for path, want := range map[string]bool{"a/b": true, "b/x/a": true, "a/x": false, "b": false} {
		require.Equal(t, want, s.Allows(perm.Access(perm.Read, "file://ws/"+path)), path)
	}
	data, err := json.Marshal(s)
	require.NoError(t, err)
	require.JSONEq(t, `[["read file://ws/**/a/**", "read file://ws/**/b/**"]]`, string(data))
	var back perm.Set
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, s, back)
	require.Len(t, s.Accesses(), 1)
}

func TestSetNarrowDoesNotGrow(t *testing.T) {
	s := set(t, "read file://ws/a*", "read file://ws/*b", "read file://ws/**")
	narrowed := s
	for range 5 {
		narrowed = narrowed.Intersect(s)
	}
	require.True(t, s.CoversSet(narrowed) && narrowed.CoversSet(s))
	require.Len(t, narrowed.Accesses(), 1, "the widest holds for the others")
}

func TestSetJSON(t *testing.T) {
	s := except(t, set(t, "read file://ws/**", "connect POST https://h/**"), "read file://ws/.git/**")
	data, err := json.Marshal(s)
	require.NoError(t, err)
	require.JSONEq(t, `[["read file://ws/**", "except read file://ws/.git/**"], ["connect POST https://h/**"]]`, string(data))
	var back perm.Set
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, s, back)

	for text, why := range map[string]string{
		`{}`:                                  "not a valid set",
		`[[]]`:                                "no access beside",
		`[["except read file://ws/**"]]`:      "no access beside",
		`[["read file://ws"], ["read ../x"]]`: "list 2: access 1",
		`[["read file://ws", 1]]`:             "not a valid set",
	} {
		require.ErrorContains(t, json.Unmarshal([]byte(text), &back), why)
		require.Equal(t, s, back, "a failed read changes nothing")
	}
}

func TestSetIsImmutable(t *testing.T) {
	base := set(t, "read file://ws/a", "read file://ws/b", "read file://ws/e") // a slice with spare capacity
	before, err := json.Marshal(base)
	require.NoError(t, err)
	one := base.Union(set(t, "read file://ws/c"))
	two := base.Union(set(t, "read file://ws/d"))
	_ = except(t, base, "read file://ws/a")
	_ = base.Intersect(one)
	list := base.Accesses()
	list[0].Action = perm.Write
	after, err := json.Marshal(base)
	require.NoError(t, err)
	require.JSONEq(t, string(before), string(after))
	require.True(t, one.Allows(access(t, "read file://ws/c")))
	require.False(t, one.Allows(access(t, "read file://ws/d")))
	require.False(t, two.Allows(access(t, "read file://ws/c")))
}

// TestSetCoversGivesUpSafely checks that a set covers its own pattern, even one
// so complex that the check takes too long.
func TestSetCoversGivesUpSafely(t *testing.T) {
	tangled := "read file://ws/**/a/" + strings.Repeat("*/", 30) + "c/" + strings.Repeat("**/a/", 10) + "**"
	s := set(t, tangled)
	require.True(t, s.Covers(access(t, tangled)))
	require.True(t, s.CoversSet(s.Intersect(s)))
	require.False(t, s.Covers(access(t, tangled+"/b")), "it does, but to see that takes too long")
}

func ExampleSet() {
	s, err := perm.NewSet(perm.Access(perm.Read, "file://workspace/**"), perm.Access(perm.Write, "file://workspace/src/**"))
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err = s.Except(perm.Access(perm.Read, "file://workspace/.git/**"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range []perm.ResourceAccess{
		perm.Access(perm.Read, "file://workspace/README.md"),
		perm.Access(perm.Read, "file://workspace/.git/config"),
		perm.Access(perm.Write, "file://workspace/src/a.go"),
		perm.Access(perm.Delete, "file://workspace/src/a.go"),
	} {
		fmt.Println(a, s.Allows(a))
	}
	// Output:
	// read file://workspace/README.md true
	// read file://workspace/.git/config false
	// write file://workspace/src/a.go true
	// delete file://workspace/src/a.go false
}
