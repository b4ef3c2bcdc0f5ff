package tool

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/remit-dev/remit/provenance"
)

// Result is what a tool returns. The model sees at least one of Text, JSON and
// Parts.
type Result struct {
	Text string `json:"text,omitempty"`
	// MediaType is the type of Text, such as "text/markdown". Empty:
	// unspecified.
	MediaType string `json:"media_type,omitempty"`

	JSON    json.RawMessage        `json:"json,omitempty"` // structured output
	Parts   []Part                 `json:"parts,omitempty"`
	Meta    map[string]string      `json:"meta,omitempty"` // for programs, not for the model
	Sources []provenance.Reference `json:"sources,omitempty"`

	// Labels are added to the session before the result is returned. Requires
	// lists what each later call of the session must have (verify, revert,
	// sandbox, preview), as if the policy required it. Neither is ever removed.
	// A label has at most 64 lower-case letters, digits and _.:- characters.
	Labels   []string `json:"labels,omitempty"`
	Requires []string `json:"requires,omitempty"`

	// IsError says that the call failed, in place of an error. A JSON object
	// whose "isError" is true says the same. The runtime reverts the call.
	IsError bool `json:"is_error,omitempty"`
}

// Err returns the error that the result describes, or nil if it describes none.
func (r Result) Err() error {
	if !r.IsError && !bytes.Contains(r.JSON, []byte(`"isError"`)) {
		return nil
	}
	failed := struct {
		Is      bool            `json:"isError"`
		Content json.RawMessage `json:"content"`
	}{}
	if bytes.Contains(r.JSON, []byte(`"isError"`)) && json.Unmarshal(r.JSON, &failed) != nil {
		failed.Is = false // another type, so it does not mean an error
	}
	if !r.IsError && !failed.Is {
		return nil
	}
	if text := cmp.Or(r.Text, contentText(failed.Content)); text != "" {
		return errors.New("the tool's result says that it failed: " + text)
	}
	return errors.New("the tool's result says that it failed, and not why")
}

// contentText returns the text of the parts beside an "isError".
func contentText(content json.RawMessage) string {
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var texts []string
	for _, p := range parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// Part is a piece of content that is neither text nor JSON.
type Part struct {
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

// Text returns a result of plain text.
func Text(s string) Result { return Result{Text: s} }

// Output returns the result for programs: the structured output if there is
// one, otherwise the text as a JSON string.
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
