package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/tool"
)

// gemini is Google's generateContent.
func gemini() shape {
	return shape{
		plain:       geminiSubset(),
		definitions: geminiDefinitions, request: geminiRequest, turn: geminiTurn, results: geminiResults,
		kept: keptMember("candidates", "content"), text: plainPart,
		user: func(part any) any { return fields{"role": "user", "parts": []any{part}} },
	}
}

func geminiDefinitions(all []definition) []any {
	var declarations []any
	for _, d := range all {
		declarations = append(declarations, fields{
			"name": d.name, "description": orNil(d.description), "parametersJsonSchema": d.schema,
		})
	}
	return []any{fields{"functionDeclarations": declarations}}
}

func geminiRequest(list json.RawMessage, c ToolChoice) (map[string]any, error) {
	out := map[string]any{"tools": list}
	config := fields{}
	switch {
	case c.Single:
		return nil, cannot(Gemini, "at most one call in a turn", "leave Single out, and run the calls of a turn one after the other")
	case c.Mode == "":
		return out, nil
	case c.Mode == Required:
		config["mode"] = "ANY"
	default:
		config["mode"] = strings.ToUpper(string(c.Mode))
	}
	if c.Tool != "" {
		config["allowedFunctionNames"] = []string{c.Tool}
	}
	out["toolConfig"] = fields{"functionCallingConfig": config}
	return out, nil
}

func geminiTurn(raw json.RawMessage) (t turn, err error) {
	content, err := readObject(raw)
	if err != nil {
		return t, err
	}
	if content["candidates"] != nil {
		candidate, err := content.only("candidates")
		if err != nil {
			return t, err
		}
		t.end = endingOf(candidate.text("finishReason"), []string{"STOP"}, []string{"MAX_TOKENS"})
		t.malformed = slices.Contains([]string{"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"}, candidate.text("finishReason"))
		if candidate["content"] == nil {
			return t, nil // nothing was said
		}
		if content, err = candidate.object("content"); err != nil {
			return t, err
		}
	} else if content.text("role") != "model" && content["parts"] == nil {
		return t, errors.New(`want the body of a response with "candidates", or the content of a model`)
	}
	parts, err := content.array("parts")
	if err != nil {
		return t, err
	}
	for _, raw := range parts {
		part, err := readObject(raw)
		if err != nil {
			return t, fmt.Errorf("a part is %w", err)
		}
		switch {
		case part["functionCall"] != nil:
			t.calls = append(t.calls, geminiCall(part))
		case string(part["thought"]) != "true":
			t.text += part.text("text")
		}
	}
	return t, nil
}

func geminiCall(part object) wireCall {
	call, err := part.object("functionCall")
	if err != nil {
		return wireCall{bad: err.Error()}
	}
	f := wireCall{id: call.text("id"), name: call.text("name"), args: call["args"]}
	if f.args == nil {
		f.args = json.RawMessage("{}") // how this format writes that there are none
	}
	return f
}

// geminiResults is one content. A call without an id is matched by its name and its place.
func geminiResults(answers []answer) []any {
	var parts []any
	for _, a := range answers {
		a = a.keep(imageOrPDF)
		response := fields{}
		switch {
		case a.failed:
			response["error"] = a.text
		case a.json != nil:
			response["output"] = a.json
		default:
			response["output"] = a.text
		}
		if len(a.sources) > 0 && !a.failed {
			response["sources"] = a.sources
		}
		function := fields{"id": orNil(a.id), "name": a.name, "response": response}
		var media []any
		for _, p := range a.parts {
			media = append(media, geminiBlob(p))
		}
		if media != nil {
			function["parts"] = media
		}
		parts = append(parts, fields{"functionResponse": function})
	}
	return []any{fields{"role": "user", "parts": parts}}
}

func geminiBlob(p tool.Part) fields {
	return fields{"inlineData": fields{"mimeType": media(p), "data": base64Of(p)}}
}
