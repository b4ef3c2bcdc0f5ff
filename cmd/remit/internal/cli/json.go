package cli

import (
	"encoding/json"
	"io"
)

// JSONWriter writes one object a line.
type JSONWriter struct {
	enc *json.Encoder
	out *Output
}

func NewJSON(w io.Writer) JSONWriter {
	out, ok := w.(*Output)
	if !ok {
		out = &Output{w: w}
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return JSONWriter{enc, out}
}

// Write leaves it to the output to tell what could not be written.
func (t JSONWriter) Write(v any) {
	if err := t.enc.Encode(v); err != nil {
		t.out.lose(err)
	}
}

// Listed makes an empty list of a missing one, so that programs read a list.
func Listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
