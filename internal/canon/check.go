package canon

import "unicode/utf8"

// IsCanonical reports whether a text certainly is the canonical form of a
// document. It checks in one pass without allocation. It returns false for the
// difficult cases: exponents and fractions, escapes in names, control
// characters, more than sixteen levels.
func IsCanonical(text []byte) bool {
	c := checker{src: text, depth: 16}
	return c.value() && c.pos == len(text)
}

type checker struct {
	src   []byte
	pos   int
	depth int
}

// take skips a byte if it is the next one.
func (c *checker) take(b byte) bool {
	if c.pos < len(c.src) && c.src[c.pos] == b {
		c.pos++
		return true
	}
	return false
}

func (c *checker) word(word string) bool {
	if len(c.src)-c.pos < len(word) || string(c.src[c.pos:c.pos+len(word)]) != word {
		return false
	}
	c.pos += len(word)
	return true
}

func (c *checker) value() bool {
	if c.pos == len(c.src) {
		return false
	}
	switch c.src[c.pos] {
	case '{':
		return c.object()
	case '[':
		return c.array()
	case '"':
		_, _, ok := c.text()
		return ok
	case 't':
		return c.word("true")
	case 'f':
		return c.word("false")
	case 'n':
		return c.word("null")
	default:
		return c.number()
	}
}

// number accepts integers of up to 18 digits. The caller checks the next byte:
// neither '.' nor 'e' is valid there.
func (c *checker) number() bool {
	negative := c.take('-')
	start := c.pos
	for c.pos < len(c.src) && isDigit(c.src[c.pos]) {
		c.pos++
	}
	n := c.pos - start
	if n == 0 || n > 18 {
		return false
	}
	return c.src[start] != '0' || n == 1 && !negative
}

// text returns the bytes between the quotes. plain is true if they contain no
// escape.
func (c *checker) text() (inside []byte, plain, ok bool) {
	if !c.take('"') {
		return nil, false, false
	}
	start, ascii := c.pos, true
	plain = true
	c.pos += plainPrefix(c.src[c.pos:])
	for ; c.pos < len(c.src); c.pos++ {
		switch b := c.src[c.pos]; {
		case b == '"':
			inside = c.src[start:c.pos]
			c.pos++
			return inside, plain, ascii || utf8.Valid(inside)
		case b == '\\':
			plain = false
			if c.pos++; c.pos == len(c.src) || !shortEscape(c.src[c.pos]) {
				return nil, false, false
			}
		case b < ' ':
			return nil, false, false
		case b >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, false, false
}

// shortEscape reports whether \ and this byte are the canonical spelling of a
// character; \/ is not, and \u only rarely.
func shortEscape(b byte) bool { return b != '/' && unescape(b) != 0 }

func (c *checker) array() bool {
	if c.depth--; c.depth < 0 {
		return false
	}
	c.pos++
	if !c.take(']') {
		for {
			if !c.value() {
				return false
			}
			if c.take(']') {
				break
			}
			if !c.take(',') {
				return false
			}
		}
	}
	c.depth++
	return true
}

func (c *checker) object() bool {
	if c.depth--; c.depth < 0 {
		return false
	}
	c.pos++
	if !c.take('}') {
		var before []byte
		for first := true; ; first = false {
			name, plain, ok := c.text()
			if !ok || !plain || !first && compareNames(before, name) >= 0 || !c.take(':') || !c.value() {
				return false
			}
			before = name
			if c.take('}') {
				break
			}
			if !c.take(',') {
				return false
			}
		}
	}
	c.depth++
	return true
}
