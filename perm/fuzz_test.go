package perm_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
)

// FuzzParseAccess checks that a parsed access writes the same text. Another
// text of it differs only in the spelling of the resource.
func FuzzParseAccess(f *testing.F) {
	for _, seed := range []string{
		"read file://workspace/**", "connect POST https://api.example.com/v1/**", "execute exec://git", "write db://main/users?statement=insert",
		"connect  https://a.b/", "read GET file://ws/a", "read\tfile://ws/a", "connect post https://a.b/", "use secret://github ",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := perm.ParseAccess(text)
		if err != nil {
			require.Zero(t, a, "a refused access holds nothing")
			return
		}
		require.Equal(t, text, a.String())
		require.True(t, a.Action.Valid())
		p, err := a.Pattern()
		require.NoError(t, err)
		s, err := perm.NewSet(a)
		require.NoError(t, err)
		require.True(t, s.Covers(a), "a set holds what it was made of")
		if r, exact := p.Exact().Get(); exact {
			require.True(t, s.AllowsResource(a.Action, r, a.Method))
		}
	})
}

// FuzzSet checks that a set holds the same after a round trip. A part of it, or
// its intersection with another set, never holds more.
func FuzzSet(f *testing.F) {
	f.Add(`[["read file://ws/**","except read file://ws/.git/**"]]`, "write file://ws/a/**", "read file://ws/a/b")
	f.Add(`[["write file://ws/**"],["delete file://ws/tmp/*"]]`, "delete file://ws/**", "delete file://ws/tmp/x")
	f.Add(`[["connect https://*.example.com/**"]]`, "connect GET https://a.example.com/v1/**", "connect GET https://a.example.com/v1/x")
	f.Add(`[["except read file://ws/a"]]`, "read file://ws/a", "read file://ws/a")
	f.Add(`[[]]`, "read file://ws/a", "read file://ws/a")
	f.Fuzz(func(t *testing.T, data, limit, asked string) {
		var s perm.Set
		if err := json.Unmarshal([]byte(data), &s); err != nil {
			require.True(t, s.IsEmpty(), "what was refused holds nothing")
			return
		}
		text, err := json.Marshal(s)
		require.NoError(t, err)
		var again perm.Set
		require.NoError(t, json.Unmarshal(text, &again))
		require.Equal(t, s, again)
		require.True(t, s.CoversSet(s))
		l, err := perm.ParseAccess(limit)
		if err != nil {
			return
		}
		bound, err := perm.NewSet(l)
		require.NoError(t, err)
		less, err := s.Except(l)
		require.NoError(t, err)
		narrow := s.Intersect(bound)
		require.True(t, s.CoversSet(less))
		require.True(t, s.CoversSet(narrow))
		a, err := perm.ParseAccess(asked)
		if err != nil {
			return
		}
		p, err := a.Pattern()
		require.NoError(t, err)
		if p.Exact().IsAbsent() || a.Action == perm.Connect && a.Method == "" || p.Kind() == perm.KindDB {
			return // the set may hold a part of what an access matches
		}
		require.Equal(t, s.Allows(a) && bound.Allows(a), narrow.Allows(a), "%s narrowed to %s, asked %s", text, limit, asked)
		require.Equal(t, s.Allows(a) && !bound.Allows(a), less.Allows(a), "%s without %s, asked %s", text, limit, asked)
		require.Equal(t, s.Allows(a) || bound.Allows(a), s.Union(bound).Allows(a))
		require.Equal(t, narrow.Allows(a), bound.Intersect(s).Allows(a), "either order")
	})
}

// FuzzMatch compares the matcher with the slow reference.
func FuzzMatch(f *testing.F) {
	for _, s := range [][2]string{
		{"file://ws/**/*.go", "file://ws/a/b.go"},
		{"file://ws/a*b*c", "file://ws/abbc"},
		{"https://*.a.b:*/x", "https://c.a.b:81/x"},
		{"exec://**", "exec:///bin/git"},
		{"db://m/*?statement=insert", "db://m/t?statement=insert"},
		{"file://ws/%2A*", "file://ws/%2Aa"},
		{"file://ws/**", "file://ws"},
		{"file://ws/**/a/**/a", "file://ws/a/a/a"},
		{"mcp://s/*", "mcp://s/t"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, resource string) {
		p, err := perm.ParsePattern(pattern)
		if err != nil || strings.Contains(p.String(), "{") || p.Kind() == perm.KindExec || len(pattern)+len(resource) > 60 {
			t.Skip() // the reference has no parameters, and it tries everything
		}
		r, err := perm.ParseResource(resource)
		if err != nil || r.Kind() != p.Kind() || strings.Contains(p.String()+r.String(), "[") {
			t.Skip() // the reference cuts a host at its first colon
		}
		want := refMatches(p.String(), r.String())
		require.Equal(t, want, p.Matches(r), "%s and %s", p, r)
		exact, err := perm.ParsePattern(r.String())
		require.NoError(t, err)
		if r.Kind() != perm.KindDB { // a table without a statement matches all statements
			require.Equal(t, want, p.Covers(exact), "%s covers %s", p, r)
		}
		if want {
			require.True(t, p.Overlaps(exact))
			require.True(t, exact.Overlaps(p), "either order")
		}
	})
}

// FuzzHost checks that a host is an address only if the standard library parses
// the same address from the text. So a rule never sees another host than the
// dialer.
func FuzzHost(f *testing.F) {
	for _, seed := range []string{
		"127.1", "0x7f.1", "2130706433", "127.0.0.1", "010.0.0.1", "[::1]", "[::ffff:1.2.3.4]", "[fe80::1%25eth0]", "[0:0:0:0:0:0:0:1]",
		"EXAMPLE.com", "a..b", "xn--bcher-kva.example", "a.b:080", "a.b:80", "1.2.3.4:65536", "user@a.b", "a.b.", "１.2.3.4", "a.0x1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, host string) {
		r, err := perm.ParseResource("http://" + host + "/x")
		if err != nil || r.Path() != "x" {
			return
		}
		require.NotContains(t, r.Host(), "@")
		require.Equal(t, strings.ToLower(r.Host()), r.Host())
		require.NotZero(t, r.Port())
		last := r.Host()[strings.LastIndexByte(r.Host(), '.')+1:]
		a, err := netip.ParseAddr(r.Host())
		if err == nil {
			require.Equal(t, a.String(), r.Host(), "one spelling of an address")
			require.Empty(t, a.Zone())
			require.False(t, a.Is4In6())
			return
		}
		require.NotRegexp(t, `^([0-9]*|0[xX][0-9a-fA-F]*)$`, last, "a resolver would take %s for an address", r.Host())
		require.Regexp(t, `^[a-z0-9_.-]+$`, r.Host())
	})
}

// FuzzArgv checks that a command line round-trips, argument by argument.
func FuzzArgv(f *testing.F) {
	f.Add("git\x00commit\x00-m\x00a b", `["git","commit"]`)
	f.Add("", `[]`)
	f.Add("\x00", `[""]`)
	f.Add("a\x00", `["a\u0000b"]`)
	f.Fuzz(func(t *testing.T, joined, data string) {
		list := strings.Split(joined, "\x00")
		a, err := perm.NewArgv(list...)
		require.NoError(t, err)
		require.Equal(t, list, a.List())
		for i, text := range list {
			_, err := perm.NewArgv(append(list[:i:i], text+"\x00")...)
			require.Error(t, err, "a NUL would make two of it")
		}
		var read perm.Argv
		if json.Unmarshal([]byte(data), &read) != nil {
			return
		}
		text, err := json.Marshal(read)
		require.NoError(t, err)
		var again perm.Argv
		require.NoError(t, json.Unmarshal(text, &again))
		require.Equal(t, read, again)
	})
}
