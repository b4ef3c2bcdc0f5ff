package gitguard

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

var errSyntax = errors.New("the configuration does not follow the grammar of git")

// parse parses a git configuration file. It returns the values of each key, in
// order. A key is "section.subsection.name" or "section.name", as git compares
// it: section and name in lower case, the subsection unchanged.
func parse(text string) (map[string][]string, error) {
	s := scanner{text: strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")}
	out, section := map[string][]string{}, ""
	for {
		s.space()
		c := s.peek()
		switch {
		case c == 0 && s.at >= len(s.text):
			return out, nil
		case c == '\n':
			s.at++
		case c == '#' || c == ';':
			s.rest()
		case c == '[':
			name, ok := s.section()
			if !ok {
				return nil, errSyntax
			}
			section = name
		default:
			name, value, ok := s.variable()
			if !ok || section == "" {
				return nil, errSyntax
			}
			key := section + "." + name
			out[key] = append(out[key], value)
		}
	}
}

type scanner struct {
	text string
	at   int
}

// peek returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *scanner) space() {
	for c := s.peek(); c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; c = s.peek() {
		s.at++
	}
}

// rest skips the rest of the line.
func (s *scanner) rest() {
	if end := strings.IndexByte(s.text[s.at:], '\n'); end >= 0 {
		s.at += end
		return
	}
	s.at = len(s.text)
}

func (s *scanner) word(extra string) string {
	from := s.at
	for s.at < len(s.text) && (isWord(s.text[s.at]) || strings.IndexByte(extra, s.text[s.at]) >= 0) {
		s.at++
	}
	return strings.ToLower(s.text[from:s.at])
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-'
}

// section parses [section], [section.subsection] and [section "subsection"].
func (s *scanner) section() (string, bool) {
	s.at++
	name := s.word(".")
	s.space()
	if s.peek() == '"' {
		sub, ok := s.subsection()
		if !ok {
			return "", false
		}
		name += "." + sub
	}
	ok := s.peek() == ']' && name != ""
	s.at++
	return name, ok
}

func (s *scanner) subsection() (string, bool) {
	var b strings.Builder
	for s.at++; s.at < len(s.text); s.at++ {
		c := s.text[s.at]
		if c == '\\' && s.at+1 < len(s.text) {
			s.at++
			c = s.text[s.at]
		} else if c == '"' {
			s.at++
			return b.String(), true
		}
		if c == '\n' {
			return "", false
		}
		b.WriteByte(c)
	}
	return "", false
}

// variable parses "name = value", or "name", which means true.
func (s *scanner) variable() (name, value string, ok bool) {
	if name = s.word(""); name == "" || name[0] < 'a' || name[0] > 'z' {
		return "", "", false
	}
	s.space()
	switch s.peek() {
	case '=':
		s.at++
		s.space()
		value, ok = s.value()
		return name, value, ok
	case '\n', '#', ';':
		return name, "true", true
	}
	return name, "true", s.at >= len(s.text)
}

var escapes = map[byte]byte{'n': '\n', 't': '\t', 'b': '\b', '"': '"', '\\': '\\'}

func (s *scanner) value() (string, bool) {
	var b strings.Builder
	quoted, trim := false, 0 // trim is the length without trailing spaces
	for ; s.at < len(s.text); s.at++ {
		c := s.text[s.at]
		switch {
		case c == '\n':
			return b.String()[:trim], !quoted
		case c == '"':
			quoted = !quoted
			trim = b.Len()
			continue
		case !quoted && (c == '#' || c == ';'):
			s.rest()
			return b.String()[:trim], true
		case c == '\\':
			s.at++
			next := s.peek()
			if next == '\n' {
				continue
			}
			plain, ok := escapes[next]
			if !ok {
				return "", false
			}
			b.WriteByte(plain)
		default:
			b.WriteByte(c)
		}
		if quoted || c != ' ' && c != '\t' {
			trim = b.Len()
		}
	}
	return b.String()[:trim], !quoted
}

// unreadable is the key of a configuration with unknown content.
const unreadable = "?"

// keys returns the keys whose values differ between two texts of a
// configuration in a git folder, without their subsections: "branch.*.merge".
// Git itself writes a core.worktree inside the root, and the name of a branch's
// remote. For other values of these two, keys returns the full key.
func keys(before, after string, within func(values []string) bool) []string {
	was, err := parse(before)
	is, err2 := parse(after)
	if err != nil || err2 != nil {
		return []string{unreadable}
	}
	out := map[string]bool{}
	for key := range is {
		was[key] = append(was[key], "\x00") // makes the two lists of values differ by exactly this
	}
	for key, values := range was {
		if slices.Equal(values, append(slices.Clone(is[key]), "\x00")) {
			continue
		}
		section, rest, _ := strings.Cut(key, ".")
		short := key
		if i := strings.LastIndexByte(rest, '.'); i >= 0 {
			short = section + ".*" + rest[i:]
		}
		switch {
		case short == "core.worktree" && within(is[key]):
			continue
		case short == "branch.*.remote" && slices.ContainsFunc(is[key], isPlace):
			short += "=url"
		}
		out[short] = true
	}
	return slices.Sorted(maps.Keys(out))
}

// isPlace reports whether the remote of a branch is a URL or a path.
func isPlace(value string) bool { return strings.ContainsAny(value, ":/\\") }
