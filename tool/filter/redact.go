package filter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/tool"
)

// Redact makes the filter "redact", which takes what a pattern matches out of what is
// delivered of a result: its text, the texts of its structured output, its sources and
// the rest; a part that holds a match goes whole. Names of members and numbers stay. It
// takes the same out of all that is said of the call: why it failed, what was found out
// about it, how far it is.
//
// The journal keeps what the tool returned, because taking a call back may need it, and
// the input. What must not be written down is for the policy's redact.
//
// Redact returns an error if a pattern is nil or there is none.
func Redact(patterns ...*regexp.Regexp) (Filter, error) {
	if len(patterns) == 0 || slices.Contains(patterns, nil) {
		return Filter{}, errors.New("filter redact: needs patterns, and none of them nil")
	}
	r := redaction(slices.Clone(patterns))
	return Filter{
		Name: "redact",
		Before: func(_ context.Context, f Call) error {
			f.AddRedaction(r.text)
			return nil
		},
		After: func(_ context.Context, _ Call, res tool.Result) (tool.Result, error) {
			return r.result(res)
		},
	}, nil
}

type redaction []*regexp.Regexp

func (r redaction) result(res tool.Result) (tool.Result, error) {
	res.Text = r.text(res.Text)
	if res.JSON != nil {
		d := json.NewDecoder(bytes.NewReader(res.JSON))
		d.UseNumber()
		var doc any
		err := d.Decode(&doc)
		if err == nil {
			res.JSON, err = canon.Marshal(r.value(doc))
		}
		if err != nil {
			return tool.Result{}, err
		}
	}
	for name, text := range res.Meta {
		res.Meta[name] = r.text(text)
	}
	for i, s := range res.Sources {
		res.Sources[i].Title, res.Sources[i].URL = r.text(s.Title), r.text(s.URL)
	}
	for i, p := range res.Parts {
		if string(p.Data) != r.text(string(p.Data)) || p.MediaType != r.text(p.MediaType) {
			res.Parts[i] = tool.Part{MediaType: "text/plain", Data: []byte(callstate.HiddenText)}
		}
	}
	return res, nil
}

func (r redaction) text(s string) string {
	for _, p := range r {
		s = p.ReplaceAllLiteralString(s, callstate.HiddenText)
	}
	return s
}

func (r redaction) value(doc any) any {
	switch v := doc.(type) {
	case string:
		return r.text(v)
	case []any:
		for i := range v {
			v[i] = r.value(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = r.value(v[name])
		}
	}
	return doc
}
