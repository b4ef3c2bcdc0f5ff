package perm

import (
	"fmt"
	"slices"
	"strings"
)

// Mask selects the files that a sandboxed program does not see: those that a
// pattern matches, without those that other patterns match. Its text is a
// pattern, or a pattern, the word except, and further patterns, separated by
// single spaces. It is immutable. The zero Mask matches nothing.
type Mask struct {
	of     Pattern
	except []Pattern
}

// ParseMask parses the text of a mask.
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

// String returns the text of the mask, or "" for the zero Mask.
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

// Kind returns the kind of the resources that the mask hides, or "" for the
// zero Mask.
func (m Mask) Kind() Kind { return m.of.Kind() }

// Matches reports whether the mask hides a resource. It takes all spellings of
// the resource: the pattern matches one of them, and no excepted pattern
// matches any.
func (m Mask) Matches(spellings ...Resource) bool {
	return slices.ContainsFunc(spellings, m.of.Matches) && !slices.ContainsFunc(m.except, func(p Pattern) bool {
		return slices.ContainsFunc(spellings, p.Matches)
	})
}

// Overlaps reports whether the mask may hide a resource that a pattern matches.
func (m Mask) Overlaps(p Pattern) bool { return m.of.Overlaps(p) }
