package canon

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// string reads a string whose opening quote is at the position. Without escapes
// the result is a slice of the document.
func (p *parser) string() (string, *parseFault) {
	p.pos++
	start := p.pos
	ascii := true
	for ; p.pos < len(p.src); p.pos++ {
		switch c := p.src[p.pos]; {
		case c == '"':
			s := p.src[start:p.pos]
			if !ascii && !utf8.ValidString(s) {
				return "", p.notUTF8(start)
			}
			p.pos++
			return s, nil
		case c == '\\':
			return p.escaped(start)
		case c < ' ':
			return "", p.fault(rawControl)
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", p.fault(openString)
}

const (
	openString    = "a string with no closing quote"
	rawControl    = `a control character in a string, want its escape, such as \n or \u0000`
	halfSurrogate = "half of a surrogate pair, want both halves, high then low"
	badEscape     = `an unknown escape, want one of \" \\ \/ \b \f \n \r \t or \u and four hex digits`
	badHex        = `\u without four hex digits`
)

func (p *parser) notUTF8(start int) *parseFault {
	for p.pos = start; p.pos < len(p.src); {
		r, size := utf8.DecodeRuneInString(p.src[p.pos:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		p.pos += size
	}
	return p.fault("bytes that are not UTF-8")
}

// escaped reads the rest of a string from its first escape on; the text before
// it starts at start.
func (p *parser) escaped(start int) (string, *parseFault) {
	buf := append(p.scratch[:0], p.src[start:p.pos]...)
	for p.pos < len(p.src) {
		switch c := p.src[p.pos]; {
		case c == '"':
			if !utf8.Valid(buf) {
				return "", p.notUTF8(start)
			}
			p.pos++
			p.scratch = buf
			return string(buf), nil
		case c == '\\':
			var f *parseFault
			if buf, f = p.escape(buf); f != nil {
				return "", f
			}
		case c < ' ':
			return "", p.fault(rawControl)
		default:
			buf = append(buf, c)
			p.pos++
		}
	}
	return "", p.fault(openString)
}

// escape appends the character of one escape whose backslash is at the
// position.
func (p *parser) escape(buf []byte) ([]byte, *parseFault) {
	if p.pos+1 >= len(p.src) {
		p.pos++
		return nil, p.fault(openString)
	}
	c := p.src[p.pos+1]
	if c == 'u' {
		return p.unicode(buf)
	}
	plain := unescape(c)
	if plain == 0 {
		return nil, p.fault(badEscape)
	}
	p.pos += 2
	return append(buf, plain), nil
}

func unescape(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	default:
		return 0
	}
}

// unicode appends the character of one \u escape, or of two that are a
// surrogate pair.
func (p *parser) unicode(buf []byte) ([]byte, *parseFault) {
	r, ok := hex4(p.src, p.pos)
	if !ok {
		return nil, p.fault(badHex)
	}
	size := 6
	if utf16.IsSurrogate(r) {
		low, _ := hex4(p.src, p.pos+size)
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return nil, p.fault(halfSurrogate)
		}
		size = 12
	}
	p.pos += size
	return utf8.AppendRune(buf, r), nil
}

// hex4 reads \uXXXX at a position of s.
func hex4(s string, at int) (rune, bool) {
	if len(s)-at < 6 || s[at] != '\\' || s[at+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range []byte(s[at+2 : at+6]) {
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// compareNames orders by UTF-16 code units. For UTF-8 that is byte order, except that characters past U+FFFF, which start
// with a surrogate in UTF-16, come before U+E000 to U+FFFF.
func compareNames[T string | []byte](a, b T) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return int(lift(a[i])) - int(lift(b[i]))
		}
	}
	return len(a) - len(b)
}

// lift moves the lead bytes of U+E000 to U+FFFF above all others. Other
// positions of a character never hold them. 0xEE starts U+E000 to U+EFFF, 0xEF
// U+F000 to U+FFFF.
func lift(c byte) byte {
	if c == 0xEE || c == 0xEF {
		return c + 0x10
	}
	return c
}

// Printable replaces the bytes of a text that are not UTF-8 with %XX, as in
// resource texts, and cuts the text after most bytes. Texts for people may come
// from any source: the name of a file, the error of a tool.
func Printable(text string, most int) string {
	if len(text) > most {
		text = shortened(text, most) + "…"
	}
	if utf8.ValidString(text) {
		return text
	}
	out := make([]byte, 0, len(text)+8)
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && n == 1 {
			out = fmt.Appendf(out, "%%%02X", text[0])
		} else {
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return string(out)
}

// shortened cuts a text between two characters.
func shortened(text string, most int) string {
	for end := most; end > 0 && end > most-utf8.UTFMax; end-- {
		if utf8.RuneStart(text[end]) {
			return text[:end]
		}
	}
	return text[:most]
}
