package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/tool"
)

// Turn is one turn of a model.
type Turn struct {
	Messages []json.RawMessage // what goes into the history: the provider's own bytes, also where the response held more
	Text     string            // the model's text, without its reasoning
	Calls    []Call            // in the order of the turn
	// Complete reports whether the model ended the turn as it meant to.
	// Otherwise a limit or a filter ended it, or an unknown reason.
	Complete  bool
	Paused    bool // the provider wants it back as it is, to go on with it
	Malformed bool // the provider itself could not read a call of the model, and gives nothing of it
}

// Turn reads what Calls reads, and what of it goes into the history.
func (a Adapter) Turn(raw json.RawMessage) (Turn, error) {
	calls, err := a.Calls(raw)
	if err != nil {
		return Turn{}, err
	}
	t, err := a.shape.turn(raw)
	if err != nil {
		return Turn{}, fmt.Errorf("wire: no turn of the format %s: %w", a.format, err)
	}
	kept, err := a.shape.kept(raw)
	if err != nil {
		return Turn{}, fmt.Errorf("wire: no turn of the format %s: %w", a.format, err)
	}
	return Turn{
		Messages: kept, Text: t.text, Calls: calls, Complete: t.end == whole && !t.malformed && !t.paused,
		Paused: t.paused && len(calls) == 0, Malformed: t.malformed && len(calls) == 0,
	}, nil
}

// UserMessage returns the messages with a text of the user after them. Where the format has roles take turns, it joins the message
// that ends them, which is one that Results or UserMessage has made.
func (a Adapter) UserMessage(messages []json.RawMessage, text string) ([]json.RawMessage, error) {
	if a.format == "" {
		return nil, errZero
	}
	part := a.shape.text(text)
	if joined := a.join(messages, part); joined != nil {
		return joined, nil
	}
	raw, err := canon.Marshal(a.shape.user(part))
	if err != nil {
		return nil, fmt.Errorf("wire: the text: %w", err)
	}
	return append(slices.Clone(messages), raw), nil
}

// join adds a part to the last message; nil where there is none that it could join.
func (a Adapter) join(messages []json.RawMessage, part any) []json.RawMessage {
	if !a.shape.alternates || len(messages) == 0 {
		return nil
	}
	last, err := readObject(messages[len(messages)-1])
	if err != nil || last.text("role") != "user" {
		return nil
	}
	content, err := last.array("content")
	if err != nil || content == nil {
		return nil
	}
	add, err := canon.Marshal(part)
	if err != nil {
		return nil
	}
	var list bytes.Buffer // nothing that is there is written anew
	list.WriteString(`{"role":"user","content":[`)
	for _, c := range content {
		list.Write(c)
		list.WriteByte(',')
	}
	list.Write(add)
	list.WriteString(`]}`)
	return append(slices.Clone(messages[:len(messages)-1]), list.Bytes())
}

// NotRun returns the outcome of a call that the driver of the model did not
// run: denied, and not on a journal. The text is for the model, and why for a
// program.
func (c Call) NotRun(why, text string) tool.Outcome {
	return tool.Outcome{
		Tool: c.Name, Status: tool.StatusDenied, Stage: "loop", Output: json.RawMessage("null"), Changes: []tool.Change{},
		Error: &tool.Problem{What: "the call was not run", Why: why}, Text: text,
	}
}

// keptMember finds a message at the end of a path of members, each an object or the one element of a list.
func keptMember(path ...string) func(json.RawMessage) ([]json.RawMessage, error) {
	return func(raw json.RawMessage) ([]json.RawMessage, error) {
		o, err := readObject(raw)
		if err != nil {
			return nil, err
		}
		if o[path[0]] == nil {
			return []json.RawMessage{bytes.Clone(raw)}, nil // the turn alone
		}
		for i, name := range path {
			value := o[name]
			if value == nil {
				return nil, nil // nothing was said
			}
			if i == len(path)-1 {
				return []json.RawMessage{value}, nil
			}
			if value[0] == '[' {
				o, err = o.only(name)
			} else {
				o, err = o.object(name)
			}
			if err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
}

func textPart(text string) any     { return fields{"type": "text", "text": text} }
func plainText(text string) any    { return text }
func plainPart(text string) any    { return fields{"text": text} }
func userContent(part any) any     { return fields{"role": "user", "content": part} }
func userContentList(part any) any { return fields{"role": "user", "content": []any{part}} }
