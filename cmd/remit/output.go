package main

import (
	"errors"
	"io"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
)

// output is where answers go. Who reads them may go away, and a disk may be
// full; the calls go on. What could not be written is told once, at the end.
type output struct {
	w    io.Writer
	err  error // what went wrong first
	gone bool  // half a line may be written: nothing can follow it
}

// Write never fails.
func (o *output) Write(p []byte) (int, error) {
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
func (o *output) lose(err error) {
	if o.err == nil {
		o.err = err
	}
}

// enough reports whether who reads an answer has seen as much of it as they wanted, as head does. Of what was changed they are told
// all the same.
func enough(cmd *cobra.Command, err error) bool {
	return cmd != nil && errors.Is(err, syscall.EPIPE) && slices.Contains([]string{"log", "show", "diff", "tools", "stats", "doctor", "schema", "explain"}, cmd.Name())
}

// lost is the problem of answers that nobody got.
func lost(cmd *cobra.Command, err error) *problem {
	p := &problem{code: exitInternal, what: "not everything could be written to standard output", why: plainError(err)}
	if cmd != nil && slices.Contains([]string{"run", "revert", "redo", "recover"}, cmd.Name()) {
		p.fix = "nothing was stopped by it: " + placeOf(cmd).hint("log") + " lists what was done"
	}
	return p
}
