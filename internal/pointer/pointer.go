// Package pointer finds out what is declared for places of a document by JSON
// pointers in which * stands for each element or member.
package pointer

import "strings"

// Join returns the pointer of a member.
func Join(pointer, name string) string {
	return pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// Strictest returns the strictest declaration that values at a place can have:
// that of the longest pointers to it or around it, and those of pointers at
// least as long to some of the values. Without any it is otherwise.
func Strictest[T any, M ~map[string]T](declared M, place string, otherwise T, stricter func(a, b T) T) T {
	at := segments(place)
	longest, found := -1, otherwise
	for pointer, is := range declared {
		switch n, every, _ := meet(segments(pointer), at); {
		case !every || n < longest:
		case n > longest:
			longest, found = n, is
		default:
			found = stricter(found, is)
		}
	}
	for pointer, is := range declared {
		if n, _, some := meet(segments(pointer), at); some && n >= longest {
			found = stricter(found, is)
		}
	}
	return found
}

func segments(pointer string) []string { return strings.Split(pointer, "/")[1:] }

// meet returns the length of a pointer, and whether every or some values at a
// place are at the pointer or below it.
func meet(pointer, place []string) (n int, every, some bool) {
	if len(pointer) > len(place) {
		return 0, false, false
	}
	every = true
	for i, s := range pointer {
		switch {
		case s == "*", s == place[i]:
		case place[i] == "*":
			every = false
		default:
			return 0, false, false
		}
	}
	return len(pointer), every, true
}
