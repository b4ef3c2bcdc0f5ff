package link

import (
	"strconv"
	"strings"
)

// Longest is how many bytes a URL has at most. A longer one is none.
const Longest = 8 << 10

// schemes are those that lead out of a machine.
func schemes() [6]string { return [...]string{"https", "http", "wss", "ws", "ftps", "ftp"} }

// usualPort is the port that goes without saying, 0 for a scheme that leads nowhere.
func usualPort(scheme string) int {
	switch scheme {
	case "http", "ws":
		return 80
	case "https", "wss":
		return 443
	case "ftp":
		return 21
	case "ftps":
		return 990
	default:
		return 0
	}
}

// Canonical writes a URL in the one way in which two spellings of it are the same text: RFC 3986, section 6.2.2 and 6.2.3. Scheme
// and host are in lower case, the usual port is left out, what need not be encoded is not, dot segments are resolved, and the
// fragment, which is never sent, is gone. It is false for what is no absolute URL of a scheme that leads out.
func Canonical(text string) (canonical string, ok bool) {
	if len(text) > Longest {
		return "", false
	}
	scheme, rest, found := strings.Cut(text, "://")
	scheme = strings.ToLower(scheme)
	port := usualPort(scheme)
	if !found || port == 0 {
		return "", false
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, query, queried := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	authority, ok = canonicalAuthority(authority, port)
	if !ok {
		return "", false
	}
	if path, ok = encoded(path); !ok {
		return "", false
	}
	text = scheme + "://" + authority + withoutDots(path)
	if queried {
		if query, ok = encoded(query); !ok {
			return "", false
		}
		text += "?" + query
	}
	return text, len(text) <= Longest
}

// Resource is a canonical URL without its query and a slash at the end of its path: what a permission is about.
func Resource(canonical string) string {
	text, _, _ := strings.Cut(canonical, "?")
	return strings.TrimSuffix(text, "/")
}

func canonicalAuthority(text string, usual int) (string, bool) {
	user := ""
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		name, ok := encoded(text[:at])
		if !ok {
			return "", false
		}
		user, text = name+"@", text[at+1:]
	}
	host, port := text, ""
	if colon := strings.LastIndexByte(text, ':'); colon > strings.LastIndexByte(text, ']') {
		host, port = text[:colon], text[colon+1:]
	}
	if host = strings.ToLower(host); host == "" || strings.ContainsFunc(host, notInHost) {
		return "", false
	}
	if port == "" {
		return user + host, true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil:
		return "", false
	case int(n) == usual:
		return user + host, true
	default:
		return user + host + ":" + strconv.FormatUint(n, 10), true
	}
}

// notInHost are characters that no host has, as a name or as an address in brackets. Letters of other scripts stay as they are: a name
// in them and its form in ASCII count as two.
func notInHost(r rune) bool {
	return r <= ' ' || r < 0x80 && strings.ContainsRune("\"#%/<>?@\\^`{|}\x7f", r)
}

// encoded writes a part of a URL with as little encoding as there can be, and with upper-case digits. What no reader would take for a
// part of a URL is refused.
func encoded(text string) (string, bool) {
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c <= ' ' || c == 0x7f || c == '"' || c == '<' || c == '>' || c == '\\':
			return "", false
		case c == '%':
			n, err := strconv.ParseUint(text[i+1:min(i+3, len(text))], 16, 8)
			if err != nil || i+2 >= len(text) {
				return "", false
			}
			put(&b, byte(n), unreserved(byte(n)))
			i += 2
		default:
			put(&b, c, unreserved(c) || strings.IndexByte("!$&'()*+,;=:@/?", c) >= 0)
		}
	}
	return b.String(), true
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

// withoutDots resolves "." and ".." of a path, which is given without its first slash.
func withoutDots(path string) string {
	var kept []string
	names := strings.Split(path, "/")
	for i, name := range names {
		last := i == len(names)-1
		switch {
		case name == "..":
			kept = kept[:max(len(kept)-1, 0)]
		case name != ".":
			kept = append(kept, name)
			continue
		}
		if last {
			kept = append(kept, "")
		}
	}
	return "/" + strings.Join(kept, "/")
}
