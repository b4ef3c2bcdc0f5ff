// Package fakemodel is a scripted model in the wire format of a provider. It
// rejects each request that the provider would reject. It plays the model in
// tests and examples, and shares no code with the code under test.
package fakemodel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
)

// Turn is the model's output in one turn.
type Turn struct {
	Text  string
	Calls []Call
	// Before is called before a stand-in says the turn, if set.
	Before func()
}

// Call is one call that the model requests.
type Call struct {
	Tool string
	// Args are the arguments that it writes. Invalid JSON is sent as a text, or
	// as Other in formats whose arguments are JSON.
	Args, Other string
	ID          string // generated if empty
	NoID        bool
}

// ModelMessage is the result of one call as the model received it.
type ModelMessage struct {
	ID, Tool, Text string
	Failed         bool
}

// Model plays a script, a turn for each request, to one client. It is safe for
// concurrent use.
type Model struct {
	format provider
	script []Turn

	mu       sync.Mutex       // never held across a wait
	answered int              // number of answered requests
	received [][]ModelMessage // after each turn
	requests []map[string]json.RawMessage
}

// provider is one format.
type provider struct {
	textArgs  bool // arguments are a text
	withoutID bool // calls have no ID
	history   string
	// write returns the body of a response, and its parts that must be in the
	// history, in order.
	write func(t Turn, n int) (body string, history []string)
	// read checks a history, and returns the results of the last turn with
	// calls.
	read  func(history []json.RawMessage, calls []Call) ([]ModelMessage, error)
	tools string // the required member of a request with calls; "": none
}

// New returns a model for a format: openai_chat, openai_responses, anthropic,
// gemini, bedrock or ollama.
func New(format string, script ...Turn) (*Model, error) {
	p, ok := providers()[format]
	if !ok {
		return nil, fmt.Errorf("scripted: unknown format %q", format)
	}
	return &Model{format: p, script: script}, nil
}

func providers() map[string]provider {
	return map[string]provider{
		"openai_chat":      {textArgs: true, history: "messages", write: writeChat, read: readChat},
		"openai_responses": {textArgs: true, history: "input", write: writeResponses, read: readResponses},
		"anthropic":        {history: "messages", write: writeAnthropic, read: readAnthropic, tools: "tools"},
		"gemini":           {history: "contents", withoutID: true, write: writeGemini, read: readGemini},
		"bedrock":          {history: "messages", write: writeBedrock, read: readBedrock, tools: "toolConfig"},
		"ollama":           {history: "messages", withoutID: true, write: writeOllama, read: readOllama},
	}
}

// Body returns the body of a request with a history and the members about
// tools.
func (m *Model) Body(history []json.RawMessage, members map[string]json.RawMessage) ([]byte, error) {
	all := map[string]any{m.format.history: history}
	for name, value := range members {
		all[name] = value
	}
	return json.Marshal(all)
}

// User returns the first message of a user.
func (m *Model) User(text string) json.RawMessage {
	quoted := quote(text)
	switch {
	case m.format.history == "contents":
		return json.RawMessage(`{"role":"user","parts":[{"text":` + quoted + `}]}`)
	case m.format.tools == "toolConfig":
		return json.RawMessage(`{"role":"user","content":[{"text":` + quoted + `}]}`)
	default:
		return json.RawMessage(`{"role":"user","content":` + quoted + `}`)
	}
}

// Answer returns the body of the response to a request, or the error for which
// the provider would reject the request.
func (m *Model) Answer(body []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var request map[string]json.RawMessage
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, fmt.Errorf("no JSON: %w", err)
	}
	var history []json.RawMessage
	if err := json.Unmarshal(request[m.format.history], &history); err != nil || len(history) == 0 {
		return nil, fmt.Errorf("%q is missing or empty", m.format.history)
	}
	at, last, err := m.turnOf(history)
	if err != nil {
		return nil, err
	}
	told, err := m.format.read(history, last)
	if err != nil {
		return nil, err
	}
	if m.format.tools != "" && len(last) > 0 && request[m.format.tools] == nil {
		return nil, fmt.Errorf("%q is missing, and the history speaks of tools", m.format.tools)
	}
	if at >= len(m.script) {
		return nil, fmt.Errorf("the script has %d turns, and another is asked for", len(m.script))
	}
	m.received = append(m.received[:min(at, len(m.received))], told)
	m.requests = append(m.requests, request)
	m.answered++
	answer, _, _ := m.turn(at)
	return []byte(answer), nil
}

// turn returns the model's n-th turn: the body of a response, its parts that
// must be in the history, and its calls.
func (m *Model) turn(n int) (body string, history []string, calls []Call) {
	t := m.script[n]
	calls = make([]Call, len(t.Calls))
	for i, c := range t.Calls {
		if c.ID == "" && !c.NoID && !m.format.withoutID {
			c.ID = fmt.Sprintf("call_%d_%d", n+1, i)
		}
		if !m.format.textArgs && !json.Valid([]byte(c.Args)) {
			c.Args = c.Other
		}
		calls[i] = c
	}
	t.Calls = calls
	body, history = m.format.write(t, n+1)
	return body, history, calls
}

// turnOf returns which turn follows a history, and the calls of the turn
// before. The model's own output must be unchanged. A repeated request gets the
// same turn.
func (m *Model) turnOf(history []json.RawMessage) (n int, calls []Call, err error) {
	var own []json.RawMessage
	for _, raw := range history {
		var msg message
		if err := decode(raw, &msg); err != nil {
			return 0, nil, err
		}
		if msg.Role == "assistant" || msg.Role == "model" || msg.Type == "function_call" || msg.Type == "reasoning" {
			own = append(own, raw)
		}
	}
	for ; len(own) > 0; n++ {
		if n == len(m.script) {
			return 0, nil, errors.New("the history holds turns that nobody has said")
		}
		var sent []string
		_, sent, calls = m.turn(n)
		for i, s := range sent {
			if i >= len(own) || !same([]byte(s), own[i]) {
				return 0, nil, fmt.Errorf("the history does not hold this as it was sent: %s", s)
			}
		}
		own = own[len(sent):]
	}
	return n, calls, nil
}

func same(a, b []byte) bool {
	var values [2]any
	for i, raw := range [][]byte{a, b} {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if d.Decode(&values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// Received returns the results that the model received.
func (m *Model) Received() []ModelMessage {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []ModelMessage
	for _, t := range m.received {
		all = append(all, t...)
	}
	return all
}

// Request returns the members of the n-th request, from 0; nil if there was
// none.
func (m *Model) Request(n int) map[string]json.RawMessage {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n >= len(m.requests) {
		return nil
	}
	return m.requests[n]
}

// Answered returns the number of answered requests.
func (m *Model) Answered() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.answered
}

func quote(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(raw)
}

// answered checks that each call has one result, in any order, by its ID.
func answered(calls []Call, told []ModelMessage) ([]ModelMessage, error) {
	byID := map[string]ModelMessage{}
	for _, t := range told {
		if _, twice := byID[t.ID]; twice {
			return nil, fmt.Errorf("call %q is answered twice", t.ID)
		}
		byID[t.ID] = t
	}
	if len(told) != len(calls) {
		return nil, fmt.Errorf("%d calls have %d answers", len(calls), len(told))
	}
	out := make([]ModelMessage, len(calls))
	for i, c := range calls {
		t, ok := byID[c.ID]
		if !ok {
			return nil, fmt.Errorf("call %q has no answer", c.ID)
		}
		if t.Text == "" {
			return nil, fmt.Errorf("the answer to call %q is empty", c.ID)
		}
		t.Tool = c.Tool
		out[i] = t
	}
	return out, nil
}

// ordered checks that each call has its result in order, by the name of its
// tool.
func ordered(calls []Call, told []ModelMessage) ([]ModelMessage, error) {
	if len(told) != len(calls) {
		return nil, fmt.Errorf("%d calls have %d answers", len(calls), len(told))
	}
	for i, c := range calls {
		switch {
		case told[i].Tool != c.Tool:
			return nil, fmt.Errorf("answer %d is of %q, and its call of %q", i, told[i].Tool, c.Tool)
		case told[i].ID != "" && told[i].ID != c.ID:
			return nil, fmt.Errorf("answer %d is to %q, and its call is %q", i, told[i].ID, c.ID)
		case told[i].Text == "":
			return nil, fmt.Errorf("answer %d is empty", i)
		}
	}
	return told, nil
}

// message is a message of all formats but Gemini's.
type message struct {
	Role       string            `json:"role"`
	Type       string            `json:"type"`
	Content    json.RawMessage   `json:"content"`
	ToolCallID string            `json:"tool_call_id"`
	ToolName   string            `json:"tool_name"`
	ToolCalls  []json.RawMessage `json:"tool_calls"`
	CallID     string            `json:"call_id"`
	Output     json.RawMessage   `json:"output"`
}

func decode(raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("a message cannot be read: %w", err)
	}
	return nil
}

func text(raw json.RawMessage) (string, error) {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", errors.New("the content is no text")
	}
	return s, nil
}

// marked removes the error mark from a text.
func marked(s string) (string, bool) {
	const mark = "Error: "
	if len(s) >= len(mark) && s[:len(mark)] == mark {
		return s[len(mark):], true
	}
	return s, false
}
