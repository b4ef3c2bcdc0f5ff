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
	w.facts(s.Facts)
	w.raw("input", s.Input)
	w.text("input_digest", s.InputDigest)
	w.text("key", s.Key)
	w.optional("nest", s.Nest)
	w.order(s.Order)
	if s.Reverts {
		w.bool("reverts", true)
	}
	w.accesses("right", s.Right)
	w.number("sequence", s.Sequence)
	w.tool("tool", s.Tool)
	w.close()
}

// facts writes the facts of a call without a script, as most are.
func (w *bodyWriter) facts(f *Facts) {
	if f == nil {
		return
	}
	w.plain = w.plain && f.Script == nil && f.Provided == nil
	w.name("facts")
	w.open()
	w.some("batch_count", f.BatchCount)
	w.some("batch_index", f.BatchIndex)
	w.number("calls", f.Calls)
	w.some("depth", f.Depth)
	w.some("labels", f.Labels)
	w.some("requires", f.Requires)
	w.name("time")
	w.dst = append(w.dst, '"')
	out, err := f.Time.AppendText(w.dst)
	w.plain = w.plain && err == nil
	w.dst = append(out, '"')
	if f.URLs != nil {
		w.raw("urls", f.URLs)
	}
	if f.Values != nil {
		w.raw("values", f.Values)
	}
	if f.ValuesCut {
		w.bool("values_cut", true)
	}
	w.close()
}

// order writes the place of a decision after calls that ended as done.
func (w *bodyWriter) order(o *Order) {
	if o == nil {
		return
	}
	w.plain = w.plain && len(o.Before)+len(o.Counters)+len(o.Counts) == 0
	w.name("order")
	w.open()
	if len(o.Ended) > 0 {
		w.name("ended")
		for i, e := range o.Ended {
			w.plain = w.plain && e.Began == 0 && e.Tool == "" && e.At == nil && len(e.Counts) == 0
			w.dst = append(w.dst, "[,"[min(i, 1)])
			w.open()
			w.text("call", e.Call)
			w.number("n", e.Number)
			w.optional("status", e.Status)
			w.close()
		}
		w.dst = append(w.dst, ']')
	}
	w.some("from", int(o.From))
	w.number("n", o.Number)
	if o.Tool != nil {
		w.raw("tool", o.Tool)
	}
	w.close()
}

func (w *bodyWriter) some(name string, n int) {
	if n != 0 {
		w.number(name, n)
	}
}

func (w *bodyWriter) number(name string, n int) {
	w.name(name)
	w.dst = strconv.AppendInt(w.dst, int64(n), 10)
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
