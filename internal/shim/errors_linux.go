//go:build amd64 || arm64

package shim

// failure is an error with its place. Package fmt would import reflect.
type failure struct {
	at  string
	err error
}

// failedAt adds the place to an error.
func failedAt(at string, err error) error { return failure{at, err} }

func (f failure) Error() string { return f.at + ": " + f.err.Error() }

func (f failure) Unwrap() error { return f.err }

// refusal is a reason that the parent distinguishes from others.
type refusal struct {
	kind Kind
	root string
	error
}
