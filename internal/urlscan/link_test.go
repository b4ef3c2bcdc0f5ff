package urlscan_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/internal/urlscan"
)

func ExampleCanonical() {
	fmt.Println(urlscan.Canonical("HTTPS://Example.com:443/a/./b/../%7euser?q=%2f#top"))
	// Output: https://example.com/a/~user?q=%2F true
}

func TestCanonical(t *testing.T) {
	for text, want := range map[string]string{
		"http://example.com":                  "http://example.com/",
		"http://example.com:80/":              "http://example.com/",
		"http://example.com:0080/":            "http://example.com/",
		"http://example.com:8080":             "http://example.com:8080/",
		"https://example.com:80":              "https://example.com:80/",
		"https://example.com?":                "https://example.com/?",
		"https://example.com?a=b":             "https://example.com/?a=b",
		"https://example.com/a/../../b":       "https://example.com/b",
		"https://example.com/a/%2e%2E/b":      "https://example.com/b",
		"https://example.com/a/b/..":          "https://example.com/a/",
		"https://example.com/a//b/.":          "https://example.com/a//b/",
		"https://example.com/%61%2fb":         "https://example.com/a%2Fb",
		"https://example.com/ä":               "https://example.com/%C3%A4",
		"https://example.com/a[1]|{x}":        "https://example.com/a%5B1%5D%7C%7Bx%7D",
		"https://a@b@example.com/":            "https://a%40b@example.com/",
		"https://good.example@evil.example/":  "https://good.example@evil.example/",
		"https://[2001:DB8::1]:443/":          "https://[2001:db8::1]/",
		"wss://example.com:443/x":             "wss://example.com/x",
		"https://example.com/?a=1&amp;b=2#c?": "https://example.com/?a=1&amp;b=2",
	} {
		got, ok := urlscan.Canonical(text)
		require.True(t, ok, text)
		require.Equal(t, want, got)
	}
	for text, want := range map[string]string{ // as browsers read them
		"http:example.com/x":                 "http://example.com/x",
		"https:/example.com":                 "https://example.com/",
		`https:\\example.com\x`:              "https://example.com/x",
		"https:///a":                         "https://a/",
		"ht\ttps://exa\nmple.com/a\r\nb":     "https://example.com/ab",
		" \x01https://example.com/a b ":      "https://example.com/a%20b",
		"https://ex%61mple.com/":             "https://example.com/",
		"https://ＥＸＡＭＰＬＥ.com":                "https://example.com/",
		"https://faß.example":                "https://xn--fa-hia.example/",
		"https://example。com":                "https://example.com/",
		"http://0x7f.1/":                     "http://127.0.0.1/",
		"http://2130706433/":                 "http://127.0.0.1/",
		"https://example.com\\@evil.example": "https://example.com/@evil.example",
		"https://example.com/%4":             "https://example.com/%254",
		"https://example.com/%%410":          "https://example.com/%25A0",
		"ftps:example.com:990":               "ftps://example.com/",
	} {
		got, ok := urlscan.Canonical(text)
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
		again, ok := urlscan.Canonical(got)
		require.True(t, ok, got)
		require.Equal(t, got, again)
	}
	for _, text := range []string{
		"", "example.com", "//example.com", "file://workspace/a", "file:///etc", "https://", "https:", "https://exa mple.com/", "https://example.com:x/", "https://example.com:70000/",
		"https://exa<mple.com/", "javascript:alert(1)", "gopher://example.com/", "https://example.com/" + strings.Repeat("a", urlscan.Longest),
	} {
		_, ok := urlscan.Canonical(text)
		require.False(t, ok, text)
	}
}

// TestCanonicalIsOneURL checks that a canonical URL is stable, and leads where
// the text led.
func TestCanonicalIsOneURL(t *testing.T) {
	dot := strings.NewReplacer("%2e", ".", "%2E", ".") // the standard library does not resolve escaped dots
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`(https?|WSS)://([a-zA-Z0-9]{1,5}\.)[a-z]{2}(:[0-9]{1,3})?(/(\.{1,2}|%2[eE]\.?|([a-zA-Z0-9.~:@-]|%[2-7][0-9A-Fa-f]){0,4})){0,4}(\?[a-z=&]{0,6})?(#x)?`).Draw(t, "url")
		once, ok := urlscan.Canonical(text)
		require.True(t, ok, text)
		twice, ok := urlscan.Canonical(once)
		require.True(t, ok)
		require.Equal(t, once, twice)
		before, err := url.Parse(dot.Replace(text))
		require.NoError(t, err)
		after, err := url.Parse(once)
		require.NoError(t, err)
		require.Equal(t, strings.ToLower(before.Hostname()), after.Hostname())
		require.Equal(t, before.RawQuery, after.RawQuery)
		want := before.ResolveReference(before) // the standard library resolves dots and drops slashes at the front
		require.Equal(t, strings.TrimLeft(want.Path, "/"), strings.TrimLeft(after.Path, "/"))
	})
}

func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		"see https://a.example/x.":                           "https://a.example/x",
		"(see https://a.example/x_(y)).":                     "https://a.example/x_(y)",
		"[x](https://a.example/x), and":                      "https://a.example/x",
		`<a href="https://a.example/?b=1&amp;c=2">`:          "https://a.example/?b=1&c=2",
		`{"u":"https:\/\/a.example\/x"}`:                     "https://a.example/x",
		"看https://a.example/x。谢谢":                            "https://a.example/x",
		"https://a.example/r?u=https://b.example/y":          "https://b.example/y",
		"HTTP://A.example":                                   "http://a.example/",
		"'https://a.example/x'":                              "https://a.example/x",
		"| https://a.example/x|":                             "https://a.example/x",
		"line one https://a.example/1\nhttps://a.example/2 ": "https://a.example/2",
	} {
		require.Contains(t, slices.Collect(urlscan.Read(text)), want, text)
	}
	for _, text := range []string{"", "a.example/x", "file://workspace/x", "https:", "https: is a scheme", "//a.example/x", "news: x", "C: x"} {
		require.Empty(t, slices.Collect(urlscan.Read(text)), text)
	}
	require.Contains(t, slices.Collect(urlscan.Bare("go to a.example/x?y=z now")), "https://a.example/x?y=z")
	for range urlscan.Read("https://a.example/1 https://a.example/2") {
		break
	}
	for range urlscan.Bare("https://a.example/1 https://a.example/2") {
		break
	}
}

func TestMentions(t *testing.T) {
	one := func(argument string) urlscan.Match {
		all := urlscan.Find(argument)
		require.Len(t, all, 1, argument)
		return all[0]
	}
	require.Equal(t, []string{"https://a.example/x..."}, one(" https://a.example/x... ").Forms, "what is a URL as a whole is no sentence")
	require.Contains(t, one("--url=https://a.example/x.").Forms, "https://a.example/x")
	require.Equal(t, []string{"https://a.example/"}, one(`HTTPS:\\a.example`).Forms)
	require.Equal(t, []string{"https://a.example/x%20and%20more"}, one("https://a.example/x and more").Forms, "browsers take all of it")
	for _, odd := range []string{"https://exa<mple", "https://a.example/" + strings.Repeat("x", urlscan.Longest)} {
		require.Empty(t, one(odd).Forms, odd)
		require.LessOrEqual(t, len(one(odd).Text), 210)
	}
	require.Len(t, urlscan.Find("a https://a.example/r?u=https://b.example b https://c.example"), 2, "what is inside a URL is a part of it")
	require.Empty(t, urlscan.Find("nothing: here"))
	require.Equal(t, []string{"a", "b", "c", "d"}, slices.Collect(urlscan.Texts([]byte(`{"a":["b",1,{"c":"d"}],`))))
}

func TestResource(t *testing.T) {
	require.Equal(t, "https://a.example/x", urlscan.Resource("https://a.example/x/?y=z"))
	require.Equal(t, "https://a.example", urlscan.Resource("https://a.example/"))
}

func FuzzRead(f *testing.F) {
	f.Add("see https://a.example/x?y=%20.")
	f.Fuzz(func(t *testing.T, text string) {
		for url := range urlscan.Bare(text) {
			again, ok := urlscan.Canonical(url)
			if !ok {
				again, ok = urlscan.Other(url)
			}
			require.True(t, ok, url)
			require.Equal(t, url, again)
		}
		urlscan.Find(text)
	})
}
