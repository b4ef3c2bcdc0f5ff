package perm_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
)

func session(keys ...string) perm.Remember {
	return perm.Remember{Scope: perm.RememberSession, Keys: keys}
}

func TestRememberCheck(t *testing.T) {
	many := make([]string, 33)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for want, r := range map[string]perm.Remember{
		"is session or never": {Scope: "always"},
		"has no keys":         {Scope: perm.RememberNever, Keys: []string{"a"}},
		"needs keys":          session(),
		"at most 32 keys":     session(many...),
		"1 to 512 bytes":      session("a", ""),
		"has 1 to 512 bytes":  session(strings.Repeat("a", 513)),
	} {
		require.ErrorContains(t, r.Check(), want)
	}
	require.NoError(t, session("a").Check())
	require.NoError(t, perm.Remember{Scope: perm.RememberNever}.Check())
	require.Equal(t, perm.Remember{Scope: perm.RememberNever}, session(many[:20]...).Join(session(many[20:]...)), "too many to record")
}

// TestRememberCovers checks that an approval covers only calls whose keys it has.
func TestRememberCovers(t *testing.T) {
	never := perm.Remember{Scope: perm.RememberNever}
	require.True(t, session("a", "b").Covers(session("b")))
	for _, pair := range [][2]perm.Remember{
		{session("a"), session("a", "b")},
		{session("a"), session()},
		{session("a"), never},
		{session("a"), {}},
		{never, session("a")},
		{{}, session("a")},
		{{}, {}},
		{{Keys: []string{"a"}}, session("a")},
	} {
		require.False(t, pair[0].Covers(pair[1]), "%v", pair)
	}
}

// TestRememberJoin checks that one reason without keys keeps an approval from
// being remembered by keys.
func TestRememberJoin(t *testing.T) {
	never := perm.Remember{Scope: perm.RememberNever}
	require.Equal(t, perm.Remember{}, perm.Remember{}.Join(perm.Remember{}))
	require.Equal(t, session("a", "b"), session("b", "a").Join(session("a")))
	for _, pair := range [][2]perm.Remember{{session("a"), {}}, {{}, session("a")}, {never, session("a")}, {session("a"), never}, {never, never}, {never, {}}} {
		require.Equal(t, never, pair[0].Join(pair[1]), "%v", pair)
	}
}

func TestRecordOfRemember(t *testing.T) {
	d := perm.NewDecision(perm.Ask, perm.Details{Remember: session("a")})
	d.Details().Remember.Keys[0] = "changed"
	raw, err := json.Marshal(d)
	require.NoError(t, err)
	require.JSONEq(t, `{"effect":"ask","reasons":[],"remember":{"scope":"session","keys":["a"]},"revision":""}`, string(raw))
}
