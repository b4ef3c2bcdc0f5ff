package canon

import "strconv"

// The bounds of a number. They are part of the canonical form: the package comment and the vectors state them.
const (
	maxDigits   = 40  // significant digits
	maxExponent = 400 // of the first digit, either way
	maxPlain    = 39  // largest exponent of the first digit that is written without an exponent
	minPlain    = -6  // smallest one
)

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// digits skips digits and returns them.
func (p *parser) digits() string {
	start := p.pos
	for p.pos < len(p.src) && isDigit(p.src[p.pos]) {
		p.pos++
	}
	return p.src[start:p.pos]
}

// number reads a number that begins at the position.
func (p *parser) number() (Value, *parseFault) {
	start := p.pos
	var d decimal
	if p.src[p.pos] == '-' {
		d.negative = true
		p.pos++
	}
	d.whole = p.digits()
	if d.whole == "" {
		return Value{}, p.fault("want a digit after the minus sign")
	}
	if len(d.whole) > 1 && d.whole[0] == '0' {
		p.pos = start
		return Value{}, p.fault("a number with a leading zero, want none")
	}
	if c := p.next(); c != '.' && c != 'e' && c != 'E' && len(d.whole) <= maxDigits && (!d.negative || d.whole != "0") {
		return Value{kind: Number, text: p.src[start:p.pos]}, nil
	}
	if f := p.tail(&d); f != nil {
		return Value{}, f
	}
	return p.canonicalNumber(start, d)
}

// tail reads the fraction and the exponent.
func (p *parser) tail(d *decimal) *parseFault {
	if p.next() == '.' {
		p.pos++
		if d.fraction = p.digits(); d.fraction == "" {
			return p.fault("want a digit after the decimal point")
		}
	}
	if c := p.next(); c != 'e' && c != 'E' {
		return nil
	}
	p.pos++
	sign := p.next()
	if sign == '+' || sign == '-' {
		p.pos++
	}
	text := p.digits()
	if text == "" {
		return p.fault("want a digit in the exponent")
	}
	d.exponent = exponent(text)
	if sign == '-' {
		d.exponent = -d.exponent
	}
	return nil
}

// exponent reads digits up to a number that no digits of a document can bring
// back within the bounds.
func exponent(digits string) int64 {
	var n int64
	for _, c := range []byte(digits) {
		n = min(n*10+int64(c-'0'), 1<<50)
	}
	return n
}

func (p *parser) canonicalNumber(start int, d decimal) (Value, *parseFault) {
	var buf [64]byte
	significant, first := d.significant(buf[:0])
	text := "0"
	switch {
	case len(significant) == 0:
	case len(significant) > maxDigits:
		p.pos = start
		return Value{}, p.fault("a number of more than 40 significant digits")
	case first > maxExponent || first < -maxExponent:
		p.pos = start
		return Value{}, p.fault("a number whose exponent is beyond 400")
	default:
		p.scratch = appendDecimal(p.scratch[:0], d.negative, significant, int(first))
		if text = p.src[start:p.pos]; text != string(p.scratch) {
			text = string(p.scratch)
		}
	}
	if p.spare -= max(0, len(text)-(p.pos-start)); p.spare < 0 {
		p.pos = start
		return Value{}, p.fault(overBytes(p.limits.Bytes) + " once its numbers are written out")
	}
	return Value{kind: Number, text: text}, nil
}

// decimal is a number as it was spelled: whole.fraction times ten to the
// exponent.
type decimal struct {
	negative        bool
	whole, fraction string
	exponent        int64
}

// significant appends the digits to buf. It returns those between leading and
// trailing zeros, none for zero, and the exponent of the first one.
func (d decimal) significant(buf []byte) (digits []byte, first int64) {
	digits = append(append(buf, d.whole...), d.fraction...)
	lead := 0
	for lead < len(digits) && digits[lead] == '0' {
		lead++
	}
	end := len(digits)
	for end > lead && digits[end-1] == '0' {
		end--
	}
	return digits[lead:end], int64(len(d.whole)-1-lead) + d.exponent
}

// appendDecimal writes a number other than zero from its significant digits and the exponent of the first.
func appendDecimal(dst []byte, negative bool, digits []byte, first int) []byte {
	if negative {
		dst = append(dst, '-')
	}
	switch {
	case first > maxPlain || first < minPlain:
		return appendScientific(dst, digits, first)
	case first < 0:
		dst = append(dst, '0', '.')
		dst = appendZeros(dst, -first-1)
		return append(dst, digits...)
	case first < len(digits)-1:
		dst = append(dst, digits[:first+1]...)
		dst = append(dst, '.')
		return append(dst, digits[first+1:]...)
	default:
		dst = append(dst, digits...)
		return appendZeros(dst, first+1-len(digits))
	}
}

func appendScientific(dst, digits []byte, first int) []byte {
	dst = append(dst, digits[0])
	if len(digits) > 1 {
		dst = append(dst, '.')
		dst = append(dst, digits[1:]...)
	}
	dst = append(dst, 'e')
	if first > 0 {
		dst = append(dst, '+')
	}
	return strconv.AppendInt(dst, int64(first), 10)
}

func appendZeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}
