package urlscan_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"github.com/remit-dev/remit/internal/urlscan"
)

// TestMentionsOfEachKind checks every way in which a program or a browser finds
// a URL in an argument.
func TestMentionsOfEachKind(t *testing.T) {
	for argument, want := range map[string]string{
		"http:evil.example/x":                   "http://evil.example/x",
		"go to http:evil.example/x now":         "http://evil.example/x",
		"https://ev\til.exa\nmple/":             "https://evil.example/",
		"  https:\\evil.example ":               "https://evil.example/",
		"https://EVIL.example":                  "https://evil.example/",
		"gopher://evil.example/x":               "gopher://evil.example/x",
		"clone git+ssh://evil.example/x please": "git+ssh://evil.example/x",
		"mailto:ann@evil.example?body=secret":   "mailto:ann@evil.example?body=secret",
		"javascript:fetch('//evil.example')":    "javascript:fetch('//evil.example')",
		"data:text/html,x":                      "data:text/html,x",
		"file:///etc/passwd":                    "file:///etc/passwd",
		"file://evil.example/share":             "file://evil.example/share",
		"view-source:https://evil.example":      "view-source:https://evil.example",
		"intent://evil.example#Intent;end":      "intent://evil.example#Intent;end",
	} {
		m := urlscan.Find(argument)
		require.Len(t, m, 1, argument)
		require.Contains(t, m[0].Forms, want, argument)
		require.Contains(t, slices.Collect(urlscan.Read(want)), m[0].Forms[0], "it can be given")
	}
}

// TestMentionsOfHosts checks that a host without a scheme cannot be a
// user-provided URL.
func TestMentionsOfHosts(t *testing.T) {
	for _, argument := range []string{
		"evil.com", "evil.com/x?y=z", " EVIL.COM. ", "evil.co.uk", "x.github.io", "evil.com:8080", "evil.com?q=secret", "evil.com#x", "user:pw@evil.com/x", "evil。com",
		"//evil.example/x", `\\evil.example\share`, `/\evil.example`, "//evil", "1.2.3.4", "1.2.3.4/x", "[::1]:80", "[2001:db8::1]/x", "localhost", "localhost:8080/x", "intranet:8080/x",
		"see evil.com/x?q=secret there", "see //evil.com there", `see \\evil.com\x there`, "www.evil.com and more", "(evil.com/x), then", "first,www.evil.com/x second",
		"ev\til.com", "xn--nxasmq6b.com", "２．２．２．２/x", "1。2。3。4", "0x7f.1/a", "0x7f.0.0.1", "0X7F.1",
	} {
		m := urlscan.Find(argument)
		require.NotEmpty(t, m, argument)
		for _, one := range m {
			require.Empty(t, one.Forms, argument)
			require.NotEmpty(t, one.Text, argument)
		}
	}
	for _, argument := range []string{
		"", " ", "hello", "main.go", "src/main.go", "a/b.c", "gpt-4.1", "1.5", "1.5/2.5", "0x7f", "0xFF00FF", "v1.2.3", "12:30", "a:b", "nginx:latest", "image:latest", "ann@evil.com", "to ann@evil.com now",
		"Done.It works", "see readme.md for more", "// a comment", "a // b", "/usr/bin/x", "/", "//", `\\`, "..", "C: x", "news:item", "secret://github", "file://workspace/a.txt", "db://main/t", "tool://x", "mcp://s/t",
		"2026-12-11T10:00", "from 2026-12-11T10:00:05Z on", "no scheme: here", "http: is a scheme", "a.b.c", "x.internal", "{\"a\":1}",
	} {
		require.Empty(t, urlscan.Find(argument), argument)
	}
	both := urlscan.Find("first evil.com/x, then https://a.example/y")
	require.Len(t, both, 2)
	require.Empty(t, both[0].Forms)
	require.Contains(t, both[1].Forms, "https://a.example/y")
}

// TestWritten checks that a URL with line ends is the URL that a browser makes
// of it, and that scanning that URL again adds nothing.
func TestWritten(t *testing.T) {
	text := "https://ev\nil.exa\tmple/x"
	require.Contains(t, slices.Collect(urlscan.Written(text)), "https://evil.example/x")
	require.Contains(t, slices.Collect(urlscan.Bare(text)), "https://evil.example/x")
	require.NotContains(t, slices.Collect(urlscan.Read(text)), "https://evil.example/x", "a person named two words")
	for range urlscan.Written("https://a.example/1 https://a.example/2") {
		break
	}
}

// TestTopLevelDomains compares the list with the public suffix list.
func TestTopLevelDomains(t *testing.T) {
	has := func(name string) bool { return len(urlscan.Find("x."+name)) > 0 }
	listed := func(name string) bool {
		_, managed := publicsuffix.PublicSuffix("x.x.x." + name)
		return managed
	}
	text, err := os.ReadFile("tlds.txt")
	require.NoError(t, err)
	names := strings.Fields(string(text))
	require.Greater(t, len(names), 1400)
	for _, name := range names {
		require.True(t, has(name), name)
		plain, err := idna.ToUnicode(name)
		require.NoError(t, err)
		require.True(t, listed(plain) || listed(name), name)
	}
	for a := 'a'; a <= 'z'; a++ {
		for b := 'a'; b <= 'z'; b++ {
			name := string([]rune{a, b})
			require.Equal(t, listed(name), has(name), name)
		}
	}
	for _, name := range []string{"com", "org", "dev", "zip", "app", "museum", "go", "json", "yaml", "txt", "internal", "example"} {
		require.Equal(t, listed(name), has(name), name)
	}
}
