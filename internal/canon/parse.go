package canon

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// Limits bound the cost of reading a document. A limit of zero is a limit, not
// the lack of one.
type Limits struct {
	// Bytes is the maximum size of the document, and of its canonical form, in
	// bytes.
	Bytes int
	// Depth is the maximum nesting of arrays and objects: a scalar has depth 0,
	// [] has 1. Values above 10,000 mean 10,000, because each level uses stack.
	Depth int
}

// DefaultLimits returns 64 MiB and a depth of 128. These are the limits of a
// record, so its parts must have smaller ones.
func DefaultLimits() Limits { return Limits{Bytes: 64 << 20, Depth: 128} }

const hardestDepth = 10_000

// Parse reads exactly one JSON value and rejects every ambiguous document; see
// the package comment. Errors wrap [ErrInvalid]. The Value shares no memory
// with data.
func Parse(data []byte, l Limits) (Value, error) {
	if len(data) > l.Bytes {
		return Value{}, (&parseFault{offset: -1, text: overBytes(l.Bytes)}).err()
	}
	p := parser{src: string(data), depth: min(l.Depth, hardestDepth), limits: l, spare: l.Bytes - len(data)}
	v, f := p.document()
	if f != nil {
		return Value{}, f.err()
	}
	return v, nil
}

// Deeper reports whether a canonical document nests more than levels arrays and
// objects.
func Deeper(canonical []byte, levels int) bool {
	depth, text := 0, false
	for i := 0; i < len(canonical); i++ {
		switch c := canonical[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '[' || c == '{':
			if depth++; depth > levels {
				return true
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return false
}

// Member returns the value of a member of a canonical object, or nil. It shares
// the memory of the object. The name must be one that is written without
// escapes.
func Member(canonical []byte, name string) []byte {
	for at := 1; at < len(canonical) && canonical[at] == '"'; at++ {
		colon := valueEnd(canonical, at)
		end := valueEnd(canonical, colon+1)
		if string(canonical[at+1:colon-1]) == name {
			return canonical[colon+1 : end : end]
		}
		at = end
	}
	return nil
}

// valueEnd returns the end of the value that begins at a place of a canonical
// document.
func valueEnd(canonical []byte, at int) int {
	for depth := 0; at < len(canonical); at++ {
		switch c := canonical[at]; {
		case c == '"':
			at = textEnd(canonical, at)
		case c == '[' || c == '{':
			depth++
		case depth == 0 && (c == ',' || c == ':' || c == '}' || c == ']'):
			return at
		case c == ']' || c == '}':
			depth--
		}
	}
	return at
}

// textEnd returns the place of the quote that ends the text at a place.
func textEnd(canonical []byte, at int) int {
	for {
		next := bytes.IndexByte(canonical[at+1:], '"')
		if next < 0 {
			return len(canonical)
		}
		at += 1 + next
		before := canonical[:at]
		if (len(before)-len(bytes.TrimRight(before, `\`)))%2 == 0 {
			return at
		}
	}
}

// Canonicalize returns the canonical form of a document: Parse, then [Value.Canonical].
func Canonicalize(data []byte, l Limits) ([]byte, error) {
	v, err := Parse(data, l)
	if err != nil {
		return nil, err
	}
	return v.Canonical(), nil
}

func overBytes(limit int) string {
	return "the document is larger than the limit of " + strconv.Itoa(limit) + " bytes"
}

// parser reads one document in one pass. Strings and numbers are slices of src
// if their spelling allows it.
type parser struct {
	src    string
	pos    int
	depth  int // how many more containers may open
	limits Limits
	// spare is how many bytes canonical numbers may still grow beyond their
	// spelling: 1e39 has four bytes and takes forty.
	spare int
	// members and elements are stacks shared by all open containers; each copies its part out when it closes.
	members  []member
	elements []Value
	scratch  []byte
}

func (p *parser) fault(text string) *parseFault { return &parseFault{offset: p.pos, text: text} }

const wantValue = "want a JSON value: an object, an array, a string in double quotes, a number, true, false or null"

func (p *parser) document() (Value, *parseFault) {
	if strings.HasPrefix(p.src, "\ufeff") {
		return Value{}, p.fault("a byte order mark; the document starts with its value")
	}
	p.space()
	if p.pos == len(p.src) {
		return Value{}, p.fault("nothing here, want one JSON value")
	}
	v, f := p.value()
	if f != nil {
		return Value{}, f
	}
	p.space()
	if p.pos < len(p.src) {
		return Value{}, p.fault("something after the value, want exactly one JSON value")
	}
	return v, nil
}

func (p *parser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\n', '\t', '\r':
			p.pos++
		default:
			return
		}
	}
}

// next returns the byte at the position, or 0 at the end. A zero byte is valid
// nowhere, so the two need no distinction.
func (p *parser) next() byte {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

func (p *parser) value() (Value, *parseFault) {
	switch c := p.next(); c {
	case '{', '[':
		return p.container(c)
	case '"':
		s, f := p.string()
		return Value{kind: String, text: s}, f
	case 't':
		return p.literal("true", Bool)
	case 'f':
		return p.literal("false", Bool)
	case 'n':
		return p.literal("null", Null)
	default:
		if c == '-' || isDigit(c) {
			return p.number()
		}
		return Value{}, p.fault(wantValue)
	}
}

func (p *parser) literal(word string, kind Kind) (Value, *parseFault) {
	if !strings.HasPrefix(p.src[p.pos:], word) {
		return Value{}, p.fault(wantValue)
	}
	p.pos += len(word)
	return Value{kind: kind, text: word}, nil
}

// container counts and reads an array or an object.
func (p *parser) container(bracket byte) (v Value, f *parseFault) {
	if p.depth <= 0 {
		return Value{}, p.fault("nested deeper than the limit of " + strconv.Itoa(min(p.limits.Depth, hardestDepth)))
	}
	p.depth--
	p.pos++
	p.space()
	if bracket == '{' {
		v, f = p.object()
	} else {
		v, f = p.array()
	}
	p.depth++
	return v, f
}

func (p *parser) array() (Value, *parseFault) {
	if p.next() == ']' {
		p.pos++
		return Value{kind: Array}, nil
	}
	if p.elements == nil {
		p.elements = make([]Value, 0, 8)
	}
	base := len(p.elements)
	for {
		v, f := p.value()
		if f != nil {
			return Value{}, f.in(strconv.Itoa(len(p.elements) - base))
		}
		p.elements = append(p.elements, v)
		p.space()
		switch p.next() {
		case ',':
			p.pos++
			p.space()
		case ']':
			p.pos++
			elements := make([]Value, len(p.elements)-base)
			copy(elements, p.elements[base:])
			p.elements = p.elements[:base]
			return Value{kind: Array, node: &node{elements: elements}}, nil
		default:
			return Value{}, p.fault("want ',' or ']' after an element")
		}
	}
}

func (p *parser) object() (Value, *parseFault) {
	if p.next() == '}' {
		p.pos++
		return Value{kind: Object}, nil
	}
	if p.members == nil {
		p.members = make([]member, 0, 8)
	}
	base := len(p.members)
	for {
		m, f := p.member()
		if f != nil {
			return Value{}, f
		}
		p.members = append(p.members, m)
		p.space()
		switch p.next() {
		case ',':
			p.pos++
			p.space()
		case '}':
			p.pos++
			members, f := ordered(p.take(base))
			return Value{kind: Object, node: &node{members: members}}, f
		default:
			return Value{}, p.fault("want ',' or '}' after a member")
		}
	}
}

func (p *parser) member() (member, *parseFault) {
	if p.next() != '"' {
		return member{}, p.fault("want a member name in double quotes")
	}
	name, f := p.string()
	if f != nil {
		f.text = "in a member name: " + f.text
		return member{}, f
	}
	p.space()
	if p.next() != ':' {
		return member{}, p.fault("want ':' after a member name").in(name)
	}
	p.pos++
	p.space()
	v, f := p.value()
	if f != nil {
		return member{}, f.in(name)
	}
	return member{name: name, value: v}, nil
}

// take removes the members from base on. The outermost object gets the stack
// itself, if that is not much too large; nothing else needs it.
func (p *parser) take(base int) []member {
	if stack := p.members; base == 0 && 2*len(stack) >= cap(stack) {
		p.members = nil
		return stack
	}
	members := slices.Clone(p.members[base:])
	p.members = p.members[:base]
	return members
}

// ordered sorts the members into canonical order. It returns the fault of a
// name that occurs twice.
func ordered(members []member) ([]member, *parseFault) {
	byName := func(a, b member) int { return compareNames(a.name, b.name) }
	if !slices.IsSortedFunc(members, byName) {
		slices.SortFunc(members, byName)
	}
	for i := 1; i < len(members); i++ {
		if members[i].name == members[i-1].name {
			f := &parseFault{offset: -1, text: "this member name occurs more than once, want each name once"}
			return nil, f.in(members[i].name)
		}
	}
	return members, nil
}
