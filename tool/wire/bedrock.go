package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/remit-dev/remit/tool"
)

// bedrock is Amazon Bedrock's Converse.
func bedrock() shape {
	return shape{
		ids: true, plain: passthrough(), strict: anthropicStrict(),
		definitions: bedrockDefinitions, request: bedrockRequest, turn: bedrockTurn, results: bedrockResults,
		kept: keptMember("output", "message"), text: plainPart, user: userContentList, alternates: true,
	}
}

func bedrockDefinitions(all []definition) (list []any) {
	for _, d := range all {
		var strict any
		if d.strict {
			strict = true
		}
		list = append(list, fields{"toolSpec": fields{
			"name": d.name, "description": orNil(d.description), "inputSchema": fields{"json": d.schema}, "strict": strict,
		}})
	}
	return list
}

func bedrockRequest(list json.RawMessage, c ToolChoice) (map[string]any, error) {
	config := fields{"tools": list}
	switch {
	case c.Single:
		return nil, cannot(Bedrock, "at most one call in a turn", "leave Single out; some models have a switch in additionalModelRequestFields")
	case c.Mode == None:
		return nil, cannot(Bedrock, "no call", "leave the tools out of a request whose history speaks of none")
	case c.Tool != "":
		config["toolChoice"] = fields{"tool": fields{"name": c.Tool}}
	case c.Mode == Required:
		config["toolChoice"] = fields{"any": fields{}}
	case c.Mode == Auto:
		config["toolChoice"] = fields{"auto": fields{}}
	}
	return map[string]any{"toolConfig": config}, nil
}

func bedrockTurn(raw json.RawMessage) (t turn, err error) {
	message, err := readObject(raw)
	if err != nil {
		return t, err
	}
	if message["output"] != nil {
		t.end = endingOf(message.text("stopReason"),
			[]string{"tool_use", "end_turn", "stop_sequence"}, []string{"max_tokens", "model_context_window_exceeded"})
		output, err := message.object("output")
		if err != nil {
			return t, err
		}
		if message, err = output.object("message"); err != nil {
			return t, err
		}
	}
	if message.text("role") != "assistant" || message["content"] == nil {
		return t, errors.New(`want the body of a response with "output", or the message of an assistant`)
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
		if block["toolUse"] == nil {
			t.text += block.text("text")
			continue
		}
		use, err := block.object("toolUse")
		switch {
		case err != nil:
			t.calls = append(t.calls, wireCall{bad: err.Error()})
		case use.text("type") != "server_tool_use": // what the provider runs itself
			t.calls = append(t.calls, wireCall{id: use.text("toolUseId"), name: use.text("name"), args: use["input"]})
		}
	}
	return t, nil
}

func bedrockResults(answers []answer) []any {
	var blocks []any
	for _, a := range answers {
		a = a.keep(imageOrPDF)
		var content []any
		switch {
		case len(a.json) > 0 && a.json[0] == '{' && !a.failed: // another value is refused there
			content = append(content, fields{"json": a.json})
		case a.text != "":
			content = append(content, fields{"text": a.text})
		}
		if text := a.cited(); text != "" {
			content = append(content, fields{"text": text})
		}
		for i, p := range a.parts {
			content = append(content, bedrockPart(p, i))
		}
		result := fields{"toolUseId": a.id, "content": content}
		if a.failed {
			result["status"] = "error"
		}
		blocks = append(blocks, fields{"toolResult": result})
	}
	return []any{fields{"role": "user", "content": blocks}}
}

func bedrockPart(p tool.Part, i int) fields {
	source := fields{"bytes": base64Of(p)}
	if !isImage(media(p)) {
		return fields{"document": fields{"format": "pdf", "name": fmt.Sprintf("part-%d", i+1), "source": source}}
	}
	return fields{"image": fields{"format": strings.TrimPrefix(media(p), "image/"), "source": source}}
}
