package tool

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/remit-dev/remit/provenance"
)

// Result is what a tool returns. At least one of Text, JSON and Parts is what
// the model sees.
type Result struct {
	Text string `json:"text,omitempty"`
	// MediaType says what Text is, such as "text/markdown"; empty: nothing is said.
	MediaType string `json:"media_type,omitempty"`

	JSON    json.RawMessage        `json:"json,omitempty"` // structured output
	Parts   []Part                 `json:"parts,omitempty"`
	Meta    map[string]string      `json:"meta,omitempty"` // for programs, not for the model
	Sources []provenance.Reference `json:"sources,omitempty"`

	// Labels are given to the session before anybody sees the result, and Requires (verify, revert, sandbox, preview) is what each of its calls
	// must have from then on, as if the policy required it. Nothing lowers either. A label is lower-case letters, digits and _.:- of at most 64.
	Labels   []string `json:"labels,omitempty"`
	Requires []string `json:"requires,omitempty"`

	// IsError says that the call failed, by what is returned instead of an error. So does
	// JSON that is an object whose "isError" is true. What the call did is taken back.
	IsError bool `json:"is_error,omitempty"`
}

// failure is the error that a result stands for; nil where it is one.
func (r Result) failure() error {
	failed := struct {
		Is      bool            `json:"isError"`
		Content json.RawMessage `json:"content"`
	}{}
	if bytes.Contains(r.JSON, []byte(`"isError"`)) && json.Unmarshal(r.JSON, &failed) != nil {
		failed.Is = false // of another type: it says something else
	}
	if !r.IsError && !failed.Is {
		return nil
	}
	if text := cmp.Or(r.Text, contentText(failed.Content)); text != "" {
		return errors.New("the tool's result says that it failed: " + text)
	}
	return errors.New("the tool's result says that it failed, and not why")
}

// contentText is the text of the parts that stand beside an "isError".
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

// clone shares no memory with r.
func (r Result) clone() Result {
	r.Labels, r.Requires = slices.Clone(r.Labels), slices.Clone(r.Requires)
	r.JSON, r.Meta, r.Sources, r.Parts = slices.Clone(r.JSON), maps.Clone(r.Meta), slices.Clone(r.Sources), slices.Clone(r.Parts)
	for i, p := range r.Parts {
		r.Parts[i].Data = slices.Clone(p.Data)
	}
	return r
}
