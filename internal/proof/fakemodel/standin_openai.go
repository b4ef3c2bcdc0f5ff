package fakemodel

import (
	"encoding/json"
	"fmt"
	"strings"
)

func parseResponses(body []byte) (h incoming, err error) {
	var request struct {
		Model string
		Tools []json.RawMessage
		Input []struct {
			Type, Role string
			Content    json.RawMessage
			CallID     string `json:"call_id"`
			Output     json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return incoming{}, err
	}
	h.model, h.tools = request.Model, len(request.Tools) > 0
	for _, item := range request.Input {
		switch {
		case item.Type == "additional_tools":
			h.tools = true
		case item.Type == "function_call_output" || item.Type == "custom_tool_call_output":
			h.parts = append(h.parts, part{text: texts(item.Output), callID: item.CallID})
		case item.Role == "user" || item.Type == "agent_message":
			h.parts = append(h.parts, part{text: texts(item.Content)})
		}
	}
	return h, nil
}

// sayResponses writes a response. A call whose arguments are a JSON string is
// one of a custom tool, whose input is a text.
func sayResponses(w *reply, t Turn, n int) {
	var items []string
	if t.Text != "" {
		items = append(items, fmt.Sprintf(`{"type":"message","id":"msg_%d","role":"assistant","status":"completed","content":[{"type":"output_text","text":%s,"annotations":[]}]}`,
			n, quote(t.Text)))
	}
	for i, c := range t.Calls {
		kind, input := "function_call", `"arguments":`+quote(c.Args)
		namespace, name, found := strings.Cut(c.Tool, "/")
		if found {
			c.Tool, input = name, input+`,"namespace":`+quote(namespace)
		}
		if s, err := text(json.RawMessage(c.Args)); err == nil {
			kind, input = "custom_tool_call", `"input":`+quote(s)
		}
		items = append(items, fmt.Sprintf(`{"type":%q,"id":"fc_%d_%d","call_id":%s,"name":%s,%s,"status":"completed"}`,
			kind, n, i, quote(c.ID), quote(c.Tool), input))
	}
	response := func(status, output string) string {
		return fmt.Sprintf(`{"id":"resp_%d","object":"response","created_at":1700000000,"model":%s,"status":%q,"output":[%s],`+
			`"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":0},"output_tokens":10,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":20}}`,
			n, quote(w.model), status, output)
	}
	if !w.stream {
		w.whole(response("completed", strings.Join(items, ",")))
		return
	}
	w.event("response.created", `{"type":"response.created","response":`+response("in_progress", "")+`}`)
	for i, item := range items {
		w.event("response.output_item.added", fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":%s}`, i, item))
		w.event("response.output_item.done", fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, item))
	}
	w.event("response.completed", `{"type":"response.completed","response":`+response("completed", strings.Join(items, ","))+`}`)
}

func parseChat(body []byte) (h incoming, err error) {
	var request struct {
		Model    string
		Tools    []json.RawMessage
		Messages []struct {
			Role       string
			Content    json.RawMessage
			ToolCallID string `json:"tool_call_id"`
		}
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return incoming{}, err
	}
	h.model, h.tools = request.Model, len(request.Tools) > 0
	for _, m := range request.Messages {
		if m.Role == "user" || m.Role == "tool" {
			h.parts = append(h.parts, part{text: texts(m.Content), callID: m.ToolCallID})
		}
	}
	return h, nil
}

func sayChat(w *reply, t Turn, n int) {
	var calls []string
	for i, c := range t.Calls {
		calls = append(calls, fmt.Sprintf(`{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}`, i, quote(c.ID), quote(c.Tool), quote(c.Args)))
	}
	finish, tools := "stop", ""
	if calls != nil {
		finish, tools = "tool_calls", `,"tool_calls":[`+strings.Join(calls, ",")+`]`
	}
	message := `{"role":"assistant","content":` + quote(t.Text) + tools + `}`
	const usage = `"usage":{"prompt_tokens":10,"completion_tokens":10,"total_tokens":20}`
	head := fmt.Sprintf(`"id":"chatcmpl-%d","created":1700000000,"model":%s`, n, quote(w.model))
	if !w.stream {
		w.whole(fmt.Sprintf(`{%s,"object":"chat.completion","choices":[{"index":0,"message":%s,"finish_reason":%q}],%s}`, head, message, finish, usage))
		return
	}
	w.event("", fmt.Sprintf(`{%s,"object":"chat.completion.chunk","choices":[{"index":0,"delta":%s,"finish_reason":null}]}`, head, message))
	w.event("", fmt.Sprintf(`{%s,"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":%q}],%s}`, head, finish, usage))
	w.event("", "[DONE]")
}
