package perm

import (
	"errors"
	"fmt"
	"strings"
)

// A segment of a pattern is matched as its glob: its bytes with a NUL for each
// star and parameter. No name contains a NUL, so a glob needs no escapes.
// Another glob can also match the glob of a pattern (see covers).
const (
	star = "\x00"
	deep = "\x00\x00" // a whole ** segment; other globs merge adjacent stars
)

type partOp uint8

const (
	opWord  partOp = iota // literal bytes
	opStar                // *
	opDeep                // **
	opParam               // {name}
)

type part struct {
	op   partOp
	text string // the bytes of a word, or the name of a parameter
}

type segment struct {
	parts []part
	glob  string
}

// newSegment joins adjacent words and builds the glob.
func newSegment(parts []part) segment {
	if len(parts) == 1 && parts[0].op == opWord {
		return segment{parts: parts, glob: parts[0].text}
	}
	var s segment
	var glob strings.Builder
	for _, p := range parts {
		last := len(s.parts) - 1
		switch {
		case p.op == opDeep:
			return segment{parts: []part{p}, glob: deep}
		case p.op == opWord && last >= 0 && s.parts[last].op == opWord:
			s.parts[last].text += p.text
		default:
			s.parts = append(s.parts, p)
		}
		if p.op == opWord {
			glob.WriteString(p.text)
		} else if last < 0 || s.parts[last].op == opWord {
			glob.WriteString(star)
		}
	}
	s.glob = glob.String()
	return s
}

// word returns the segment of literal bytes.
func word(text string) segment {
	if text == "" {
		return segment{}
	}
	return segment{parts: []part{{op: opWord, text: text}}, glob: text}
}

func (s segment) literal() bool {
	return len(s.parts) == 0 || len(s.parts) == 1 && s.parts[0].op == opWord
}

// many reports whether s is **. The method one reports whether s matches
// exactly one segment.
func (s segment) many() bool { return s.glob == deep }
func (s segment) one() bool  { return s.glob != deep }

// bothDeep reports whether s and o are adjacent ** segments, which are equal to
// one. A parameter that matches a path is not **.
func (s segment) bothDeep(o segment) bool {
	return s.many() && o.many() && s.parts[0].op == opDeep && o.parts[0].op == opDeep
}

// check returns an error if s cannot be a segment of a path.
func (s segment) check() error {
	for _, p := range s.parts {
		switch {
		case p.op != opWord:
		case strings.Contains(p.text, "\x00"):
			return errNUL()
		case strings.Contains(p.text, "/"):
			return errors.New("has a slash: one segment is one name")
		}
	}
	switch {
	case len(s.parts) == 0:
		return errors.New("is empty: a path is names joined by single slashes")
	case s.literal() && (s.glob == "." || s.glob == ".."):
		return errors.New(`is "." or "..": a path is names only`)
	}
	return nil
}

// bind replaces the parameters of one segment.
func (s segment) bind(get func(string) (string, bool)) (segment, error) {
	parts := make([]part, len(s.parts))
	for i, p := range s.parts {
		if p.op == opParam {
			value, err := argument(get, p.text)
			if err == nil {
				err = at("argument "+p.text, checkArgument(value))
			}
			if err != nil {
				return segment{}, err
			}
			p = part{op: opWord, text: value}
		}
		parts[i] = p
	}
	return newSegment(parts), nil
}

func checkArgument(value string) error {
	switch {
	case value == "":
		return errors.New("is empty: valid is one name")
	case strings.Contains(value, "\x00"):
		return errNUL()
	case strings.Contains(value, "/"):
		return errors.New("has a slash: valid is one name, not a path")
	}
	return nil
}

func (s segment) render(b *strings.Builder) {
	for _, p := range s.parts {
		switch p.op {
		case opWord:
			escape(b, p.text)
		case opStar:
			b.WriteByte('*')
		case opDeep:
			b.WriteString("**")
		case opParam:
			fmt.Fprintf(b, "{%s}", p.text)
		}
	}
}
