package perm_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
)

// maker creates random patterns, resources and sets. It records the operators
// of each case.
type maker struct {
	*rand.Rand
	t   testing.TB
	ops map[string]bool
}

func (m *maker) one(of ...string) string { return of[m.IntN(len(of))] }

func (m *maker) with(op, text string) string {
	m.ops[op] = true
	return text
}

func (m *maker) name() string { return m.one("a", "b", "ab", "aab", "%2A", ".git", "b.a", "%FF") }

func (m *maker) path(most int) string {
	var b strings.Builder
	for range m.IntN(most + 1) {
		b.WriteString("/" + m.name())
	}
	return b.String()
}

func (m *maker) segmentPattern() string {
	switch m.IntN(6) {
	case 0, 1:
		return m.with("*", "*")
	case 2, 3:
		return m.with("inner *", m.one("a*", "*b", "*a*", "a*b", ".*", "*%2A", "a*a*b"))
	default:
		return m.name()
	}
}

func (m *maker) pathPattern(most int) string {
	var b strings.Builder
	for range m.IntN(most + 1) {
		if m.IntN(3) == 0 {
			b.WriteString(m.with("**", "/**"))
		} else {
			b.WriteString("/" + m.segmentPattern())
		}
	}
	return b.String()
}

// bound returns a pattern whose last part was an argument, and the text that
// binding must give: the literal argument.
func (m *maker) bound() (string, string) {
	head := "file://" + m.one("ws", "w") + m.pathPattern(2)
	value := m.one("a", "*", "**", "a/b", ".", "", "a/*", "ab", ".git", "b/**/a", "\xff")
	if m.IntN(3) > 0 {
		return m.with("{param}", head+"/{p}"), value
	}
	value = m.one("a", "*", "ab", ".git", "{p}")
	return m.with("{param}", head+"/{p}"+m.one("/a", "*", "/**")), value
}

func refBound(pattern, value string) string {
	written := strings.NewReplacer("*", "%2A", "{", "%7B", "}", "%7D", "\xff", "%FF").Replace(value)
	if value == "" || value == "." {
		return strings.TrimSuffix(pattern, "/{p}")
	}
	return strings.Replace(pattern, "{p}", written, 1)
}

// pattern returns a pattern for the code under test and its text for the
// reference.
func (m *maker) pattern() (perm.Pattern, string) {
	if m.IntN(5) == 0 {
		text, value := m.bound()
		p, err := pattern(m.t, text).BindPattern(func(string) (string, bool) { return value, true })
		require.NoError(m.t, err, text)
		return p, refBound(text, value)
	}
	text := m.patternText()
	return pattern(m.t, text), text
}

func (m *maker) patternText() string {
	switch m.IntN(8) {
	case 0, 1:
		host := m.one("example.com", "a.example.com", "*.example.com", "*.a.example.com", "*", "*.com")
		if strings.HasPrefix(host, "*.") {
			m.ops["host *."] = true
		}
		return m.one("https://", "http://") + host + m.one("", "", ":8443", ":*") + m.pathPattern(2)
	case 2:
		table := m.one("", "/users", "/**", m.with("*", "/*"), m.with("inner *", "/u*"))
		return "db://main" + table + m.one("", "?statement=insert", "?statement=delete")
	case 3:
		return m.one("exec://a", "exec://*", "exec:///**", "exec:///a/*", "secret://a*", "tool://*", "tool://a", "mcp://*/a", "mcp://a/**")
	default:
		return "file://" + m.one("ws", "ws", "w", "w*", "*") + m.pathPattern(4)
	}
}

func (m *maker) resourceText() string {
	switch m.IntN(8) {
	case 0, 1:
		host := m.one("example.com", "a.example.com", "b.a.example.com", "aexample.com", "127.0.0.1")
		return m.one("https://", "http://") + host + m.one("", "", ":8443") + m.path(2)
	case 2:
		return "db://main" + m.one("", "/users", "/units", "/a") + m.one("?statement=insert", "?statement=delete")
	case 3:
		return m.one("exec://a", "exec://b", "exec:///a", "exec:///a/b", "secret://a", "secret://ab", "tool://a", "tool://b", "mcp://a", "mcp://a/a")
	default:
		return "file://" + m.one("ws", "ws", "w") + m.path(4)
	}
}

// within returns a text that the pattern matches, so that enough cases are
// true.
func (m *maker) within(pattern string) string {
	scheme, rest, _ := strings.Cut(pattern, "://")
	rest, query, _ := strings.Cut(rest, "?")
	words := strings.Split(rest, "/")
	words[0] = strings.Replace(words[0], ":*", m.one("", ":8443"), 1)
	switch {
	case !strings.HasPrefix(scheme, "http"):
	case strings.HasPrefix(words[0], "*."):
		words[0] = m.one("a", "b.a") + words[0][1:]
	default:
		words[0] = strings.Replace(words[0], "*", "example.com", 1)
	}
	var kept []string
	for _, w := range words {
		switch {
		case w == "**" && scheme == "db":
		case w == "**":
			kept = append(kept, strings.Split(m.path(2), "/")[1:]...)
		case w == "*":
			kept = append(kept, m.one("a", "b"))
		default:
			kept = append(kept, strings.ReplaceAll(w, "*", m.one("", "a", "b", "ab")))
		}
	}
	if query == "" && scheme == "db" {
		query = m.one("statement=insert", "statement=delete")
	}
	if query != "" {
		query = "?" + query
	}
	return scheme + "://" + strings.Join(kept, "/") + query
}
