package provenance

import (
	"fmt"
	"slices"
	"strings"
)

// Role is what a value of an argument does.
type Role string

// The roles. An argument without a role has Authority, the strictest.
const (
	Authority Role = "authority" // it says who, where, which or how much
	Payload   Role = "content"   // it is what a person or a program reads: a text, a note, a date
	Selector  Role = "selector"  // it chooses what is read or shown, and changes nothing: a page, an order
)

// Roles maps arguments to their roles, by JSON pointer with * for each element
// or member: "/to/*". What is below an argument has its role. The pointer that
// names a value most exactly counts.
type Roles map[string]Role

// Check returns an error for a pointer or a role that is not valid.
func (r Roles) Check() error {
	for pointer, role := range r {
		if !slices.Contains([]Role{Authority, Payload, Selector}, role) {
			return fmt.Errorf("argument %q: %q is no role; valid are authority, content, selector", pointer, string(role))
		}
		if err := checkPointer(pointer); err != nil {
			return fmt.Errorf("argument %w", err)
		}
	}
	return nil
}

// checkPointer returns an error for a text that is no JSON pointer.
func checkPointer(pointer string) error {
	if pointer != "" && !strings.HasPrefix(pointer, "/") {
		return fmt.Errorf("%q is no JSON pointer: it begins with a slash", pointer)
	}
	return nil
}
