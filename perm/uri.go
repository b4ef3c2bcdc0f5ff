package perm

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxText bounds a text before and after it is made canonical, and so the work
// of every match.
const maxText = 8 << 10

// parse parses the text of a pattern or, with wild false, of a resource. Both
// share one grammar, so that a text has only one meaning.
func parse(text string, wild bool) (Pattern, error) {
	if len(text) > maxText {
		return Pattern{}, errors.New("the text is too long: at most 8 KiB are valid")
	}
	if !utf8.ValidString(text) {
		return Pattern{}, errors.New("the text is not UTF-8: write other bytes percent-encoded")
	}
	scheme, rest, found := strings.Cut(text, "://")
	kind := Kind(scheme)
	if !found || !kind.valid() {
		return Pattern{}, fmt.Errorf("no known kind before ://; valid kinds are %v", kinds())
	}
	if strings.Contains(rest, "#") {
		return Pattern{}, errors.New("a fragment (#) is not valid; a # in a name is written %23")
	}
	p := Pattern{kind: kind}
	rest, err := p.parseQuery(rest)
	if err != nil {
		return Pattern{}, err
	}
	authority, tail, slash := strings.Cut(rest, "/")
	if err := p.parseAuthority(authority, wild); err != nil {
		return Pattern{}, err
	}
	if slash {
		if err := p.parsePath(tail, wild); err != nil {
			return Pattern{}, err
		}
	}
	return p.seal()
}

// parseQuery removes the statement from the text of a table.
func (p *Pattern) parseQuery(rest string) (string, error) {
	rest, query, found := strings.Cut(rest, "?")
	if !found {
		return rest, nil
	}
	if p.kind != KindDB {
		return "", errors.New("a query (?) is not valid; permission is about the path, and a ? in a name is written %3F")
	}
	statement, found := strings.CutPrefix(query, "statement=")
	if !found || !statementName(statement) {
		return "", errStatement()
	}
	p.statement = statement
	return rest, nil
}

func (p *Pattern) parseAuthority(text string, wild bool) (err error) {
	switch {
	case p.kind.url():
		p.authority, p.port, err = parseHostPort(p.kind, text, wild)
	case p.kind == KindExec && text == "": // an absolute path follows
		p.authority = word("")
	case p.kind == KindExec:
		p.authority, err = parseSegment(text, wild)
		err = at("the program", err)
	case wild && strings.ContainsAny(text, "*{}"):
		p.authority, err = parseSegment(text, wild)
		err = at("the name", err)
	default: // a name holds no encoded bytes; seal checks it
		p.authority = word(text)
	}
	return err
}

func (p *Pattern) parsePath(text string, wild bool) error {
	if p.kind == KindSecret || p.kind == KindTool {
		return fmt.Errorf("the kind %s has no path", p.kind)
	}
	if text == "" && (p.kind == KindFile || p.kind.url() || p.kind == KindExec && p.authority.glob == "") {
		return nil
	}
	names := strings.Split(text, "/")
	if last := len(names) - 1; p.kind.url() && last > 0 && names[last] == "" {
		names = names[:last]
	}
	for i, name := range names {
		s, err := parseSegment(name, wild)
		if err != nil {
			return at(fmt.Sprintf("segment %d", i+1), err)
		}
		p.path = append(p.path, s)
	}
	return nil
}

// parseSegment decodes one segment into its parts.
func parseSegment(text string, wild bool) (segment, error) {
	if wild && text == "**" {
		return segment{parts: []part{{op: opDeep}}, glob: deep}, nil
	}
	var parts []part
	var plain []byte
	for len(text) > 0 {
		op, value, n, err := parsePart(text, wild)
		if err != nil {
			return segment{}, err
		}
		text = text[n:]
		if op == opWord {
			plain = append(plain, value...)
			continue
		}
		parts = appendWord(parts, plain)
		plain = plain[:0]
		if last := len(parts) - 1; op == opStar && last >= 0 && parts[last].op == opStar {
			return segment{}, errors.New("has two stars in a row: ** is valid as a whole segment of a path only")
		}
		parts = append(parts, part{op: op, text: value})
	}
	return newSegment(appendWord(parts, plain)), nil
}

func appendWord(parts []part, plain []byte) []part {
	if len(plain) == 0 {
		return parts
	}
	return append(parts, part{op: opWord, text: string(plain)})
}

// parsePart parses one byte, star or parameter and returns its length.
func parsePart(text string, wild bool) (op partOp, value string, n int, err error) {
	switch c := text[0]; {
	case c == '%':
		b, err := parseEscape(text)
		return opWord, string([]byte{b}), 3, err
	case c == '*' && wild:
		return opStar, "", 1, nil
	case c == '*':
		return 0, "", 0, errors.New("has a star, which only patterns may have: a star in a name is written %2A")
	case c == '{' && wild:
		name, _, found := strings.Cut(text[1:], "}")
		if !found || !paramName(name) {
			return 0, "", 0, errors.New("has a bad parameter: valid is {name}, of up to 64 letters, digits and _.- from a letter or _ on")
		}
		return opParam, name, len(name) + 2, nil
	case c == '{' || c == '}':
		return 0, "", 0, errors.New("has a brace: in a name { and } are written %7B and %7D")
	case plainByte(c) || c >= utf8.RuneSelf:
		return opWord, text[:1], 1, nil
	default:
		return 0, "", 0, fmt.Errorf("has the byte %%%02X plain, which must be percent-encoded", c)
	}
}

func parseEscape(text string) (byte, error) {
	if len(text) < 3 || unhex(text[1]) < 0 || unhex(text[2]) < 0 {
		return 0, errors.New("has a % without two hexadecimal digits: a % in a name is written %25")
	}
	b := byte(unhex(text[1])<<4 | unhex(text[2]))
	switch {
	case b == 0:
		return 0, errNUL()
	case b == '/':
		return 0, errors.New("has an encoded slash (%2F), which no name holds: a slash ends a segment")
	case unreserved(b):
		return 0, fmt.Errorf("has %s encoded, which must be written plainly as %c", text[:3], b)
	default:
		return b, nil
	}
}

// render returns the canonical text of p.
func (p Pattern) render() string {
	var b strings.Builder
	b.Grow(64) // most texts are shorter
	b.WriteString(string(p.kind) + "://")
	if p.kind.url() && p.authority.literal() && strings.Contains(p.authority.glob, ":") {
		b.WriteString("[" + p.authority.glob + "]")
	} else {
		p.authority.render(&b)
	}
	switch {
	case !p.kind.url() || p.port == defaultPort(p.kind):
	case p.port == 0:
		b.WriteString(":*")
	default:
		fmt.Fprintf(&b, ":%d", p.port)
	}
	for _, s := range p.path {
		b.WriteByte('/')
		s.render(&b)
	}
	if p.statement != "" {
		b.WriteString("?statement=" + p.statement)
	}
	return b.String()
}

func escape(b *strings.Builder, s string) {
	const digits = "0123456789ABCDEF"
	start := 0 // start of the plain bytes before this one
	for i := range len(s) {
		if c := s[i]; !plainByte(c) {
			b.WriteString(s[start:i])
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
			start = i + 1
		}
	}
	b.WriteString(s[start:])
}

// relative splits a clean relative path. It returns ErrOutside for every path
// that is absolute or, segment by segment, climbs above its start, clean or
// not.
func relative(path string) ([]string, error) {
	if path == "" || path == "." {
		return nil, nil
	}
	if path[0] == '/' {
		return nil, fmt.Errorf("%w: valid is a path relative to the root", ErrOutside)
	}
	segments, depth, clean := strings.Split(path, "/"), 0, true
	for _, s := range segments {
		switch s {
		case "..":
			depth, clean = depth-1, false
		case "", ".":
			clean = false
		default:
			depth++
		}
		if depth < 0 {
			return nil, fmt.Errorf("%w: valid is a path below the root", ErrOutside)
		}
	}
	if !clean {
		return nil, errors.New(`the path is not clean: valid are names joined by single slashes, without "." and ".."`)
	}
	return segments, nil
}

// at adds the position to an error.
func at(where string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %w", where, err)
}

func errNUL() error { return errors.New("has a NUL byte, which no name holds") }

func errStatement() error {
	return errors.New("only ?statement= with a kind of statement such as select, insert or create_table is valid after a database or table")
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	default:
		return -1
	}
}
