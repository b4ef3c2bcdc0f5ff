package wire

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/tool"
)

// answer is what a model is told of one call.
type answer struct {
	id, name string
	failed   bool
	text     string
	json     json.RawMessage // the same as text, where that is structured output
	parts    []tool.Part     // images and other files
	sources  []provenance.Reference
}

func answerTo(c Call, o tool.Outcome) answer {
	if c.Problem != nil {
		o = c.Refused()
	}
	a := answer{id: c.ID, name: c.Name, failed: !o.Status.OK(), text: strings.ToValidUTF8(o.Text, "\uFFFD")}
	if a.text == "" && o.Status != tool.StatusDone {
		a.text = "It is not known how this call ended. Do not repeat it; look at the state first."
	}
	if o.Status == tool.StatusDone {
		a.of(o.Result)
	}
	if strings.TrimSpace(a.text) == "" && len(a.parts) == 0 {
		a.text = fmt.Sprintf("%q", a.text) // a blank text is refused by some
	}
	return a
}

// Answer returns the text for the model about one call, for a program that
// writes the message itself. It holds the text of the outcome, and the names
// and sizes of parts that are not text. failed is true unless the outcome is a
// success. Mark the message as an error if the format can do that. Otherwise
// begin it with "Error: ". Answer ignores the outcome of a call with a Problem.
// The outcome of another tool counts as unknown.
func (c Call) Answer(o tool.Outcome) (text string, failed bool) {
	if o.Tool != "" && o.Tool != c.Name {
		o = tool.Outcome{}
	}
	a := answerTo(c, o).keep(noParts)
	return a.text, a.failed
}

// deepest is how many levels of structured output go as they are. A message puts more around them, and what is too deep for a
// document is a text still.
const deepest = 100

// of adds what a result holds besides its text.
func (a *answer) of(r tool.Result) {
	if r.Text == "" && r.JSON != nil && !canon.Deeper(r.JSON, deepest) {
		a.json = r.JSON
	}
	if r.Text == "" && r.JSON == nil && len(r.Parts) > 0 {
		a.text = "" // it stands for the lack of both
	}
	a.refer(r.Sources)
	for _, p := range r.Parts {
		if readable(p) {
			a.add(string(p.Data))
			continue
		}
		a.parts = append(a.parts, p)
	}
}

// refer takes the sources that a result rests on, as far as they say anything, in words that fit on a line.
func (a *answer) refer(sources []provenance.Reference) {
	for _, s := range sources {
		s.Title, s.URL = onLine(s.Title), onLine(s.URL)
		if s.Title != "" || s.URL != "" {
			a.sources = append(a.sources, s)
		}
	}
}

// onLine keeps what a stranger may have written from looking like more than one line.
func onLine(s string) string {
	return canon.Printable(strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " "), 2048)
}

// cited are the sources as text, "" where there are none.
func (a answer) cited() string {
	if len(a.sources) == 0 {
		return ""
	}
	text := "Sources:"
	for _, s := range a.sources {
		text += "\n- " + strings.TrimSpace(s.Title+" "+s.URL)
	}
	return text
}

// readable reports whether a part is a text, which goes as one.
func readable(p tool.Part) bool {
	return (strings.HasPrefix(p.MediaType, "text/") || media(p) == "application/json") && utf8.Valid(p.Data)
}

// media is the media type without its parameters.
func media(p tool.Part) string {
	name, _, _ := strings.Cut(p.MediaType, ";")
	return strings.ToLower(strings.TrimSpace(name))
}

// add appends a text, after which the whole is no longer one JSON value.
func (a *answer) add(text string) {
	if a.text != "" {
		a.text += "\n"
	}
	a.text += text
	a.json = nil
}

// cite puts the sources into the text, for formats that have no other place for them.
func (a answer) cite() answer {
	if text := a.cited(); text != "" {
		a.add(text)
	}
	return a
}

// keep leaves only the parts that a format takes, and names the others in the text.
func (a answer) keep(takes func(mediaType string) bool) answer {
	var kept []tool.Part
	for _, p := range a.parts {
		if takes(media(p)) {
			kept = append(kept, p)
			continue
		}
		a.add(fmt.Sprintf("[%s, %d bytes, which cannot be shown here]", p.MediaType, len(p.Data)))
	}
	a.parts = kept
	return a
}

// unmarked is the text where the format has no mark for an error.
func (a answer) unmarked() string {
	if a.failed {
		return "Error: " + a.text
	}
	return a.text
}

func noParts(string) bool { return false }

// isImage are the images that every provider takes which takes any.
func isImage(mediaType string) bool {
	switch mediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	default:
		return false
	}
}

func imageOrPDF(mediaType string) bool { return isImage(mediaType) || mediaType == "application/pdf" }

func base64Of(p tool.Part) string { return base64.StdEncoding.EncodeToString(p.Data) }

func dataURL(p tool.Part) string { return "data:" + media(p) + ";base64," + base64Of(p) }
