package engine

// installed wraps a kind for package database. It is written only while that
// package is initialized.
var installed any

// Install sets the function that wraps a kind as the type of package database,
// which this package cannot name.
func Install[K any](wrap func(Kind) K) { installed = wrap }

// Wrap returns a kind as the type of package database. It panics for another
// type.
func Wrap[K any](k Kind) K { return installed.(func(Kind) K)(k) } //nolint:errcheck // a wrong type is a mistake of this program, and panics
