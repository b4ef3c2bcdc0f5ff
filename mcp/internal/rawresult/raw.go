// Package rawresult carries the result of another server's tool through the line of a call, so that whoever asked
// for it gets it as that server wrote it.
//
// A tool that stands for one of another server returns Result, with the whole result object as its structured
// output: policies, filters, Verify and undo see that. Where such a call fails, an outcome has no result; the
// object, or the error of the protocol that the server answered with, is then found in a slot of the call's context.
package rawresult

import (
	"context"
	"encoding/json"
	"maps"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/tool"
)

// The mark of a result in tool.Result.Meta.
const (
	metaKey   = "mcp"
	metaValue = "result"
)

// Result is what a tool returns that got this result object of a server; text is what a model reads of it.
// Members of meta are kept beside the mark.
func Result(object json.RawMessage, text string, meta map[string]string) tool.Result {
	all := maps.Clone(meta)
	if all == nil {
		all = map[string]string{}
	}
	all[metaKey] = metaValue
	return tool.Result{Text: text, JSON: object, Meta: all}
}

// Is reports whether a result is one that Result made.
func Is(r tool.Result) bool { return r.Meta[metaKey] == metaValue && len(r.JSON) > 0 }

// Slot is where one call leaves what it got.
type Slot struct {
	note Note // nil: nobody wants to know when the process is gone

	mu      sync.Mutex // never held across a wait
	object  json.RawMessage
	refusal *jsonrpc.Error
}

// Note notes something of the call on the journal.
type Note = func(ctx context.Context, key string, value any) error

// refusalKey is of the note of a refusal.
const refusalKey = "mcp.refusal"

// noted is a refusal as it is noted. Data is a text, so that it stays as it was written.
type noted struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
	Data    string `json:"data,omitempty"`
}

// Last has a refusal outlive the process: it is noted before the call ends. It is called before the call's code runs.
func (s *Slot) Last(note Note) { s.note = note }

// Kept is the slot of a call that has ended, as far as its notes tell.
func Kept(notes map[string]json.RawMessage) *Slot {
	s := &Slot{}
	var n noted
	if text, ok := notes[refusalKey]; ok && json.Unmarshal(text, &n) == nil {
		s.refusal = &jsonrpc.Error{Code: n.Code, Message: n.Message}
		if n.Data != "" {
			s.refusal.Data = json.RawMessage(n.Data)
		}
	}
	return s
}

type slotKey struct{}

// With returns a context whose call can leave an object, and the slot that it is left in.
func With(ctx context.Context) (context.Context, *Slot) {
	s := &Slot{}
	return context.WithValue(ctx, slotKey{}, s), s
}

// Leave puts an object into the slot of the context, the last one counts; nothing happens without a slot.
func Leave(ctx context.Context, object json.RawMessage) {
	if s, ok := ctx.Value(slotKey{}).(*Slot); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.object = object
	}
}

// Refuse puts the error that a server answered with into the slot of the context; nothing happens without a slot. Where it is to last and
// cannot be noted it is left out: what is told of a call is the same whenever it is told.
func Refuse(ctx context.Context, refusal *jsonrpc.Error) {
	if s, ok := ctx.Value(slotKey{}).(*Slot); ok {
		if s.note != nil && s.note(ctx, refusalKey, noted{refusal.Code, refusal.Message, string(refusal.Data)}) != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refusal = refusal
	}
}

// Refusal returns the error that a server answered with, nil where it answered with none.
func (s *Slot) Refusal() *jsonrpc.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusal
}

// Left returns the object that was left, nil where none was.
func (s *Slot) Left() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.object
}

// Original returns the object that was left if it is what a result holds, byte for byte as its server wrote it: a
// result that was redacted or replaced on its way is another one, and is returned itself.
func (s *Slot) Original(r tool.Result) json.RawMessage {
	left := s.Left()
	if left == nil {
		return r.JSON
	}
	if same, err := canon.Canonicalize(left, canon.DefaultLimits()); err != nil || string(same) != string(r.JSON) {
		return r.JSON
	}
	return left
}
