package tool

import (
	"encoding/json"

	"github.com/remit-dev/remit/provenance"
)

// Result is what a tool returns. At least one of Text, JSON and Parts is what
// the model sees.
type Result struct {
	Text    string                 `json:"text,omitempty"`
	JSON    json.RawMessage        `json:"json,omitempty"` // structured output
	Parts   []Part                 `json:"parts,omitempty"`
	Meta    map[string]string      `json:"meta,omitempty"` // for programs, not for the model
	Sources []provenance.Reference `json:"sources,omitempty"`
}

// Part is a piece of content that is neither text nor JSON.
type Part struct {
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

// Text makes a result of plain text.
func Text(s string) Result { return Result{Text: s} }

// Output returns what a program would want of the result: the structured output
// where there is one, else the text as a JSON string.
func (r Result) Output() json.RawMessage {
	if r.JSON != nil {
		return r.JSON
	}
	text, err := json.Marshal(r.Text)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return text
}
