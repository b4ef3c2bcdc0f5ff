package canon

import "slices"

// Canonical returns the canonical form of the value, or nil for the zero Value.
// The caller owns the result.
func (v Value) Canonical() []byte {
	if v.kind == Invalid {
		return nil
	}
	return v.append(make([]byte, 0, 64+len(v.text)))
}

func (v Value) append(dst []byte) []byte {
	switch v.kind {
	case String:
		return appendString(dst, v.text)
	case Array:
		dst = append(dst, '[')
		for i, e := range v.Elements() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = e.append(dst)
		}
		return append(dst, ']')
	case Object:
		return v.appendObject(dst)
	default:
		return append(dst, v.text...)
	}
}

func (v Value) appendObject(dst []byte) []byte {
	dst = append(dst, '{')
	separate := false
	for name, member := range v.Members() {
		if separate {
			dst = append(dst, ',')
		}
		separate = true
		dst = appendString(dst, name)
		dst = append(dst, ':')
		dst = member.append(dst)
	}
	return append(dst, '}')
}

// appendString writes a string with the fewest escapes, as RFC 8785 requires.
// It copies runs without escapes as a whole.
func appendString(dst []byte, s string) []byte {
	if len(s) > cap(dst)-len(dst) {
		dst = room(dst, len(s)+escapes(s))
	}
	dst = append(dst, '"')
	start := 0
	for i := plainPrefix(s); i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscape(dst, c)
		start = i + 1
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// room returns dst with room for n bytes and what follows them in a usual
// document. Without it, one large text would be copied each time that the
// buffer grows.
func room(dst []byte, n int) []byte {
	if n < roomFrom {
		return dst
	}
	return slices.Grow(dst, n+roomFrom)
}

const roomFrom = 4 << 10

// escapes returns how many bytes the escapes of a text add to it.
func escapes(s string) (n int) {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"', c == '\\', c >= '\b' && c <= '\r' && c != '\v':
			n++
		case c < ' ':
			n += 5
		}
	}
	return n
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\t':
		return append(dst, '\\', 't')
	case '\n':
		return append(dst, '\\', 'n')
	case '\f':
		return append(dst, '\\', 'f')
	case '\r':
		return append(dst, '\\', 'r')
	default:
		const hex = "0123456789abcdef"
		return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
	}
}
