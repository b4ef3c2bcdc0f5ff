// Package rawresult carries the result of an upstream tool through the call
// pipeline, so that the client gets it as the upstream wrote it.
//
// A tool that mirrors an upstream tool returns Result, with the whole result
// object as its structured output: policies, filters, Verify and undo see that.
// If such a call fails, its outcome has no result. A slot in the call's context
// then holds the object, or the protocol error of the upstream.
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

// metaKey and metaValue mark a result of an upstream in tool.Result.Meta.
const (
	metaKey   = "mcp"
	metaValue = "result"
)

// Result returns a tool result for a result object of an upstream. Text is what
// a model reads. The result keeps the members of meta beside the mark.
func Result(object json.RawMessage, text string, meta map[string]string) tool.Result {
	all := maps.Clone(meta)
	if all == nil {
		all = map[string]string{}
	}
	all[metaKey] = metaValue
	return tool.Result{Text: text, JSON: object, Meta: all}
}

// Is reports whether Result made a result.
func Is(r tool.Result) bool { return r.Meta[metaKey] == metaValue && len(r.JSON) > 0 }

// Slot holds the upstream response of one call.
type Slot struct {
	note Note // nil: the response does not outlive the process

	mu      sync.Mutex // never held across a wait
	object  json.RawMessage
	refusal *jsonrpc.Error
}

// Note records a note of the call in the journal.
type Note = func(ctx context.Context, key string, value any) error

// refusalKey is the key of the note of a refusal.
const refusalKey = "mcp.refusal"

// storedRefusal is the noted form of a refusal. Data is a string, so that it stays byte
// for byte.
type storedRefusal struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
	Data    string `json:"data,omitempty"`
}

// Last makes a refusal outlive the process: Refuse notes it before the call
// ends. Call Last before the call's code runs.
func (s *Slot) Last(note Note) { s.note = note }

// Kept returns the slot of an ended call, from its notes.
func Kept(notes map[string]json.RawMessage) *Slot {
	s := &Slot{}
	var n storedRefusal
	if text, ok := notes[refusalKey]; ok && json.Unmarshal(text, &n) == nil {
		s.refusal = &jsonrpc.Error{Code: n.Code, Message: n.Message}
		if n.Data != "" {
			s.refusal.Data = json.RawMessage(n.Data)
		}
	}
	return s
}

type slotKey struct{}

// With returns a context with a slot, and the slot.
func With(ctx context.Context) (context.Context, *Slot) {
	s := &Slot{}
	return context.WithValue(ctx, slotKey{}, s), s
}

// Leave stores an object in the context's slot. The last one counts. Without a
// slot it does nothing.
func Leave(ctx context.Context, object json.RawMessage) {
	if s, ok := ctx.Value(slotKey{}).(*Slot); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.object = object
	}
}

// Refuse stores the upstream's error in the context's slot. Without a slot it
// does nothing. If the error must outlive the process and cannot be noted,
// Refuse drops it, so that later reads of the call agree.
func Refuse(ctx context.Context, refusal *jsonrpc.Error) {
	if s, ok := ctx.Value(slotKey{}).(*Slot); ok {
		if s.note != nil && s.note(ctx, refusalKey, storedRefusal{refusal.Code, refusal.Message, string(refusal.Data)}) != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refusal = refusal
	}
}

// Refusal returns the upstream's error, or nil.
func (s *Slot) Refusal() *jsonrpc.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusal
}

// Left returns the stored object, or nil.
func (s *Slot) Left() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.object
}

// Original returns the stored object, byte for byte as its upstream wrote it,
// if the result still contains it. If the result was redacted or replaced,
// Original returns the JSON of the result.
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
