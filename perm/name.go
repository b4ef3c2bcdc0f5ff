package perm

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parseHostPort parses the authority of a URL. Port 0 matches any port.
func parseHostPort(kind Kind, text string, wild bool) (segment, uint16, error) {
	if strings.Contains(text, "@") {
		return segment{}, 0, errUser()
	}
	var host, port string
	var hasPort bool
	if strings.HasPrefix(text, "[") {
		end := strings.LastIndexByte(text, ']')
		if end < 0 {
			return segment{}, 0, errIPv6()
		}
		host, port = text[:end+1], text[end+1:]
		if port != "" && port[0] != ':' {
			return segment{}, 0, errIPv6()
		}
		port, hasPort = strings.CutPrefix(port, ":")
	} else {
		host, port, hasPort = strings.Cut(text, ":")
	}
	n := defaultPort(kind)
	if hasPort {
		var err error
		if n, err = parsePort(port, wild); err != nil {
			return segment{}, 0, err
		}
	}
	s, err := parseHost(host, wild)
	return s, n, err
}

func parsePort(text string, wild bool) (uint16, error) {
	if wild && text == "*" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || text[0] == '0' || text[0] == '+' {
		return 0, errors.New("bad port: valid are 1 to 65535, and in patterns a single *")
	}
	return uint16(n), nil
}

func defaultPort(k Kind) uint16 {
	if k == KindHTTPS {
		return 443
	}
	return 80
}

// parseHost parses a host or, with wild, the patterns *, *.name and {param}.
func parseHost(text string, wild bool) (segment, error) {
	if base, found := strings.CutPrefix(text, "*"); wild && found {
		if base == "" {
			return newSegment([]part{{op: opStar}}), nil
		}
		name, err := canonicalHost(strings.TrimPrefix(base, "."))
		if err != nil {
			return segment{}, err
		}
		if _, err := netip.ParseAddr(name); err == nil || base[0] != '.' {
			return segment{}, errors.New("bad host: a star is valid alone, or as the whole first label before a name")
		}
		return newSegment([]part{{op: opStar}, {op: opWord, text: "." + name}}), nil
	}
	if wild && strings.HasPrefix(text, "{") {
		s, err := parseSegment(text, true)
		if err == nil && (len(s.parts) != 1 || s.parts[0].op != opParam) {
			err = errors.New("takes a parameter only for all of it")
		}
		return s, at("the host", err)
	}
	host, err := canonicalHost(text)
	return word(host), err
}

// canonicalHost returns the canonical spelling of a host, an IPv6 address
// without brackets. It refuses the many spellings that resolvers read as an
// address (127.1, 0x7f.1, 2130706433, full-width digits). A rule about a host
// must see the host that is dialled.
func canonicalHost(text string) (string, error) {
	switch {
	case strings.Contains(text, "@"):
		return "", errUser()
	case strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]"):
		return canonicalIPv6(text[1 : len(text)-1])
	case strings.ContainsAny(text, ":[]"):
		return canonicalIPv6(text)
	case strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }):
		return "", errors.New("the host is not ASCII: write an international name in punycode (xn--)")
	case strings.HasSuffix(text, "."):
		return "", errors.New("the host has a dot at the end: write it without")
	}
	text = strings.ToLower(text)
	labels := strings.Split(text, ".")
	for _, l := range labels {
		if !hostLabel(l) || len(text) > 253 {
			return "", errors.New("bad host: valid are an IP address and a name of up to 253 bytes, of labels of letters, digits, - and _ joined by dots")
		}
	}
	if last := labels[len(labels)-1]; numeric(last) {
		if a, err := netip.ParseAddr(text); err != nil || a.String() != text {
			return "", errors.New("bad host: an IPv4 address is four decimal numbers joined by dots, without leading zeros")
		}
	}
	return text, nil
}

func canonicalIPv6(text string) (string, error) {
	if strings.Contains(text, "%") {
		return "", errors.New("bad host: an address with a zone is not valid")
	}
	a, err := netip.ParseAddr(text)
	switch {
	case err != nil || !a.Is6():
		return "", errIPv6()
	case a.Is4In6():
		return "", errors.New("bad host: write an IPv4 address as such, not inside IPv6")
	case a.String() != text:
		return "", errors.New("bad host: write an IPv6 address in its shortest form, in lower case")
	}
	return text, nil
}

func errUser() error {
	return errors.New("a user (@) is not valid in a URL: use a secret")
}

func errIPv6() error {
	return errors.New("bad host: valid in brackets is an IPv6 address, such as [2001:db8::1]")
}

// hostLabel accepts the characters of labels in use. An underscore is invalid
// in a host name but common.
func hostLabel(l string) bool {
	return l != "" && len(l) <= 63 && l[0] != '-' && l[len(l)-1] != '-' && only(l, func(c byte) bool {
		return alphanumeric(c) || c == '-' || c == '_'
	})
}

// numeric reports whether browsers and resolvers read a host with this last
// label as an IPv4 address.
func numeric(label string) bool {
	hex, found := strings.CutPrefix(label, "0x")
	if found {
		return only(hex, func(c byte) bool { return unhex(c) >= 0 })
	}
	return only(label, digit)
}

// checkName checks the decoded name of a root, database, server, secret or
// tool. It can check only the characters of a name with wildcards.
func checkName(kind Kind, s segment) error {
	inRoot := func(c byte) bool { return digit(c) || 'a' <= c && c <= 'z' || c == '_' || c == '-' }
	inName := func(c byte) bool { return alphanumeric(c) || c == '_' || c == '.' || c == '-' }
	in, first, limit := inName, func(c byte) bool { return alphanumeric(c) || c == '_' }, 128
	what := "a name is up to 128 letters, digits and _.- from a letter, a digit or _ on"
	if kind == KindFile {
		in, first, limit = inRoot, func(c byte) bool { return 'a' <= c && c <= 'z' }, 32
		what = "a root is a lower-case letter and up to 31 of a-z 0-9 _ -"
	}
	ok := len(s.parts) > 0
	for i, p := range s.parts {
		ok = ok && (p.op != opWord || only(p.text, in) && (i > 0 || first(p.text[0])))
	}
	if s.literal() {
		ok = ok && len(s.glob) <= limit
	}
	if !ok {
		return fmt.Errorf("bad name after %s://: %s", kind, what)
	}
	return nil
}

func statementName(s string) bool {
	return s != "" && len(s) <= 32 && s[0] != '_' && only(s, func(c byte) bool { return 'a' <= c && c <= 'z' || c == '_' })
}

func paramName(s string) bool {
	return s != "" && len(s) <= 64 && (alphanumeric(s[0]) && !digit(s[0]) || s[0] == '_') && only(s, func(c byte) bool {
		return alphanumeric(c) || c == '_' || c == '.' || c == '-'
	})
}

func only(s string, in func(byte) bool) bool {
	for i := range len(s) {
		if !in(s[i]) {
			return false
		}
	}
	return true
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

func alphanumeric(c byte) bool {
	return digit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// unreserved reports whether RFC 3986 requires the byte unencoded.
func unreserved(c byte) bool { return alphanumeric(c) || strings.IndexByte("-._~", c) >= 0 }

// plainByte reports whether a canonical segment holds the byte unencoded.
func plainByte(c byte) bool { return unreserved(c) || strings.IndexByte("!$&'()+,;=:@", c) >= 0 }
