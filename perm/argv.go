package perm

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// Argv is a whole command line as one comparable value. The zero Argv has no
// program.
type Argv struct{ joined string }

// NewArgv creates an Argv from a program and its arguments. It returns an error
// if one of them holds a NUL.
func NewArgv(argv ...string) (Argv, error) {
	if slices.ContainsFunc(argv, func(a string) bool { return strings.ContainsRune(a, 0) }) {
		return Argv{}, errors.New("an argument of a command line holds a NUL")
	}
	var b strings.Builder
	for _, a := range argv {
		b.WriteString(a)
		b.WriteByte(0)
	}
	return Argv{joined: b.String()}, nil
}

// List returns the program and its arguments, or nil for the zero Argv.
func (a Argv) List() []string {
	if a.joined == "" {
		return nil
	}
	list := strings.Split(a.joined, "\x00")
	return list[:len(list)-1]
}

// MarshalJSON writes a list of strings. It replaces bytes that are not UTF-8,
// as encoding/json does.
func (a Argv) MarshalJSON() ([]byte, error) { return json.Marshal(a.List()) }

// UnmarshalJSON parses what MarshalJSON writes.
func (a *Argv) UnmarshalJSON(raw []byte) error {
	var list []string
	err := json.Unmarshal(raw, &list)
	if err == nil {
		*a, err = NewArgv(list...)
	}
	return err
}
