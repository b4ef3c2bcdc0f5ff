package wire

import (
	"encoding/json"
	"errors"
)

// openAIChat is OpenAI's Chat Completions.
func openAIChat() shape {
	return shape{
		ids: true, plain: passthrough(), strict: openAIStrict(),
		definitions: chatDefinitions, request: chatRequest, turn: chatTurn, results: chatResults,
		kept: keptMember("choices", "message"), text: plainText, user: userContent,
	}
}

func chatDefinitions(all []definition) (list []any) {
	for _, d := range all {
		var strict any
		if d.strict {
			strict = true // servers that speak this format without the mode refuse the word
		}
		list = append(list, fields{"type": "function", "function": fields{
			"name": d.name, "description": orNil(d.description), "parameters": d.schema, "strict": strict,
		}})
	}
	return list
}

func chatRequest(list json.RawMessage, c ToolChoice) (map[string]any, error) {
	out := map[string]any{"tools": list}
	if c.Tool != "" {
		out["tool_choice"] = fields{"type": "function", "function": fields{"name": c.Tool}}
	} else if c.Mode != "" {
		out["tool_choice"] = string(c.Mode)
	}
	if c.Single {
		out["parallel_tool_calls"] = false
	}
	return out, nil
}

func chatTurn(raw json.RawMessage) (t turn, err error) {
	message, err := readObject(raw)
	if err != nil {
		return t, err
	}
	if message["choices"] != nil {
		choice, err := message.only("choices")
		if err != nil {
			return t, err
		}
		t.end = endingOf(choice.text("finish_reason"), []string{"tool_calls", "stop", "function_call"}, []string{"length"})
		if message, err = choice.object("message"); err != nil {
			return t, err
		}
	}
	if message.text("role") != "assistant" {
		return t, errors.New(`want the body of a response with "choices", or the message of an assistant`)
	}
	t.text = message.text("content")
	list, err := message.array("tool_calls")
	if err != nil {
		return t, err
	}
	for _, raw := range list {
		if f, ours := nestedCall(raw); ours {
			t.calls = append(t.calls, f)
		}
	}
	return t, nil
}

// nestedCall is a call whose name and arguments lie in a member "function". One of another type is not ours.
func nestedCall(raw json.RawMessage) (f wireCall, ours bool) {
	call, err := readObject(raw)
	if err != nil {
		return wireCall{bad: "the call is " + err.Error()}, true
	}
	f.id = call.text("id")
	if kind := call.text("type"); kind != "" && kind != "function" {
		return f, false
	}
	function, err := call.object("function")
	if err != nil {
		f.bad = err.Error()
		return f, true
	}
	f.name = function.text("name")
	f.arguments(function["arguments"])
	return f, true
}

// arguments takes arguments that are a text which holds JSON.
func (f *wireCall) arguments(raw json.RawMessage) {
	f.written = true
	if raw == nil {
		return
	}
	if raw[0] != '"' {
		f.bad = "its arguments are no text, want a text that holds one JSON object"
		return
	}
	text, ok := textOf(raw)
	if !ok {
		f.bad = "its arguments are a text with half a character in it"
		return
	}
	f.args = json.RawMessage(text)
}

func chatResults(answers []answer) (messages []any) {
	for _, a := range answers {
		a = a.keep(noParts).cite()
		messages = append(messages, fields{"role": "tool", "tool_call_id": a.id, "content": a.unmarked()})
	}
	return messages
}
