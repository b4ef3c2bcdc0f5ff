package fakemodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

func writeChat(t Turn, n int) (string, []string) {
	var calls []string
	for _, c := range t.Calls {
		calls = append(calls, `{`+idMember("id", c)+`"type":"function","function":{"name":`+quote(c.Tool)+`,"arguments":`+quote(c.Args)+`}}`)
	}
	finish, tools := "stop", ""
	if calls != nil {
		finish, tools = "tool_calls", `,"tool_calls":[`+strings.Join(calls, ",")+`]`
	}
	m := fmt.Sprintf(`{"role":"assistant","content":%s,"refusal":null,"reasoning_details":[{"opaque":"sig-%d","n":1.50}]%s}`, quote(t.Text), n, tools)
	return fmt.Sprintf(`{"id":"chatcmpl-%d","object":"chat.completion","choices":[{"index":0,"message":%s,"finish_reason":%q}],"usage":{"total_tokens":%d}}`,
		n, m, finish, 10*n), []string{m}
}

// readChat checks that the messages right after one with calls contain one
// result for each.
func readChat(history []json.RawMessage, calls []Call) (told []ModelMessage, err error) {
	return readRoles(history, calls, answered, func(m message) (ModelMessage, error) {
		content, err := text(m.Content)
		if err != nil {
			return ModelMessage{}, err
		}
		content, failed := marked(content)
		return ModelMessage{ID: m.ToolCallID, Text: content, Failed: failed}, nil
	})
}

// readRoles reads histories in which results are messages of the role tool.
func readRoles(history []json.RawMessage, calls []Call, judge func([]Call, []ModelMessage) ([]ModelMessage, error), read func(message) (ModelMessage, error)) (told []ModelMessage, err error) {
	open := 0
	for i, raw := range history {
		var m message
		if err := decode(raw, &m); err != nil {
			return nil, err
		}
		if m.Role != "tool" && open > 0 {
			return nil, fmt.Errorf("message %d has the role %q, and %d calls before it have no answer", i, m.Role, open)
		}
		switch m.Role {
		case "assistant":
			open, told = len(m.ToolCalls), nil
		case "tool":
			if open--; open < 0 {
				return nil, fmt.Errorf("message %d answers no call", i)
			}
			t, err := read(m)
			if err != nil {
				return nil, err
			}
			told = append(told, t)
		case "user", "system", "developer":
			if content, err := text(m.Content); err != nil || content == "" {
				return nil, fmt.Errorf("message %d has no text", i)
			}
		default:
			return nil, fmt.Errorf("message %d has the role %q", i, m.Role)
		}
	}
	if open > 0 {
		return nil, fmt.Errorf("%d calls have no answer", open)
	}
	if len(calls) == 0 {
		return nil, nil
	}
	return judge(calls, told)
}

func idMember(name string, c Call) string {
	if c.ID == "" {
		return ""
	}
	return quote(name) + ":" + quote(c.ID) + ","
}

func writeResponses(t Turn, n int) (string, []string) {
	items := []string{fmt.Sprintf(`{"type":"reasoning","id":"rs_%d","summary":[],"encrypted_content":"opaque-%d"}`, n, n)}
	if t.Text != "" {
		items = append(items, fmt.Sprintf(`{"type":"message","id":"msg_%d","role":"assistant","status":"completed","content":[{"type":"output_text","text":%s,"annotations":[]}]}`, n, quote(t.Text)))
	}
	for i, c := range t.Calls {
		items = append(items, fmt.Sprintf(`{"type":"function_call","id":"fc_%d_%d",%s"name":%s,"arguments":%s,"status":"completed"}`,
			n, i, idMember("call_id", c), quote(c.Tool), quote(c.Args)))
	}
	return fmt.Sprintf(`{"id":"resp_%d","object":"response","status":"completed","output":[%s],"usage":{"total_tokens":%d}}`, n, strings.Join(items, ","), 10*n), items
}

// readResponses checks that each call has one output after it. A message of the
// user closes open calls.
func readResponses(history []json.RawMessage, calls []Call) (told []ModelMessage, err error) {
	open := 0
	for i, raw := range history {
		var m message
		if err := decode(raw, &m); err != nil {
			return nil, err
		}
		switch {
		case m.Type == "function_call":
			if len(told) > 0 && open == 0 {
				told = nil
			}
			open++
		case m.Type == "function_call_output":
			if open--; open < 0 {
				return nil, fmt.Errorf("item %d answers no call", i)
			}
			output, err := text(m.Output)
			if err != nil {
				return nil, err
			}
			output, failed := marked(output)
			told = append(told, ModelMessage{ID: m.CallID, Text: output, Failed: failed})
		case open > 0 && m.Role == "user":
			return nil, fmt.Errorf("item %d comes before the outputs of %d calls", i, open)
		case m.Role == "user" || m.Type == "message" || m.Type == "reasoning":
		default:
			return nil, fmt.Errorf("item %d is of no known type: %q", i, m.Type)
		}
	}
	switch {
	case open > 0:
		return nil, errors.New("no tool output found for a function call")
	case len(calls) == 0:
		return nil, nil
	}
	return answered(calls, told)
}

func writeOllama(t Turn, n int) (string, []string) {
	var calls []string
	for i, c := range t.Calls {
		calls = append(calls, fmt.Sprintf(`{%s"function":{"index":%d,"name":%s,"arguments":%s}}`, idMember("id", c), i, quote(c.Tool), c.Args))
	}
	tools := ""
	if calls != nil {
		tools = `,"tool_calls":[` + strings.Join(calls, ",") + `]`
	}
	m := fmt.Sprintf(`{"role":"assistant","content":%s,"thinking":"opaque %d"%s}`, quote(t.Text), n, tools)
	return fmt.Sprintf(`{"model":"m","created_at":"2026-01-01T00:00:00Z","message":%s,"done_reason":"stop","done":true,"eval_count":%d}`, m, n), []string{m}
}

// readOllama checks results in the order of the calls; they may have no IDs.
func readOllama(history []json.RawMessage, calls []Call) ([]ModelMessage, error) {
	return readRoles(history, calls, ordered, func(m message) (ModelMessage, error) {
		content, err := text(m.Content)
		if err != nil {
			return ModelMessage{}, err
		}
		content, failed := marked(content)
		return ModelMessage{Tool: m.ToolName, Text: content, Failed: failed}, nil
	})
}
