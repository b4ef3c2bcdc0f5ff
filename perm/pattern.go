package perm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/mo"
)

// Pattern matches resources. It is immutable. The zero Pattern matches nothing.
// Its text is that of a resource, with these additions:
//
//   - * inside a segment of a path or in a name matches any bytes of it, also
//     none. A segment is never empty.
//   - ** as a whole segment of a path matches any number of segments, also
//     none. file://ws/** is the root ws and everything in it.
//   - * as a host matches any host. *.example.com matches every host below
//     example.com but not example.com itself. * as a port matches any port;
//     without a port, the default port matches.
//   - {name} is a parameter: Bind replaces it with the argument of that name.
//     It is one segment or a part of it, a whole host, or a name. As the whole
//     last segment of a file's path it is a path of any length. The argument is
//     literal: a star in an argument is a star in a file's name. An unbound
//     parameter matches what it can be bound to: ** at the end of a file's
//     path, else *.
//   - a table without a statement matches the table with any statement, and
//     without.
//
// A literal star is written %2A, literal braces %7B and %7D.
type Pattern struct {
	text      string
	kind      Kind
	authority segment
	path      []segment
	statement string
	port      uint16 // 0 in a URL: any port
}

// ParsePattern parses the text of a pattern. The text of every resource is also
// the text of a pattern.
func ParsePattern(text string) (Pattern, error) {
	p, err := parse(text, true)
	if err != nil {
		return Pattern{}, fmt.Errorf("not a valid pattern: %w", err)
	}
	return p, nil
}

// String returns the canonical text, or "" for the zero Pattern.
func (p Pattern) String() string { return p.text }

// Kind returns the kind of the resources that p matches, or "" for the zero
// Pattern.
func (p Pattern) Kind() Kind { return p.kind }

// Exact returns the resource of p, if p has neither wildcards nor parameters.
func (p Pattern) Exact() mo.Option[Resource] {
	if p.kind == "" || !p.literal() {
		return mo.None[Resource]()
	}
	return mo.Some(p.resource())
}

// Params returns the names of the parameters of p, each once, in the order of
// the text.
func (p Pattern) Params() []string {
	var names []string
	for _, s := range append([]segment{p.authority}, p.path...) {
		for _, t := range s.parts {
			if t.op == opParam && !slices.Contains(names, t.text) {
				names = append(names, t.text)
			}
		}
	}
	return names
}

// Bind replaces the parameters of p, which must have no wildcards, and returns
// the resource. get returns the argument of a name, or false if there is none.
// The error wraps ErrOutside if a path leaves its root. It never repeats an
// argument.
func (p Pattern) Bind(get func(name string) (string, bool)) (Resource, error) {
	bound, err := p.BindPattern(get)
	if err != nil {
		return Resource{}, err
	}
	r, ok := bound.Exact().Get()
	if !ok {
		return Resource{}, errors.New("the pattern has wildcards and names no single resource")
	}
	return r, nil
}

// BindPattern is Bind for a pattern that can have wildcards, which remain.
func (p Pattern) BindPattern(get func(name string) (string, bool)) (Pattern, error) {
	if len(p.Params()) == 0 {
		return p, nil
	}
	var err error
	bound := p
	if bound.authority, err = p.bindAuthority(get); err != nil {
		return Pattern{}, err
	}
	bound.path = nil
	for _, s := range p.path {
		more, err := p.bindSegment(s, get)
		if err != nil {
			return Pattern{}, err
		}
		bound.path = append(bound.path, more...)
	}
	return bound.seal()
}

func (p Pattern) bindAuthority(get func(string) (string, bool)) (segment, error) {
	s, err := p.authority.bind(get)
	if err == nil && p.kind.url() && s.literal() {
		host, bad := canonicalHost(s.glob)
		return word(host), bad
	}
	return s, err
}

func (p Pattern) bindSegment(s segment, get func(string) (string, bool)) ([]segment, error) {
	if s.glob != deep || s.parts[0].op != opParam {
		one, err := s.bind(get)
		if err == nil && p.kind == KindFile && one.literal() && one.glob == ".." {
			err = fmt.Errorf("%w: valid is a path below the root", ErrOutside)
		}
		return []segment{one}, err
	}
	value, err := argument(get, s.parts[0].text)
	if err != nil {
		return nil, err
	}
	names, err := relative(value)
	if err != nil {
		return nil, at("argument "+s.parts[0].text+":", err)
	}
	path := make([]segment, len(names))
	for i, name := range names {
		path[i] = word(name)
	}
	return path, nil
}

func argument(get func(string) (string, bool), name string) (string, error) {
	value, ok := get(name)
	if !ok {
		return "", fmt.Errorf("argument %s is missing", name)
	}
	return value, nil
}

// seal checks a pattern that parse, Bind or a constructor of resources
// assembled, and sets its text. No other function completes a Pattern.
func (p Pattern) seal() (Pattern, error) {
	if !p.kind.valid() {
		return Pattern{}, fmt.Errorf("no known kind; valid kinds are %v", kinds())
	}
	if p.statement != "" && (p.kind != KindDB || !statementName(p.statement)) {
		return Pattern{}, errStatement()
	}
	p.path = slices.CompactFunc(slices.Clone(p.path), segment.bothDeep)
	if p.kind == KindDB && slices.ContainsFunc(p.path, segment.one) {
		p.path = slices.DeleteFunc(p.path, segment.many) // with a table, ** can only match nothing
	}
	p.widenLast()
	for i, s := range p.path {
		if err := s.check(); err != nil {
			return Pattern{}, at(fmt.Sprintf("segment %d", i+1), err)
		}
	}
	if err := p.checkShape(); err != nil {
		return Pattern{}, err
	}
	if p.text = p.render(); len(p.text) > maxText {
		return Pattern{}, errors.New("the canonical text is too long: at most 8 KiB are valid")
	}
	return p, nil
}

// widenLast lets a parameter match a path if it is the whole last segment of a
// file's path.
func (p *Pattern) widenLast() {
	last := len(p.path) - 1
	if p.kind == KindFile && last >= 0 && len(p.path[last].parts) == 1 && p.path[last].parts[0].op == opParam {
		p.path[last].glob = deep
	}
}

// checkShape checks the authority and the length of the path against the kind.
func (p Pattern) checkShape() error {
	if p.authority.glob == deep {
		return errors.New("** is valid as a whole segment of a path only")
	}
	switch p.kind {
	case KindHTTP, KindHTTPS: // parsed by parseHost or canonicalHost
		return nil
	case KindExec:
		if (p.authority.glob == "") != (len(p.path) > 0) {
			return errors.New("a program is exec://name or exec:///absolute/path")
		}
		if p.authority.glob == "" {
			return nil
		}
		return at("the program", p.authority.check())
	case KindDB:
		if len(p.path) > 1 { // seal removed every ** beside a table
			return errors.New("a database has at most one table after it")
		}
	case KindSecret, KindTool:
		if len(p.path) > 0 {
			return fmt.Errorf("the kind %s has no path", p.kind)
		}
	case KindFile, KindMCP:
	}
	return checkName(p.kind, p.authority)
}

// literal returns the pattern of one resource from decoded parts.
func literal(kind Kind, authority string, segments []string) (Pattern, error) {
	p := Pattern{kind: kind, authority: word(authority)}
	if kind.url() {
		var err error
		if p.authority, p.port, err = parseHostPort(kind, authority, false); err != nil {
			return Pattern{}, err
		}
	}
	for _, s := range segments {
		p.path = append(p.path, word(s))
	}
	return p.seal()
}

func (p Pattern) literal() bool {
	for _, s := range p.path {
		if !s.literal() {
			return false
		}
	}
	return p.authority.literal() && (p.port != 0 || !p.kind.url())
}

// resource returns the resource of a literal pattern.
func (p Pattern) resource() Resource {
	names := make([]string, len(p.path))
	for i, s := range p.path {
		names[i] = s.glob
	}
	return Resource{
		text: p.text, kind: p.kind, authority: p.authority.glob,
		path: strings.Join(names, "/"), statement: p.statement, port: p.port,
	}
}
