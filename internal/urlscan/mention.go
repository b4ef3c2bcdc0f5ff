package urlscan

import (
	_ "embed"
	"net/netip"
	"strings"
	"sync"
	"time"
	"unicode"
)

//go:embed tlds.txt
var tlds string

// public returns the top-level domains of the public suffix list.
var public = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq(tlds) {
		all[name] = true
	}
	return all
})

// Match is a URL that an argument names.
type Match struct {
	Text  string   // as it is written, or its canonical form
	Forms []string // canonical readings; empty: it cannot be a user-provided URL
}

// Find returns the URLs that an argument names, as browsers and programs read
// them. An argument that is one URL is one match, and a URL inside it is a part
// of it. A host without a scheme is a match that cannot be a user-provided URL.
func Find(argument string) (all []Match) {
	if m, whole := entire(argument); whole {
		return []Match{m}
	}
	for text := argument; ; {
		at, _ := begin(text)
		if at < 0 {
			return append(all, bareIn(text)...)
		}
		stop := end(text, at)
		m := Match{Text: clipped(text[at:stop]), Forms: forms(text[at:stop])}
		if len(m.Forms) > 0 {
			m.Text = m.Forms[0]
		}
		all, text = append(append(all, bareIn(text[:at])...), m), text[stop:]
	}
}

// entire reads an argument that is one URL or host: browsers drop spaces around
// it, and tabs and line ends in it.
func entire(argument string) (m Match, whole bool) {
	text := strings.TrimFunc(squeezed(argument), func(r rune) bool { return r <= ' ' || unicode.IsSpace(r) })
	if url, ok := Canonical(text); ok {
		return Match{Text: url, Forms: []string{url}}, true
	}
	at, after := begin(text)
	if at == 0 && !leads(strings.ToLower(text[:after-1])) && strings.ContainsFunc(argument, unicode.IsSpace) {
		at = -1 // a word and a text
	}
	if at != 0 {
		return Match{Text: clipped(text)}, slashed(text) || hosted(text) && !mailbox(text) && !isTime(text)
	}
	if url, ok := Other(text); ok {
		return Match{Text: clipped(url), Forms: []string{url}}, true
	}
	return Match{Text: clipped(text)}, true
}

// bareIn returns the hosts without a scheme in a text without URLs, if they
// look like an address: a path or port follows, slashes precede, or it begins
// with www.
func bareIn(text string) (all []Match) {
	for word := range strings.FieldsFuncSeq(text, ends) {
		word = closed(strings.TrimLeft(word, `([{'=,;`))
		bare := strings.TrimLeft(word, `/\`)
		if !hosted(bare) || isTime(bare) {
			continue
		}
		behind := strings.ContainsAny(bare, "/?#:\\") && !strings.HasPrefix(word, "/")
		if behind || slashed(word) || strings.HasPrefix(strings.ToLower(bare), "www.") {
			all = append(all, Match{Text: clipped(word)})
		}
	}
	return all
}

// isTime reports whether a text is a time with its date, which has the colon of a
// host and its port. No host outside of a local network has such a name.
func isTime(text string) bool {
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339} {
		if _, err := time.Parse(layout, text); err == nil {
			return true
		}
	}
	return false
}

// slashed reports whether a text begins like a URL without its scheme: two
// slashes of either kind, and a host.
func slashed(text string) bool {
	slash := func(i int) bool { return text[i] == '/' || text[i] == '\\' }
	if len(text) < 3 || !slash(0) || !slash(1) {
		return false
	}
	_, ok := Canonical("http:" + text)
	return ok
}

// hosted reports whether a text begins with a host that a program may reach: a
// name below a public top-level domain, localhost or an address, with or
// without a port.
func hosted(text string) bool {
	if text == "" || strings.ContainsFunc(text, ends) || text[0] == '/' || text[0] == '\\' {
		return false
	}
	u, err := parser.Parse("http://" + text)
	if err != nil {
		return false
	}
	host := strings.TrimSuffix(u.Hostname(), ".")
	name, _, _ := strings.Cut(text, "/")
	if address, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return address.Is6() || isAddress(name)
	}
	if last := strings.LastIndexByte(host, '.'); host == "localhost" || last > 0 && public()[host[last+1:]] {
		return true
	}
	_, port, some := strings.Cut(name, ":") // a name of its own network
	return some && port != "" && strings.Trim(port, "0123456789") == "" && strings.Trim(host, "0123456789") != ""
}

// isAddress reports whether a host that browsers read as an IPv4 address is one to
// people too: it has three dots, of any script that browsers take, or a
// hexadecimal part beside another. 1.5 is an address to browsers, and a number to
// people.
func isAddress(name string) bool {
	dots := strings.Count(strings.NewReplacer("。", ".", "．", ".", "｡", ".").Replace(name), ".")
	return dots == 3 || dots > 0 && strings.Contains(strings.ToLower(name), "0x")
}

// mailbox reports whether a text is only an e-mail address.
func mailbox(text string) bool {
	name, host, some := strings.Cut(text, "@")
	return some && name != "" && !strings.ContainsAny(text, "/?#:\\") && !strings.Contains(host, "@")
}

// squeezed returns a text without tabs and line ends.
func squeezed(text string) string {
	return strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(text)
}

// dotted reports whether a word begins with a name of two parts or more, such
// as example.com.
func dotted(word string) bool {
	host, _, _ := strings.Cut(word, "/")
	if at := strings.IndexAny(host, "?#:,;)]}'"); at >= 0 {
		host = host[:at]
	}
	return strings.LastIndexByte(strings.TrimRight(host, "."), '.') > 0
}
