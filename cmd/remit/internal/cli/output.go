package cli

import "io"

// Output is where answers go. Who reads them may go away, and a disk may be
// full; the calls go on. What could not be written is told once, at the end.
type Output struct {
	w       io.Writer
	Failure error // what went wrong first
	gone    bool  // half a line may be written: nothing can follow it
}

// Write never fails.
func (o *Output) Write(p []byte) (int, error) {
	if o.gone {
		return len(p), nil
	}
	if _, err := o.w.Write(p); err != nil {
		o.gone = true
		o.lose(err)
	}
	return len(p), nil
}

// lose notes that something did not get written.
func (o *Output) lose(err error) {
	if o.Failure == nil {
		o.Failure = err
	}
}
