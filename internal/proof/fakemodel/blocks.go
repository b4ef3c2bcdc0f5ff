package fakemodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

func writeAnthropic(t Turn, n int) (string, []string) {
	blocks := []string{fmt.Sprintf(`{"type":"thinking","thinking":"…","signature":"opaque-%d"}`, n)}
	if t.Text != "" {
		blocks = append(blocks, `{"type":"text","text":`+quote(t.Text)+`}`)
	}
	stop := "end_turn"
	for _, c := range t.Calls {
		stop = "tool_use"
		blocks = append(blocks, `{"type":"tool_use",`+idMember("id", c)+`"name":`+quote(c.Tool)+`,"input":`+c.Args+`}`)
	}
	content := `"content":[` + strings.Join(blocks, ",") + `]`
	return fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","model":"m",%s,"stop_reason":%q,"stop_sequence":null,"usage":{"output_tokens":%d}}`,
		n, content, stop, 10*n), []string{`{"role":"assistant",` + content + `}`}
}

// block is a part of a message's content, in both formats that have them.
type block struct {
	Type      string            `json:"type"`
	Text      string            `json:"text"`
	ToolUseID string            `json:"tool_use_id"`
	IsError   bool              `json:"is_error"`
	Content   []json.RawMessage `json:"content"`

	ToolUse    json.RawMessage `json:"toolUse"`
	ToolResult *struct {
		ToolUseID string                       `json:"toolUseId"`
		Status    string                       `json:"status"`
		Content   []map[string]json.RawMessage `json:"content"`
	} `json:"toolResult"`
}

// readAnthropic checks that roles alternate, that a message has no other
// members, and that the results of all calls come first in the next one.
func readAnthropic(history []json.RawMessage, calls []Call) ([]ModelMessage, error) {
	return readBlocks(history, calls, func(b block) (told *ModelMessage, isCall bool, err error) {
		switch b.Type {
		case "tool_result":
			var content block
			if len(b.Content) != 1 || json.Unmarshal(b.Content[0], &content) != nil || content.Type != "text" {
				return nil, false, errors.New("a tool_result without a text")
			}
			return &ModelMessage{ID: b.ToolUseID, Text: content.Text, Failed: b.IsError}, false, nil
		case "text":
			if b.Text == "" {
				return nil, false, errors.New("text content blocks must be non-empty")
			}
		case "thinking", "tool_use":
		default:
			return nil, false, fmt.Errorf("a block of the type %q", b.Type)
		}
		return nil, b.Type == "tool_use", nil
	})
}

func readBlocks(history []json.RawMessage, calls []Call, read func(block) (*ModelMessage, bool, error)) (told []ModelMessage, err error) {
	open := 0
	for i, raw := range history {
		var members map[string]json.RawMessage
		var m message
		if err := errors.Join(decode(raw, &members), decode(raw, &m)); err != nil {
			return nil, err
		}
		if want := []string{"user", "assistant"}[i%2]; m.Role != want || len(members) != 2 {
			return nil, fmt.Errorf("message %d has the role %q and %d members, want %s, and role and content alone", i, m.Role, len(members), want)
		}
		blocks, err := blocksOf(m.Content)
		if err != nil {
			return nil, err
		}
		results, asked, others := []ModelMessage{}, 0, false
		for _, b := range blocks {
			t, isCall, err := read(b)
			switch {
			case err != nil:
				return nil, err
			case t != nil && others:
				return nil, errors.New("results come first in their message")
			case t != nil:
				results = append(results, *t)
			case isCall:
				asked++
			default:
				others = true
			}
		}
		if m.Role == "user" {
			if len(results) != open {
				return nil, fmt.Errorf("message %d has %d results, and %d calls before it", i, len(results), open)
			}
			open, told = 0, results
			continue
		}
		if len(results) > 0 {
			return nil, errors.New("results belong to the user")
		}
		open = asked
	}
	switch {
	case open > 0:
		return nil, errors.New("tool_use ids were found without tool_result blocks immediately after")
	case len(calls) == 0:
		return nil, nil
	}
	return answered(calls, told)
}

func blocksOf(content json.RawMessage) (blocks []block, err error) {
	if s, err := text(content); err == nil && s != "" {
		return []block{{Type: "text", Text: s}}, nil
	}
	if err := decode(content, &blocks); err != nil || len(blocks) == 0 {
		return nil, errors.New("a message without content")
	}
	return blocks, nil
}

func writeBedrock(t Turn, n int) (string, []string) {
	blocks := []string{fmt.Sprintf(`{"reasoningContent":{"reasoningText":{"text":"…","signature":"opaque-%d"}}}`, n)}
	if t.Text != "" {
		blocks = append(blocks, `{"text":`+quote(t.Text)+`}`)
	}
	stop := "end_turn"
	for _, c := range t.Calls {
		stop = "tool_use"
		blocks = append(blocks, `{"toolUse":{`+idMember("toolUseId", c)+`"name":`+quote(c.Tool)+`,"input":`+c.Args+`}}`)
	}
	m := `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
	return fmt.Sprintf(`{"output":{"message":%s},"stopReason":%q,"usage":{"totalTokens":%d}}`, m, stop, 10*n), []string{m}
}

var bedrockID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// readBedrock checks the same as readAnthropic, with Bedrock's names.
func readBedrock(history []json.RawMessage, calls []Call) ([]ModelMessage, error) {
	return readBlocks(history, calls, func(b block) (told *ModelMessage, isCall bool, err error) {
		r := b.ToolResult
		if r == nil {
			return nil, b.ToolUse != nil, nil
		}
		if len(r.Content) != 1 || r.Status != "" && r.Status != "error" && r.Status != "success" || !bedrockID.MatchString(r.ToolUseID) {
			return nil, false, errors.New("a toolResult that is not valid")
		}
		s, err := text(r.Content[0]["text"])
		if err != nil {
			s = string(r.Content[0]["json"])
		}
		return &ModelMessage{ID: r.ToolUseID, Text: s, Failed: r.Status == "error"}, false, nil
	})
}

func writeGemini(t Turn, n int) (string, []string) {
	var parts []string
	if t.Text != "" {
		parts = append(parts, `{"text":`+quote(t.Text)+`}`)
	}
	for i, c := range t.Calls {
		signature := ""
		if i == 0 {
			signature = fmt.Sprintf(`,"thoughtSignature":"opaque-%d"`, n)
		}
		parts = append(parts, `{"functionCall":{`+idMember("id", c)+`"name":`+quote(c.Tool)+`,"args":`+c.Args+`}`+signature+`}`)
	}
	m := `{"role":"model","parts":[` + strings.Join(parts, ",") + `]}`
	return fmt.Sprintf(`{"candidates":[{"content":%s,"finishReason":"STOP","index":0}],"usageMetadata":{"totalTokenCount":%d}}`, m, 10*n), []string{m}
}

// readGemini checks that the content after one with calls has as many
// responses, in order.
func readGemini(history []json.RawMessage, calls []Call) (told []ModelMessage, err error) {
	open := 0
	for i, raw := range history {
		var m struct {
			Role  string `json:"role"`
			Parts []struct {
				FunctionCall     json.RawMessage `json:"functionCall"`
				FunctionResponse *struct {
					ID       string                     `json:"id"`
					Name     string                     `json:"name"`
					Response map[string]json.RawMessage `json:"response"`
				} `json:"functionResponse"`
			} `json:"parts"`
		}
		if err := decode(raw, &m); err != nil {
			return nil, err
		}
		if len(m.Parts) == 0 || m.Role != "user" && m.Role != "model" {
			return nil, fmt.Errorf("content %d has the role %q and %d parts", i, m.Role, len(m.Parts))
		}
		var responses []ModelMessage
		asked := 0
		for _, p := range m.Parts {
			if p.FunctionCall != nil {
				asked++
			}
			if r := p.FunctionResponse; r != nil {
				value, failed := r.Response["error"]
				if !failed {
					value = r.Response["output"]
				}
				s, err := text(value)
				if err != nil {
					s = string(value)
				}
				responses = append(responses, ModelMessage{ID: r.ID, Tool: r.Name, Text: s, Failed: failed})
			}
		}
		if len(responses) != open {
			return nil, errors.New("the number of function response parts must equal the number of function call parts of the function call turn")
		}
		if open = asked; len(responses) > 0 {
			told = responses
		}
	}
	switch {
	case open > 0:
		return nil, errors.New("a function call without a response")
	case len(calls) == 0:
		return nil, nil
	}
	return ordered(calls, told)
}
