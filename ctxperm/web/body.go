package web

import (
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// errMediaType states that the client does not read the media type of a
// response.
var errMediaType = errors.New("the answer is of a media type that is not read")

// errTooLarge states that a response exceeds its limit, or the limit of its
// decompression ratio.
var errTooLarge = errors.New("the answer is too large")

// countingReader counts the bytes of a response as received. These are bounded
// too, because endless compressed data can decompress to nothing.
type countingReader struct {
	r        io.Reader
	n, limit int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	if c.n > c.limit {
		return 0, fmt.Errorf("%w: more than %d bytes, as it is packed", errTooLarge, c.limit)
	}
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// ratioFloor is the size below which the ratio does not count, because short
// texts can compress better than any bound.
const ratioFloor = 256 << 10

// reads reports whether the client reads responses of a media type.
func (o *Options) reads(media string) bool {
	media, _, err := mime.ParseMediaType(cmp.Or(media, "application/octet-stream"))
	kind, _, _ := strings.Cut(media, "/")
	return len(o.Media) == 0 || err == nil && (slices.Contains(o.Media, media) || slices.Contains(o.Media, kind+"/*"))
}

// readBody reads a response within its bounds. It checks media type and
// encoding before it reads a byte.
func (c *Client) readBody(resp *http.Response) ([]byte, error) {
	if resp.Body == nil || resp.Request.Method == http.MethodHead { // it states a length nevertheless
		return nil, nil
	}
	if media := resp.Header.Values("Content-Type"); !c.opts.reads(strings.Join(media, ",")) {
		if !IsReadMethod(resp.Request.Method) || resp.StatusCode > 299 {
			return nil, nil // the status suffices
		}
		return nil, fmt.Errorf("%w; valid are %s", errMediaType, strings.Join(c.opts.Media, ", "))
	}
	return readPacked(resp, c.opts.MaxBody, c.opts.MaxRatio)
}

func readPacked(resp *http.Response, limit int64, ratio int) ([]byte, error) {
	encodings := resp.Header.Values("Content-Encoding")
	raw := &countingReader{r: resp.Body, limit: max(limit, limit+ratioFloor)}
	var plain io.Reader = raw
	switch e := strings.ToLower(strings.TrimSpace(strings.Join(encodings, ","))); e {
	case "", "identity":
		if resp.ContentLength > limit {
			return nil, fmt.Errorf("%w: it says that it has %d bytes; at most %d are read", errTooLarge, resp.ContentLength, limit)
		}
	case "gzip", "x-gzip":
		packed, err := gzip.NewReader(raw)
		if errors.Is(err, io.EOF) { // empty
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
			return nil, fmt.Errorf("%w: more than %d bytes", errTooLarge, limit)
		case size > ratioFloor && size > raw.n*int64(ratio):
			return nil, fmt.Errorf("%w: it grows to more than %d times its size when it is unpacked", errTooLarge, ratio)
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("the answer broke off: %w", err)
		}
	}
}
