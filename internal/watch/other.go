//go:build !linux

package watch

import "fmt"

// Tree is unused here.
type Tree struct{}

// New returns ErrUnsupported.
func New(string) (*Tree, error) {
	return nil, fmt.Errorf("%w: on this system", ErrUnsupported)
}

// Drain returns ErrStale.
func (*Tree) Drain(*Dirty) error { return ErrStale }

// Close does nothing.
func (*Tree) Close() {}
