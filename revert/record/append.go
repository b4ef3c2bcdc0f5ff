package record

import (
	"encoding/json"
	"strconv"

	"github.com/remit-dev/remit/internal/canon"
)

// appendBody appends the canonical form of a body. A call that only reads has
// two records; they are written without reflection, member by member in
// canonical order. canon.Append defines the result, and a test compares both.
func appendBody(dst []byte, body Body) ([]byte, error) {
	w := bodyWriter{dst: dst, plain: true}
	switch b := body.(type) {
	case *Started:
		w.started(b)
	case *Done:
		w.done(b)
	default:
		w.plain = false
	}
	if !w.plain {
		return canon.Append(dst, body)
	}
	return w.dst, nil
}

// bodyWriter writes one body. plain is false if the body has a part that only
// the general form can write.
type bodyWriter struct {
	dst   []byte
	plain bool
	later bool // a member precedes
}

func (w *bodyWriter) started(s *Started) {
	rare := s.Approval != nil || len(s.Counts)+len(s.Observed)+len(s.Redacted)+len(s.Replaced) > 0
	w.plain = w.plain && !rare
	w.open()
	w.accesses("access", s.Access)
	w.optional("answered_by", s.AnsweredBy)
	w.text("class", string(s.Class))
	w.text("confinement", s.Confinement)
	w.optional("coverage", string(s.Coverage))
	w.raw("decision", s.Decision)
	w.bool("declared", s.Declared)
	w.optional("ends", s.Ends)
	w.raw("input", s.Input)
	w.text("input_digest", s.InputDigest)
	w.text("key", s.Key)
	w.optional("nest", s.Nest)
	if s.Reverts {
		w.bool("reverts", true)
	}
	w.accesses("right", s.Right)
	w.name("sequence")
	w.dst = strconv.AppendInt(w.dst, int64(s.Sequence), 10)
	w.tool("tool", s.Tool)
	w.close()
}

func (w *bodyWriter) done(d *Done) {
	rare := len(d.Posts)+len(d.Delivered)+len(d.DeliveredBy) > 0
	w.plain = w.plain && !rare
	w.open()
	w.optional("delivered_digest", d.DeliveredDigest)
	w.optional("ends", d.Ends)
	w.raw("output", d.Output)
	w.text("output_digest", d.OutputDigest)
	if d.Recovered {
		w.bool("recovered", true)
	}
	w.optional("undelivered", d.Undelivered)
	w.close()
}

func (w *bodyWriter) tool(name string, t ToolRef) {
	w.name(name)
	w.open()
	w.optional("digest", t.Digest)
	w.text("name", t.Name)
	w.optional("settings", t.Settings)
	w.optional("undo_version", t.UndoVersion)
	w.optional("version", t.Version)
	w.close()
}

func (w *bodyWriter) accesses(name string, list []Access) {
	w.name(name)
	if list == nil {
		w.dst = append(w.dst, "null"...)
		return
	}
	w.dst = append(w.dst, '[')
	for i, a := range list {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.open()
		w.text("action", a.Action)
		w.optional("method", a.Method)
		w.text("resource", a.Resource)
		w.close()
	}
	w.dst = append(w.dst, ']')
}

func (w *bodyWriter) open() {
	w.dst = append(w.dst, '{')
	w.later = false
}

func (w *bodyWriter) close() {
	w.dst = append(w.dst, '}')
	w.later = true
}

// name begins a member. Names have no characters that need escapes.
func (w *bodyWriter) name(name string) {
	if w.later {
		w.dst = append(w.dst, ',')
	}
	w.later = true
	w.dst = append(w.dst, '"')
	w.dst = append(w.dst, name...)
	w.dst = append(w.dst, '"', ':')
}

func (w *bodyWriter) text(name, text string) {
	w.name(name)
	var ok bool
	w.dst, ok = canon.AppendText(w.dst, text)
	w.plain = w.plain && ok
}

func (w *bodyWriter) optional(name, text string) {
	if text != "" {
		w.text(name, text)
	}
}

func (w *bodyWriter) bool(name string, b bool) {
	w.name(name)
	w.dst = strconv.AppendBool(w.dst, b)
}

// maxRaw bounds a text that is written without the general form, which checks
// the size of the whole body.
const maxRaw = 1 << 20

// raw writes a text that certainly is canonical.
func (w *bodyWriter) raw(name string, text json.RawMessage) {
	w.plain = w.plain && text != nil && len(text) <= maxRaw && canon.IsCanonical(text)
	if w.plain {
		w.name(name)
		w.dst = append(w.dst, text...)
	}
}
