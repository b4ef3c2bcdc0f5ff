package web

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/effect"
)

// FuzzParseURL checks that a URL is sent as it was parsed. The standard
// library, which makes the request, parses the same host, port, path and query.
func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{
		"https://api.example.com/v1/x?a=b&c=%20", "http://[::1]:8080/", "https://a.b", "https://a.b/%2e%2e/x", "https://a.b//x", "https://u@a.b/",
		"https://a.b/x#y", "https://a.b\\@c.d/", "https://a.b:443/", "http://0x7f.1/", "https://a.b/?", "https://a.b?x=y", "https://a.b/a%2Fb/", "https://a.b/%zz",
		"https://a.b/x?%", "https://xn--a.b/", "https://a.b/a;b=c",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		to, err := ParseURL(text)
		if err != nil {
			require.Zero(t, to)
			return
		}
		again, err := ParseURL(to.String())
		require.NoError(t, err)
		require.Equal(t, to, again)
		sent, err := to.url()
		require.NoError(t, err)
		require.Equal(t, to.String(), sent.String())
		read, err := url.Parse(to.String())
		require.NoError(t, err)
		require.Equal(t, strings.Trim(to.Resource().Host(), "[]"), read.Hostname())
		require.Nil(t, read.User)
		require.Empty(t, read.Fragment)
		require.Equal(t, "/"+to.Resource().Path(), strings.TrimSuffix(read.Path, "/")+strings.Repeat("/", 1-min(1, len(to.Resource().Path()))))
		require.Equal(t, to.query, read.RawQuery)
		for _, part := range strings.Split(to.query, "&") {
			if _, value, ok := strings.Cut(part, "="); ok && len(value) > 8 && !strings.Contains(to.path(), value) && strings.Count(to.String(), value) == 1 {
				require.NotContains(t, to.Masked(), value)
			}
		}
	})
}

// FuzzFollow checks that a redirect leads where the standard library says. It
// never leads from https to http, or to an invalid URL.
func FuzzFollow(f *testing.F) {
	for _, location := range []string{"/x", "../x", "//c.d/x", "http://a.b/x", "https://c.d:444/", "?q", "#f", "x y", "javascript:1", "https://u:p@c.d/", "%2e%2e/"} {
		f.Add("https://a.b/v1/y?z=1", location)
		f.Add("http://a.b/", location)
	}
	f.Fuzz(func(t *testing.T, text, location string) {
		from, err := ParseURL(text)
		if err != nil {
			return
		}
		next, err := from.follow(location)
		if err != nil {
			require.Zero(t, next)
			return
		}
		require.False(t, from.Resource().Kind() == "https" && next.Resource().Kind() != "https")
		base, err := url.Parse(from.String())
		require.NoError(t, err)
		want, err := base.Parse(location)
		require.NoError(t, err)
		require.Equal(t, strings.ToLower(want.Hostname()), strings.Trim(next.Resource().Host(), "[]"))
		require.Equal(t, strings.TrimSuffix(want.Path, "/"), strings.TrimSuffix("/"+next.Resource().Path(), "/"))
	})
}

// FuzzNetwork checks that a network has one spelling, and the addresses that
// the standard library reports.
func FuzzNetwork(f *testing.F) {
	for _, seed := range []string{"127.0.0.1", "[::1]:8080", "10.0.0.0/8", "10.0.0.1/8", "::ffff:1.2.3.4", "fe80::1%eth0", "1.2.3.4:0", "0.0.0.0/0", "::/0", "1.2.3.4/32", "01.2.3.4"} {
		f.Add(seed, "127.0.0.1", uint16(80))
		f.Add(seed, "10.1.2.3", uint16(8080))
		f.Add(seed, "::1", uint16(8080))
	}
	f.Fuzz(func(t *testing.T, text, address string, port uint16) {
		n, err := ParseNetwork(text)
		if err != nil {
			require.Zero(t, n)
			return
		}
		again, err := ParseNetwork(n.String())
		require.NoError(t, err)
		require.Equal(t, n, again)
		a, err := netip.ParseAddr(address)
		if err != nil {
			return
		}
		want := false
		if p, err := netip.ParsePrefix(text); err == nil {
			want = p.Contains(a)
		} else if ap, err := netip.ParseAddrPort(text); err == nil {
			want = ap.Addr() == a && ap.Port() == port
		} else if only, err := netip.ParseAddr(text); err == nil {
			want = only == a
		}
		require.Equal(t, want, n.holds(a, port))
		if special(a) && a.Zone() == "" {
			hostport := netip.AddrPortFrom(a, max(port, 1)).String()
			require.Error(t, CheckAddress(hostport, nil), "nobody allowed %s", a)
		}
	})
}

// FuzzFill checks that a value in the URL of a compensation stays in its place.
// It adds no segment and no member of a query, and round-trips.
func FuzzFill(f *testing.F) {
	f.Add("https://a.b/v1/{id}", "7")
	f.Add("https://a.b/v1/{id}/x?k={id}", "a/b?c#d&e=f%2e")
	f.Add("https://a.b/{id}", "..")
	f.Add("https://a.b/?k={id}&l={id}", "&x=y")
	f.Add("https://{id}/x", "evil.example")
	f.Add("https://a.b/{", "x")
	f.Add("https://a.b/{}", "x")
	f.Fuzz(func(t *testing.T, text, value string) {
		plain, err := fill(text, func(string) (string, bool) { return "x", true })
		if err != nil {
			return
		}
		shape, err := ParseURL(plain)
		if err != nil || (&Compensation{Item: text}).check(shape) != nil {
			return
		}
		filled, err := fill(text, func(string) (string, bool) { return value, true })
		require.Equal(t, value == "" && strings.Contains(text, "{"), err != nil)
		if err != nil {
			return
		}
		to, err := ParseURL(filled)
		if err != nil {
			return // such as .. in a path
		}
		require.Len(t, to.Resource().Segments(), len(shape.Resource().Segments()))
		was, err := url.ParseQuery(shape.query)
		require.NoError(t, err)
		is, err := url.ParseQuery(to.query)
		require.NoError(t, err)
		require.Len(t, is, len(was))
		if before, _, found := strings.Cut(text, "/{"); found && text == before+"/{id}" && strings.Count(before, "{") == 0 && !strings.Contains(before, "?") {
			require.Equal(t, value, to.Resource().Segments()[len(to.Resource().Segments())-1])
		}
	})
}

// FuzzInverse checks that the inverse of a request round-trips, and leads to a
// valid URL.
func FuzzInverse(f *testing.F) {
	for _, i := range []inverse{
		{Method: "POST", URL: "https://a.b/v1", Key: "k", Undo: &Compensation{Item: "https://a.b/v1/{id}", Find: "https://a.b/v1?key={key}"}},
		{Method: "PUT", URL: "https://a.b/v1/7", Undo: &Compensation{Before: true}, Item: "https://a.b/v1/7", Back: "https://a.b/v1/7", Holds: map[string]string{"/a": "sha256:00"}},
		{Method: "DELETE", URL: "https://u@a.b/"},
		{Method: "POST", URL: "https://a.b/v1", Again: &replayRequest{Method: "POST", URL: "https://a.b/v1", Body: []byte("x")}, Made: true},
	} {
		raw, err := canon.Marshal(i)
		require.NoError(f, err)
		f.Add([]byte(raw))
	}
	f.Add([]byte(`{"method":"POST","url":"https://a.b/","URL":"https://c.d/"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		inv, to, err := readInverse(effect.Change{Scheme: schemeName, Inverse: raw})
		if err != nil {
			return
		}
		asked, err := ParseURL(inv.URL)
		require.NoError(t, err)
		require.Equal(t, asked, to)
		first, err := canon.Marshal(inv)
		if err != nil {
			return // a year that JSON cannot represent
		}
		same, there, err := readInverse(effect.Change{Scheme: schemeName, Inverse: first})
		require.NoError(t, err)
		require.Equal(t, to, there)
		second, err := canon.Marshal(same)
		require.NoError(t, err)
		require.Equal(t, string(first), string(second))
	})
}
