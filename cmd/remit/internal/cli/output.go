package cli

import "io"

// Output is standard output. If the reader exits or the disk is full, calls
// continue. The command reports the first error once, at its end.
type Output struct {
	w          io.Writer
	Failure    error // the first write error
	incomplete bool  // the last line may be incomplete, so nothing can follow it
}

// Write writes p. It never returns an error.
func (o *Output) Write(p []byte) (int, error) {
	if o.incomplete {
		return len(p), nil
	}
	if _, err := o.w.Write(p); err != nil {
		o.incomplete = true
		o.lose(err)
	}
	return len(p), nil
}

// lose stores the first write error.
func (o *Output) lose(err error) {
	if o.Failure == nil {
		o.Failure = err
	}
}
