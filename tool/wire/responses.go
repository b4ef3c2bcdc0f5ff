package wire

import (
	"encoding/json"
	"errors"
	"fmt"
)

// openAIResponses is OpenAI's Responses.
func openAIResponses() shape {
	return shape{
		ids: true, plain: passthrough(), strict: openAIStrict(),
		definitions: responsesDefinitions, request: responsesRequest, turn: responsesTurn, results: responsesResults,
		kept: responsesKept, text: plainText, user: userContent,
	}
}

func responsesDefinitions(all []definition) (list []any) {
	for _, d := range all {
		list = append(list, fields{ // strict is the default here, so false has to be said
			"type": "function", "name": d.name, "description": orNil(d.description), "parameters": d.schema, "strict": d.strict,
		})
	}
	return list
}

func responsesRequest(list json.RawMessage, c ToolChoice) (map[string]any, error) {
	out, err := chatRequest(list, c)
	if c.Tool != "" {
		out["tool_choice"] = fields{"type": "function", "name": c.Tool}
	}
	return out, err
}

// responsesTurn takes a response, or the list of its output items.
func responsesTurn(raw json.RawMessage) (t turn, err error) {
	items, err := readArray(raw)
	if err != nil {
		response, err := readObject(raw)
		if err != nil {
			return t, err
		}
		if response["output"] == nil {
			return t, errors.New(`want the body of a response with "output", or the list of its items`)
		}
		if items, err = response.array("output"); err != nil {
			return t, err
		}
		t.end = endingOf(response.text("status"), []string{"completed"}, nil)
		if response.text("status") == "incomplete" && incomplete(response) == "max_output_tokens" {
			t.end = cut
		}
	}
	for _, raw := range items {
		item, err := readObject(raw)
		if err != nil {
			return t, fmt.Errorf("an item of the output is %w", err)
		}
		if item.text("type") == "message" {
			t.text += responsesText(item)
		}
		if item.text("type") != "function_call" {
			continue
		}
		f := wireCall{id: item.text("call_id"), name: item.text("name")}
		status := item.text("status")
		f.partial = status != "" && status != "completed"
		f.arguments(item["arguments"])
		t.calls = append(t.calls, f)
	}
	return t, nil
}

// responsesText returns the text of a message. It skips what is no text.
func responsesText(message object) (text string) {
	parts, _ := message.array("content")
	for _, raw := range parts {
		if part, err := readObject(raw); err == nil && part.text("type") == "output_text" {
			text += part.text("text")
		}
	}
	return text
}

// responsesKept returns every item of the output, of any type.
func responsesKept(raw json.RawMessage) ([]json.RawMessage, error) {
	if items, err := readArray(raw); err == nil {
		return items, nil
	}
	response, err := readObject(raw)
	if err != nil {
		return nil, err
	}
	return response.array("output")
}

// incomplete is the reason that a response gives for not being complete.
func incomplete(response object) string {
	details, err := response.object("incomplete_details")
	if err != nil {
		return ""
	}
	return details.text("reason")
}

func responsesResults(answers []answer) (items []any) {
	for _, a := range answers {
		a = a.keep(imageOrPDF).cite()
		item := fields{"type": "function_call_output", "call_id": a.id, "output": a.unmarked()}
		if len(a.parts) > 0 {
			item["output"] = responsesContent(a)
		}
		items = append(items, item)
	}
	return items
}

func responsesContent(a answer) (content []any) {
	if a.text != "" {
		content = append(content, fields{"type": "input_text", "text": a.unmarked()})
	}
	for i, p := range a.parts {
		if isImage(media(p)) {
			content = append(content, fields{"type": "input_image", "image_url": dataURL(p)})
			continue
		}
		content = append(content, fields{"type": "input_file", "filename": fmt.Sprintf("part-%d.pdf", i+1), "file_data": dataURL(p)})
	}
	return content
}
