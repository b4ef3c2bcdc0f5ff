package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// anthropic is Anthropic's Messages.
func anthropic() shape {
	return shape{
		ids: true, plain: passthrough(), strict: anthropicStrict(),
		definitions: anthropicDefinitions, request: anthropicRequest, turn: anthropicTurn, results: anthropicResults,
		kept: anthropicKept, text: textPart, user: userContentList, alternates: true,
	}
}

func anthropicDefinitions(all []definition) (list []any) {
	for _, d := range all {
		var strict any
		if d.strict {
			strict = true
		}
		list = append(list, fields{"name": d.name, "description": orNil(d.description), "input_schema": d.schema, "strict": strict})
	}
	return list
}

func anthropicRequest(list json.RawMessage, c ToolChoice) (map[string]any, error) {
	out := map[string]any{"tools": list}
	choice := fields{"type": "auto"}
	switch {
	case c.Tool != "":
		choice = fields{"type": "tool", "name": c.Tool}
	case c.Mode == Required:
		choice = fields{"type": "any"}
	case c.Mode == None:
		choice = fields{"type": "none"}
	case c.Mode == "" && !c.Single:
		return out, nil
	}
	if c.Single {
		choice["disable_parallel_tool_use"] = true
	}
	out["tool_choice"] = choice
	return out, nil
}

func anthropicTurn(raw json.RawMessage) (t turn, err error) {
	message, err := readObject(raw)
	if err != nil {
		return t, err
	}
	if message.text("role") != "assistant" || message["content"] == nil {
		return t, errors.New(`want the message of an assistant with "content"`)
	}
	t.end = endingOf(message.text("stop_reason"),
		[]string{"tool_use", "end_turn", "stop_sequence", "pause_turn"}, []string{"max_tokens", "model_context_window_exceeded"})
	t.paused = message.text("stop_reason") == "pause_turn"
	if message["content"][0] == '"' {
		t.text = message.text("content") // a text alone
		return t, nil
	}
	blocks, err := message.array("content")
	if err != nil {
		return t, err
	}
	for _, raw := range blocks {
		block, err := readObject(raw)
		if err != nil {
			return t, fmt.Errorf("a block of the content is %w", err)
		}
		switch block.text("type") {
		case "text":
			t.text += block.text("text")
		case "tool_use":
			t.calls = append(t.calls, wireCall{id: block.text("id"), name: block.text("name"), args: block["input"]})
		}
	}
	return t, nil
}

// anthropicKept is a message of what a request takes: the rest of a response is refused there.
func anthropicKept(raw json.RawMessage) ([]json.RawMessage, error) {
	message, err := readObject(raw)
	if err != nil {
		return nil, err
	}
	var list bytes.Buffer
	list.WriteString(`{"role":"assistant","content":`)
	list.Write(message["content"])
	list.WriteByte('}')
	return []json.RawMessage{list.Bytes()}, nil
}

// anthropicResults is one message: the results of a turn split over several would teach the model to call one at a time.
func anthropicResults(answers []answer) []any {
	var blocks []any
	for _, a := range answers {
		a = a.keep(imageOrPDF).cite()
		var content []any
		if a.text != "" {
			content = append(content, fields{"type": "text", "text": a.text})
		}
		for _, p := range a.parts {
			kind := "document"
			if isImage(media(p)) {
				kind = "image"
			}
			source := fields{"type": "base64", "media_type": media(p), "data": base64Of(p)}
			content = append(content, fields{"type": kind, "source": source})
		}
		block := fields{"type": "tool_result", "tool_use_id": a.id, "content": content}
		if a.failed {
			block["is_error"] = true
		}
		blocks = append(blocks, block)
	}
	return []any{fields{"role": "user", "content": blocks}}
}
