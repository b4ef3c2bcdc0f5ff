package cli

import (
	"encoding/json"
	"io"
)

// JSONWriter writes one JSON object per line.
type JSONWriter struct {
	enc *json.Encoder
	out *Output
}

// NewJSON returns a writer to w.
func NewJSON(w io.Writer) JSONWriter {
	out, ok := w.(*Output)
	if !ok {
		out = &Output{w: w}
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return JSONWriter{enc, out}
}

// Write writes one object. An error goes to the Output, which the command
// reports at its end.
func (t JSONWriter) Write(v any) {
	if err := t.enc.Encode(v); err != nil {
		t.out.lose(err)
	}
}

// Listed returns an empty list for nil, so that its JSON is a list.
func Listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
