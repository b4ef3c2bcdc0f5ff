// Package sparse leaves blocks of zeros out when files are read and written, so that what
// took little room on a disk takes no more after it was kept and brought back, and costs
// no more time than it takes room.
package sparse

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// Block is the size of what is left out, and where it begins: that of most file
// systems, of which none knows smaller holes.
const Block = 4096

// Target takes content in from its beginning to its end.
type Target interface {
	io.Writer

	// Skip leaves n bytes out, which read as zeros.
	Skip(n int64) error
}

// Source is content that may know where it holds nothing but zeros.
type Source interface {
	io.Reader

	// Hole passes over the zeros that are known to come next, and returns how many
	// they are. It returns 0 if none are known: Read tells.
	Hole() (int64, error)
}

// Writer passes content on to a target and skips exactly the blocks of zeros, however the
// content is cut into pieces: blocks are counted from the beginning, and a last one that is
// shorter is never skipped. Each run of blocks is one Skip. The Writer may tell the target of
// zeros only with the next Write, or with End.
type Writer struct {
	to   Target
	at   int64 // bytes that it was given
	hole int64 // the last of them, zeros from the beginning of a block on that were not passed on
}

// NewWriter returns a Writer to the beginning of a target.
func NewWriter(to Target) *Writer { return &Writer{to: to} }

// Write passes on what is not zeros.
func (w *Writer) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n := w.data(p[done:])
		if n == 0 {
			n = min(len(p)-done, w.left())
			w.hole += int64(n)
		} else {
			if err := w.End(); err != nil {
				return done, err
			}
			if _, err := w.to.Write(p[done : done+n]); err != nil {
				return done, err
			}
		}
		done += n
		w.at += int64(n)
	}
	return done, nil
}

// Skip takes n zeros in without looking at them.
func (w *Writer) Skip(n int64) error {
	if rest := int64(w.left()); w.open() && n > 0 {
		var zero [Block]byte
		rest = min(rest, n)
		if _, err := w.to.Write(zero[:rest]); err != nil {
			return err
		}
		w.at, n = w.at+rest, n-rest
	}
	w.at, w.hole = w.at+n, w.hole+n
	return nil
}

// End passes on zeros at the end. Nothing may be written after it.
func (w *Writer) End() error {
	part := w.hole % Block
	if whole := w.hole - part; whole > 0 {
		if err := w.to.Skip(whole); err != nil {
			return err
		}
	}
	w.hole = 0
	if part == 0 {
		return nil
	}
	var zero [Block]byte
	_, err := w.to.Write(zero[:part])
	return err
}

// open reports whether a part of the present block was passed on.
func (w *Writer) open() bool { return w.hole == 0 && w.at%Block != 0 }

// left is how many bytes the present block still has.
func (w *Writer) left() int { return int(Block - w.at%Block) }

// data is how many bytes at the start of p belong to blocks that hold something else than
// zeros, as far as p tells.
func (w *Writer) data(p []byte) (n int) {
	open, left := w.open(), w.left()
	for n < len(p) {
		piece := p[n:min(len(p), n+left)]
		if !open && allZero(piece) {
			break
		}
		n += len(piece)
		open, left = false, Block
	}
	return n
}

func allZero(piece []byte) bool {
	if piece[0] != 0 || piece[len(piece)-1] != 0 { // most pieces
		return false
	}
	var zero [Block]byte
	return bytes.Equal(piece, zero[:len(piece)])
}

// Copy passes the rest of what r holds on to a target, through buf. Where zeros come it asks
// a Source how many follow, and reads none of those. It returns how many bytes there were.
func Copy(to Target, r io.Reader, buf []byte) (n int64, err error) {
	for {
		got, err := r.Read(buf)
		if _, werr := to.Write(buf[:got]); werr != nil {
			return n, werr
		}
		n += int64(got)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if got == 0 || !allZero(buf[max(0, got-Block):got]) {
			continue
		}
		hole, err := HoleOf(r)
		if err == nil && hole > 0 {
			err = to.Skip(hole)
		}
		if err != nil {
			return n, err
		}
		n += hole
	}
}

// Tee is a target of two others.
func Tee(a, b Target) Target { return tee{a, b} }

type tee struct{ a, b Target }

func (t tee) Write(p []byte) (int, error) {
	if n, err := t.a.Write(p); err != nil {
		return n, err
	}
	return t.b.Write(p)
}

func (t tee) Skip(n int64) error {
	if err := t.a.Skip(n); err != nil {
		return err
	}
	return t.b.Skip(n)
}

// Into makes any writer a target: one that is none is written the zeros.
func Into(w io.Writer) Target {
	if t, ok := w.(Target); ok {
		return t
	}
	return whole{w}
}

type whole struct{ io.Writer }

func (w whole) Skip(n int64) error {
	zero := make([]byte, min(n, 16*Block))
	for n > 0 {
		wrote, err := w.Write(zero[:min(n, int64(len(zero)))])
		if err != nil {
			return err
		}
		n -= int64(wrote)
	}
	return nil
}

// HoleOf is Hole of content that may be a Source; of other content nothing is known.
func HoleOf(r io.Reader) (int64, error) {
	if s, ok := r.(Source); ok {
		return s.Hole()
	}
	return 0, nil
}

// File makes a file of the system a Target, open for writing at its end, and a Source.
type File struct{ *os.File }

// Skip makes the file longer without writing to it.
func (f File) Skip(n int64) error {
	end, err := f.Seek(n, io.SeekCurrent)
	if err != nil {
		return err
	}
	return f.Truncate(end)
}

// Hole passes over a hole.
func (f File) Hole() (int64, error) { return hole(f.File) }

var (
	_ Target = File{}
	_ Source = File{}
)
