package wire

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
)

// ollama is Ollama's /api/chat.
func ollama() shape {
	return shape{
		plain:       ollamaSubset(),
		definitions: ollamaDefinitions, request: ollamaRequest, turn: ollamaTurn, results: ollamaResults,
		kept: keptMember("message"), text: plainText, user: userContent,
	}
}

// ollamaDefinitions are those of Chat Completions, with what the schema says of the arguments as a whole in the description of
// the tool: Ollama knows no description where it stands.
func ollamaDefinitions(all []definition) []any {
	list := slices.Clone(all)
	for i, d := range list {
		schema, err := readObject(d.schema)
		if err != nil || schema["description"] == nil {
			continue
		}
		list[i].description = strings.TrimSpace(d.description + " " + schema.text("description"))
		delete(schema, "description")
		if raw, err := canon.Marshal(schema); err == nil {
			list[i].schema = raw
		}
	}
	return chatDefinitions(list)
}

func ollamaRequest(list json.RawMessage, c ToolChoice) (map[string]any, error) {
	switch {
	case c.Single:
		return nil, cannot(Ollama, "at most one call in a turn", "leave Single out, and run the calls of a turn one after the other")
	case c.Mode == Required:
		return nil, cannot(Ollama, "a call", "it has no choice of tools; leave the choice out, or say in the prompt what is wanted")
	case c.Mode == None:
		return nil, cannot(Ollama, "no call", "it has no choice of tools; leave the tools out of the request")
	}
	return map[string]any{"tools": list}, nil
}

func ollamaTurn(raw json.RawMessage) (t turn, err error) {
	message, err := readObject(raw)
	if err != nil {
		return t, err
	}
	if message["message"] != nil {
		t.end = endingOf(message.text("done_reason"), []string{"stop"}, []string{"length"})
		if message, err = message.object("message"); err != nil {
			return t, err
		}
	}
	if message.text("role") != "assistant" {
		return t, errors.New(`want the body of a response with "message", or the message of an assistant`)
	}
	t.text = message.text("content")
	list, err := message.array("tool_calls")
	if err != nil {
		return t, err
	}
	for _, raw := range list {
		t.calls = append(t.calls, ollamaCall(raw))
	}
	return t, nil
}

func ollamaCall(raw json.RawMessage) wireCall {
	call, err := readObject(raw)
	if err != nil {
		return wireCall{bad: "the call is " + err.Error()}
	}
	f := wireCall{id: call.text("id")}
	function, err := call.object("function")
	if err != nil {
		f.bad = err.Error()
		return f
	}
	f.name, f.args = function.text("name"), function["arguments"]
	return f
}

func ollamaResults(answers []answer) (messages []any) {
	for _, a := range answers {
		a = a.keep(noParts).cite()
		messages = append(messages, fields{"role": "tool", "tool_name": a.name, "tool_call_id": orNil(a.id), "content": a.unmarked()})
	}
	return messages
}
