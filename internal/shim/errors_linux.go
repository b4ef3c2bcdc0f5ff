//go:build amd64 || arm64

package shim

// failure is an error with what it happened at. Package fmt would bring
// reflection along.
type failure struct {
	at  string
	err error
}

// failedAt says what an error happened at.
func failedAt(at string, err error) error { return failure{at, err} }

func (f failure) Error() string { return f.at + ": " + f.err.Error() }

func (f failure) Unwrap() error { return f.err }

// refusal is a reason that the parent tells apart from others.
type refusal struct {
	kind Kind
	root string
	error
}
