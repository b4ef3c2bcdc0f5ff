package origin

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
)

// Leaf is a value of a JSON document that has no parts, or the name of a
// member.
type Leaf struct {
	Pointer string // JSON pointer; of a name, that of its member
	Text    string
	Name    bool
	Number  bool // a JSON number
}

// Leaves yields the leaves of a document, and the names of members that declared
// does not know.
func Leaves(v canon.Value, declared func(name string) bool) iter.Seq[Leaf] {
	return func(yield func(Leaf) bool) { walk(v, "", declared, yield) }
}

func walk(v canon.Value, at string, declared func(string) bool, yield func(Leaf) bool) bool {
	switch v.Kind() {
	case canon.Object:
		for name, member := range v.Members() {
			below := at + "/" + escape(name)
			if !declared(name) && !yield(Leaf{Pointer: below, Text: name, Name: true}) {
				return false
			}
			if !walk(member, below, declared, yield) {
				return false
			}
		}
		return true
	case canon.Array:
		for i, element := range v.Elements() {
			if !walk(element, at+"/"+strconv.Itoa(i), declared, yield) {
				return false
			}
		}
		return true
	default:
		return yield(Leaf{Pointer: at, Text: v.Text(), Number: v.Kind() == canon.Number})
	}
}

// escape writes a name as a part of a JSON pointer (RFC 6901, section 3).
func escape(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// Paths finds what is declared for a place of a document.
type Paths[T comparable] struct {
	all       []path[T]
	strictest []T // the values, the strictest first
}

type path[T comparable] struct {
	parts []string
	value T
}

// PathsOf reads JSON pointers with * for each element or member. The values are
// listed with the strictest first, which counts if two pointers fit equally.
func PathsOf[T comparable, M ~map[string]T](declared M, strictest ...T) Paths[T] {
	all := Paths[T]{strictest: strictest}
	for pointer, value := range declared {
		p := path[T]{value: value}
		if pointer != "" {
			p.parts = strings.Split(pointer[1:], "/")
		}
		all.all = append(all.all, p)
	}
	return all
}

// Find returns what is declared for a place, or for the part around it that is
// named most exactly.
func (p Paths[T]) Find(pointer string) (value T, ok bool) {
	best := -1
	for _, one := range p.all {
		score, is := one.match(pointer)
		if is && (score > best || score == best && slices.Index(p.strictest, one.value) < slices.Index(p.strictest, value)) {
			best, value = score, one.value
		}
	}
	return value, best >= 0
}

// match reports whether a place is the path or below it. The score is higher for
// a longer path, and then for one with fewer stars.
func (p *path[T]) match(pointer string) (score int, ok bool) {
	score = 2 * 64 * len(p.parts)
	for _, part := range p.parts {
		if pointer == "" {
			return 0, false
		}
		name, rest, more := strings.Cut(pointer[1:], "/")
		switch part {
		case name:
		case "*":
			score--
		default:
			return 0, false
		}
		if pointer = ""; more {
			pointer = "/" + rest
		}
	}
	return score, true
}
