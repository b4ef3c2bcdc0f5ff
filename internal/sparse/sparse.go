// Package sparse leaves blocks of zeros out when files are written, so that what
// took little room on a disk takes no more after it was kept and brought back.
package sparse

import (
	"bytes"
	"io"
	"os"
)

// block is the size of what is left out, and where it begins: that of most file
// systems, of which none knows smaller holes.
const block = 4096

// Target is a new file that is written from its beginning to its end.
type Target interface {
	io.Writer

	// Skip leaves n bytes out, which read as zeros.
	Skip(n int64) error
}

// Writer writes to a target and skips blocks of zeros. It may tell the target of zeros only
// with the next Write, or with End.
type Writer struct {
	to   Target
	at   int64 // bytes that it was given
	hole int64 // the last of them, zeros that were not passed on
}

// NewWriter returns a Writer to the beginning of a target.
func NewWriter(to Target) *Writer { return &Writer{to: to} }

// Write passes on what is not zeros.
func (w *Writer) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n := w.run(p[done:], true)
		if n > 0 {
			w.hole += int64(n)
		} else {
			if err := w.End(); err != nil {
				return done, err
			}
			n = w.run(p[done:], false)
			if _, err := w.to.Write(p[done : done+n]); err != nil {
				return done, err
			}
		}
		done += n
		w.at += int64(n)
	}
	return done, nil
}

// End passes on zeros at the end. Fewer than fill a block are written: no room is saved
// by skipping them.
func (w *Writer) End() (err error) {
	if w.hole >= block {
		err = w.to.Skip(w.hole)
	} else if w.hole > 0 {
		var zero [block]byte
		_, err = w.to.Write(zero[:w.hole])
	}
	w.hole = 0
	return err
}

// run is how many bytes at the start of p are zeros, or are not, each block as a whole.
// What is there of the first block and of the last counts as one.
func (w *Writer) run(p []byte, zeros bool) (n int) {
	var zero [block]byte
	for n < len(p) {
		piece := p[n:min(len(p), n+int(block-(w.at+int64(n))%block))]
		if bytes.Equal(piece, zero[:len(piece)]) != zeros {
			break
		}
		n += len(piece)
	}
	return n
}

// File makes a file of the system, open for writing at its end, a Target.
type File struct{ *os.File }

// Skip makes the file longer without writing to it.
func (f File) Skip(n int64) error {
	end, err := f.Seek(n, io.SeekCurrent)
	if err != nil {
		return err
	}
	return f.Truncate(end)
}

var _ Target = File{}
