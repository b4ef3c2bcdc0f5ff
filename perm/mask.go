package perm

import (
	"fmt"
	"slices"
	"strings"
)

// Mask is what a sandboxed program does not see: the files that a pattern matches,
// except those that other patterns match. Its text is a pattern, or a pattern, the
// word except, and further patterns, with one space between each. It is immutable;
// the zero Mask matches nothing.
type Mask struct {
	of     Pattern
	except []Pattern
}

// ParseMask reads the text of a mask.
func ParseMask(text string) (Mask, error) {
	pattern, rest, some := strings.Cut(text, " except ")
	var m Mask
	var err error
	if m.of, err = ParsePattern(pattern); err != nil {
		return Mask{}, err
	}
	for some {
		pattern, rest, some = strings.Cut(rest, " ")
		p, err := ParsePattern(pattern)
		if err != nil {
			return Mask{}, fmt.Errorf("what is excepted: %w", err)
		}
		m.except = append(m.except, p)
	}
	return m, nil
}

// String returns the text of the mask, "" for the zero Mask.
func (m Mask) String() string {
	text := m.of.String()
	for i, p := range m.except {
		if i == 0 {
			text += " except"
		}
		text += " " + p.String()
	}
	return text
}

// Kind returns the kind of the resources that the mask hides, "" for the zero Mask.
func (m Mask) Kind() Kind { return m.of.Kind() }

// Matches reports whether the mask hides a resource, of which it takes all spellings:
// the pattern matches one of them, and no excepted pattern matches any.
func (m Mask) Matches(spellings ...Resource) bool {
	return slices.ContainsFunc(spellings, m.of.Matches) && !slices.ContainsFunc(m.except, func(p Pattern) bool {
		return slices.ContainsFunc(spellings, p.Matches)
	})
}

// Overlaps reports whether the mask may hide something that a pattern matches.
func (m Mask) Overlaps(p Pattern) bool { return m.of.Overlaps(p) }
