package script

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds a line of a script in bytes. It is larger than the largest
// input of a call.
const maxLine = 24 << 20

// line is one line of a script that is not blank.
type line struct {
	n    int // from 1
	text []byte
	long bool  // longer than the limit; text is empty
	err  error // read error that ends the script
}

// readLines returns a channel of the lines of r. A goroutine reads them,
// because reading a terminal or a pipe does not end when the command must end.
// Closing done ends the goroutine.
func readLines(r io.Reader, done <-chan struct{}) <-chan line {
	out := make(chan line)
	go func() {
		defer close(out)
		in := bufio.NewReader(r)
		for n := 1; ; n++ {
			l, err := readLine(in)
			l.n = n
			if err != nil && !errors.Is(err, io.EOF) {
				l = line{n: n, err: err}
			}
			if l.err != nil || l.long || len(l.text) > 0 {
				select {
				case out <- l:
				case <-done:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return out
}

// collect reads a script to its end, or until ctx ends.
func collect(ctx context.Context, lines <-chan line) (all []line) {
	for {
		l, ok := next(ctx, lines)
		if !ok {
			return all
		}
		all = append(all, l)
	}
}

// replay returns a channel of lines that were read before.
func replay(lines []line) <-chan line {
	out := make(chan line, len(lines))
	for _, l := range lines {
		out <- l
	}
	close(out)
	return out
}

func (l line) unread() error {
	return fmt.Errorf("the script cannot be read on at line %d: %w", l.n, l.err)
}

func readLine(in *bufio.Reader) (l line, err error) {
	for {
		var part []byte
		part, err = in.ReadSlice('\n')
		if len(l.text)+len(part) > maxLine {
			l.long, l.text = true, nil
		}
		if !l.long {
			l.text = append(l.text, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			l.text = bytes.TrimSpace(l.text)
			return l, err
		}
	}
}
