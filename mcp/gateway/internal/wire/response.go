package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/internal/canon"
)

// Result is the response of an upstream to a call.
type Result struct {
	Object json.RawMessage
	Text   string
	Failed bool // the response has isError

	Requests sdk.InputRequestMap // requests to the client, before the call continues; nil: the call has ended
	State    string              // to send back with the responses of the client
}

// ParseResult parses a response.
func ParseResult(object json.RawMessage) (Result, error) {
	var r struct {
		Type    string `json:"resultType"`
		IsError bool   `json:"isError"`
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		Structured json.RawMessage     `json:"structuredContent"`
		Wants      sdk.InputRequestMap `json:"inputRequests"`
		State      string              `json:"requestState"`
	}
	v, err := canon.Parse(object, canon.DefaultLimits())
	if err == nil && v.Kind() == canon.Object {
		err = jsonv2.Unmarshal(v.Canonical(), &r)
	} else if err == nil {
		err = errors.New("it is no object")
	}
	if err != nil {
		return Result{}, fmt.Errorf("the answer of the server is not valid: %w", err)
	}
	switch r.Type {
	case "", "complete":
	case "input_required":
		if r.Wants == nil {
			r.Wants = sdk.InputRequestMap{}
		}
		return Result{Object: object, Requests: r.Wants, State: r.State}, nil
	default:
		return Result{}, fmt.Errorf("the server wants something of its client (%s) that the gateway cannot give", canon.Printable(r.Type, 64))
	}
	a := Result{Object: object, Text: textOf(v), Failed: r.IsError}
	if a.Text == "" && len(r.Content) == 0 {
		a.Text = string(r.Structured)
	}
	return a, nil
}

// textOf returns the text of a response for the model: the texts of a tool
// result or a resource, or of the messages of a prompt. Other content has no
// text.
func textOf(object canon.Value) string {
	var texts []string
	read := func(block canon.Value) {
		if text, _ := block.Get("text"); text.Kind() == canon.String && text.Text() != "" {
			texts = append(texts, text.Text())
		}
	}
	for _, name := range []string{"content", "contents", "messages"} {
		list, _ := object.Get(name)
		for _, e := range list.Elements() {
			if name == "messages" {
				e, _ = e.Get("content")
			}
			read(e)
		}
	}
	return strings.Join(texts, "\n")
}

// ProtocolError is a protocol error that an upstream responded with.
type ProtocolError struct {
	Server string
	Cause  *jsonrpc.Error
}

// Error names the server and its message.
func (e *ProtocolError) Error() string {
	return fmt.Sprintf("server %s answers with an error of the protocol: %s", e.Server, canon.Printable(e.Cause.Message, 4<<10))
}
