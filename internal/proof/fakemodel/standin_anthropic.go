package fakemodel

import (
	"encoding/json"
	"fmt"
)

func parseAnthropic(body []byte) (h incoming, err error) {
	var request struct {
		Model    string
		Tools    []json.RawMessage
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return incoming{}, err
	}
	h.model, h.tools = request.Model, len(request.Tools) > 0
	for _, m := range request.Messages {
		if m.Role != "user" {
			continue
		}
		if s, err := text(m.Content); err == nil {
			h.parts = append(h.parts, part{text: s})
			continue
		}
		var blocks []struct {
			Type, Text string
			ToolUseID  string `json:"tool_use_id"`
			IsError    bool   `json:"is_error"`
			Content    json.RawMessage
		}
		if err := json.Unmarshal(m.Content, &blocks); err != nil {
			return incoming{}, err
		}
		for _, b := range blocks {
			if b.Type == "tool_result" {
				b.Text = texts(b.Content)
			}
			h.parts = append(h.parts, part{text: b.Text, callID: b.ToolUseID, failed: b.IsError})
		}
	}
	return h, nil
}

// sayAnthropic writes a message. See "Streaming messages" of Anthropic's API.
func sayAnthropic(w *reply, t Turn, n int) {
	stop := "end_turn"
	var blocks, deltas []string
	if t.Text != "" {
		blocks, deltas = append(blocks, `{"type":"text","text":%s}`), append(deltas, quote(t.Text))
	}
	for _, c := range t.Calls {
		stop = "tool_use"
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":%%s}`, quote(c.ID), quote(c.Tool)))
		deltas = append(deltas, c.Args)
	}
	const usage = `"usage":{"input_tokens":10,"output_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}`
	message := func(content, stop string) string {
		return fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","model":%s,"content":[%s],"stop_reason":%s,"stop_sequence":null,%s}`,
			n, quote(w.model), content, stop, usage)
	}
	if !w.stream {
		content := ""
		for i, b := range blocks {
			if i > 0 {
				content += ","
			}
			content += fmt.Sprintf(b, deltas[i])
		}
		w.whole(message(content, quote(stop)))
		return
	}
	w.event("message_start", `{"type":"message_start","message":`+message("", "null")+`}`)
	for i, b := range blocks {
		empty, delta := `""`, `{"type":"text_delta","text":`+deltas[i]+`}`
		if i > 0 || t.Text == "" {
			empty, delta = `{}`, `{"type":"input_json_delta","partial_json":`+quote(deltas[i])+`}`
		}
		w.event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, fmt.Sprintf(b, empty)))
		w.event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, delta))
		w.event("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
	}
	w.event("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},%s}`, stop, usage))
	w.event("message_stop", `{"type":"message_stop"}`)
}
