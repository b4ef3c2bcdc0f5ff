package urlscan

import (
	"strconv"
	"strings"

	"github.com/nlnwa/whatwg-url/url"
)

// Longest is the maximum length of a URL in bytes. A longer text is not a URL.
const Longest = 8 << 10

// leaders returns the schemes that lead out of a machine, longest first.
func leaders() [6]string { return [...]string{"https", "http", "ftps", "wss", "ftp", "ws"} }

// parser parses URLs as browsers do, by the rules of the WHATWG URL Standard,
// and ftps like ftp. It is safe for concurrent use.
var parser = url.NewParser(url.WithSpecialSchemes(map[string]string{
	"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21", "ftps": "990", "file": "",
}))

// leads reports whether a scheme leads out of a machine.
func leads(scheme string) bool {
	for _, one := range leaders() {
		if scheme == one {
			return true
		}
	}
	return false
}

// Canonical returns a URL in the form in which all its spellings are the same
// text. It parses the URL as browsers do, and then removes the encoding that
// RFC 3986, section 6.2.2, calls needless, and the fragment, which no program
// sends. ok is false if the text is not an absolute URL with a scheme that
// leads out.
func Canonical(text string) (canonical string, ok bool) {
	if len(text) > Longest {
		return "", false
	}
	u, err := parser.Parse(text)
	if err != nil || !leads(u.Scheme()) || u.Hostname() == "" {
		return "", false
	}
	scheme, rest, _ := strings.Cut(u.Href(true), "://")
	rest, query, queried := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		authority = encoded(authority[:at]) + authority[at:]
	}
	text = scheme + "://" + authority + "/" + encoded(path)
	if queried {
		text += "?" + encoded(query)
	}
	return text, len(text) <= Longest
}

// Other returns a URL of any other scheme as browsers write it. ok is false if
// the text is not an absolute URL, or if it leads out.
func Other(text string) (canonical string, ok bool) {
	if len(text) > Longest {
		return "", false
	}
	u, err := parser.Parse(text)
	if err != nil || leads(u.Scheme()) {
		return "", false
	}
	text = u.Href(false)
	return text, len(text) <= Longest
}

// Resource returns a canonical URL without its query and without a slash at the
// end of its path. Permissions refer to this form.
func Resource(canonical string) string {
	text, _, _ := strings.Cut(canonical, "?")
	return strings.TrimSuffix(text, "/")
}

// encoded writes a part of a URL with as little encoding as possible, and with
// upper-case digits.
func encoded(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '%' && i+2 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				put(&b, byte(n), unreserved(byte(n)))
				i += 2
				continue
			}
		}
		put(&b, c, unreserved(c) || strings.IndexByte("!$&'()*+,;=:@/?", c) >= 0)
	}
	return b.String()
}

func put(b *strings.Builder, c byte, plain bool) {
	const digits = "0123456789ABCDEF"
	if plain {
		b.WriteByte(c)
		return
	}
	b.Write([]byte{'%', digits[c>>4], digits[c&15]})
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}
