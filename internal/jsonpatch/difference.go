package jsonpatch

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/remit-dev/remit/internal/canon"
)

// Change is one place at which two documents differ. The zero Value represents
// a missing value.
type Change struct {
	Path   string
	Before canon.Value
	After  canon.Value
}

// Differences returns the places at which two documents differ. It descends
// into objects, and into lists of the same length.
func Differences(before, after canon.Value) []Change { return differ(nil, before, after) }

func differ(path []string, a, b canon.Value) (out []Change) {
	inside := func(token string, a, b canon.Value) {
		out = append(out, differ(append(slices.Clone(path), token), a, b)...)
	}
	switch {
	case a.Kind() == canon.Object && b.Kind() == canon.Object:
		for name, was := range a.Members() {
			is, _ := b.Get(name)
			inside(name, was, is)
		}
		for name, is := range b.Members() {
			if _, there := a.Get(name); !there {
				inside(name, canon.Value{}, is)
			}
		}
	case a.Kind() == canon.Array && b.Kind() == canon.Array && a.Len() == b.Len():
		var others []canon.Value
		for _, e := range b.Elements() {
			others = append(others, e)
		}
		for i, e := range a.Elements() {
			inside(strconv.Itoa(i), e, others[i])
		}
	case !bytes.Equal(a.Canonical(), b.Canonical()):
		out = append(out, Change{Pointer(path...), a, b})
	}
	return out
}
