package record

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"

	"github.com/remit-dev/remit/internal/canon"
)

// buffers reuses the buffers in which entries are encoded.
var buffers sync.Pool

// keptBuffer is the size up to which a buffer is used again.
const keptBuffer = 64 << 10

// encode sets the stored parts of an entry. They share one allocation.
func (e *Entry) encode(body Body, salt []byte) error {
	buf, ok := buffers.Get().(*[]byte)
	if !ok {
		buf = new([]byte)
	}
	all := append((*buf)[:0], salt...)
	all, err := appendHeader(all, e.Header)
	if err != nil {
		return fmt.Errorf("header: %w", err)
	}
	end := len(all)
	if all, err = appendBody(all, body); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	if *buf = all; cap(all) <= keptBuffer {
		all = bytes.Clone(all)
		buffers.Put(buf)
	}
	e.Salt, e.Head, e.Body = all[:SaltSize:SaltSize], all[SaltSize:end:end], all[end:len(all):len(all)]
	return nil
}

// appendHeader appends the canonical form of a header. Every record has one, so
// it is written without reflection.
func appendHeader(dst []byte, h Header) ([]byte, error) {
	out, valid := append(dst, `{"at":"`...), true
	out, err := h.At.AppendText(out)
	if err != nil {
		return dst, err
	}
	out = append(out, '"')
	for _, m := range [...]struct {
		name string
		text string
	}{{`,"call":`, h.Call}, {`,"kind":`, string(h.Kind)}, {`,"session":`, h.Session}, {`,"txn":`, h.Txn}} {
		if m.text == "" && m.name != `,"kind":` {
			continue
		}
		var ok bool
		out, ok = canon.AppendText(append(out, m.name...), m.text)
		valid = valid && ok
	}
	if !valid {
		return canon.Append(dst, h) // which says what is wrong
	}
	return append(strconv.AppendInt(append(out, `,"v":`...), int64(h.V), 10), '}'), nil
}
