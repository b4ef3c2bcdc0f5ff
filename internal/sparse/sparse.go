// Package sparse skips blocks of zeros when it reads and writes files. So a
// sparse file stays sparse when it is stored and restored, and the time depends
// on its data only.
package sparse

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// Block is the size and the alignment of skipped blocks. It is the block size
// of most file systems; none has smaller holes.
const Block = 4096

// Target receives content from its beginning to its end.
type Target interface {
	io.Writer

	// Skip leaves n bytes out, which read as zeros.
	Skip(n int64) error
}

// Source is content that may know where it contains only zeros.
type Source interface {
	io.Reader

	// Hole skips the zeros that are known to come next, and returns their
	// number. It returns 0 if none are known: then Read.
	Hole() (int64, error)
}

// Writer passes content on to a target and skips exactly the blocks of zeros,
// for any division of the content into pieces. It counts blocks from the
// beginning, and never skips a shorter last one. Each run of blocks is one
// Skip. The Writer may pass zeros on only with the next Write, or with End.
type Writer struct {
	to   Target
	at   int64 // number of bytes that it received
	hole int64 // the last of them: zeros from the beginning of a block that were not passed on
}

// NewWriter returns a Writer to the beginning of a target.
func NewWriter(to Target) *Writer { return &Writer{to: to} }

// Write passes on data and counts zeros.
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

// Skip adds n zeros without reading them.
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

// End passes on zeros at the end. Do not write after it.
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

// open reports whether a part of the current block was passed on.
func (w *Writer) open() bool { return w.hole == 0 && w.at%Block != 0 }

// left returns the number of bytes that the current block still needs.
func (w *Writer) left() int { return int(Block - w.at%Block) }

// data returns how many bytes at the start of p belong to blocks with data, as
// far as p tells.
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
	if piece[0] != 0 || piece[len(piece)-1] != 0 { // true for most pieces
		return false
	}
	var zero [Block]byte
	return bytes.Equal(piece, zero[:len(piece)])
}

// Copy passes the rest of r on to a target, through buf. At zeros it asks a
// Source how many follow, and does not read those. It returns the number of
// bytes.
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

// Tee returns a target that writes to both a and b.
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

// Into returns a target for any writer. If the writer is not a Target, it
// receives the zeros.
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

// HoleOf calls Hole of a Source. For other content it returns 0.
func HoleOf(r io.Reader) (int64, error) {
	if s, ok := r.(Source); ok {
		return s.Hole()
	}
	return 0, nil
}

// File makes an *os.File a Target, open for writing at its end, and a Source.
type File struct{ *os.File }

// Skip extends the file without writing to it.
func (f File) Skip(n int64) error {
	end, err := f.Seek(n, io.SeekCurrent)
	if err != nil {
		return err
	}
	return f.Truncate(end)
}

// Hole skips a hole.
func (f File) Hole() (int64, error) { return hole(f.File) }

var (
	_ Target = File{}
	_ Source = File{}
)
