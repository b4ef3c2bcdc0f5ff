package web

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// ErrTooLarge says that an answer is larger than it may be, or grows too much when it
// is unpacked.
var ErrTooLarge = errors.New("the answer is too large")

// counted counts what is read of an answer as it came.
type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// ratioFloor is up to where the ratio is not looked at: a little text may well pack
// better than any bound.
const ratioFloor = 256 << 10

// readBody reads an answer within its bounds. What it was packed with is looked at
// before a byte of it is read.
func readBody(resp *http.Response, limit int64, ratio int) ([]byte, error) {
	if resp.Body == nil {
		return nil, nil
	}
	encodings := resp.Header.Values("Content-Encoding")
	raw := &counted{r: resp.Body}
	var plain io.Reader = raw
	switch e := strings.ToLower(strings.TrimSpace(strings.Join(encodings, ","))); e {
	case "", "identity":
		if resp.ContentLength > limit {
			return nil, fmt.Errorf("%w: it says that it has %d bytes; at most %d are read", ErrTooLarge, resp.ContentLength, limit)
		}
	case "gzip", "x-gzip":
		packed, err := gzip.NewReader(raw)
		if errors.Is(err, io.EOF) { // of HEAD, or empty
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the answer says that it is gzip, and is not: %w", err)
		}
		plain = packed
	default:
		return nil, errors.New("the answer is packed in a way that was not asked for; valid is gzip, once")
	}
	var out []byte
	chunk := make([]byte, 32<<10)
	for {
		n, err := plain.Read(chunk)
		out = append(out, chunk[:n]...)
		size := int64(len(out))
		switch {
		case size > limit:
			return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)
		case size > ratioFloor && size > raw.n*int64(ratio):
			return nil, fmt.Errorf("%w: it grows to more than %d times its size when it is unpacked", ErrTooLarge, ratio)
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("the answer broke off: %w", err)
		}
	}
}
