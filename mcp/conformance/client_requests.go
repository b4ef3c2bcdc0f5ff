package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/tool"
)

// What asks its client, or tells it something, while its call goes on.

func (f *fixtures) requestFixtures() []fixture {
	prompt, message := texts("prompt"), texts("message")
	return []fixture{
		{name: "test_sampling", about: "Asks the client's model", input: prompt, run: requestInput(func(in map[string]string) sdk.InputRequestMap {
			return sdk.InputRequestMap{"said": sampling(in["prompt"])}
		})},
		{name: "test_elicitation", about: "Asks the person", input: message, run: requestInput(func(in map[string]string) sdk.InputRequestMap {
			return sdk.InputRequestMap{"filled": form(in["message"], `{"username":{"type":"string","description":"Your preferred username"}}`, "username")}
		})},
		{name: "test_elicitation_sep1034_defaults", about: "Asks with defaults", run: asks(sdk.InputRequestMap{"filled": form("Defaults", defaults)})},
		{name: "test_elicitation_sep1330_enums", about: "Asks with choices", run: asks(sdk.InputRequestMap{"filled": form("Choices", choices)})},
		{name: "test_missing_capability", about: "Needs the client's model", run: asks(sdk.InputRequestMap{"said": sampling("Hello")})},
		{name: "test_tool_with_logging", about: "Tells the client's log", run: logs("Tool execution started", "Tool processing data", "Tool execution completed")},
		{name: "test_logging_tool", about: "Tells the client's log", run: logs("test_logging_tool executed")},
		{name: "test_input_required_result_elicitation", about: "Asks the person", run: asks(sdk.InputRequestMap{"user_name": name()})},
		{name: "test_input_required_result_sampling", about: "Asks the model", run: asks(sdk.InputRequestMap{"capital_question": sampling("What is the capital of France?")})},
		{name: "test_input_required_result_list_roots", about: "Asks for roots", run: asks(sdk.InputRequestMap{"client_roots": &sdk.ListRootsParams{}})},
		{name: "test_input_required_result_request_state", about: "Asks, and goes on", run: asks(sdk.InputRequestMap{"confirm": confirmed()})},
		{name: "test_input_required_result_tampered_state", about: "Asks, and goes on", run: asks(sdk.InputRequestMap{"confirm": confirmed()})},
		{name: "test_input_required_result_multiple_inputs", about: "Asks for all at once", run: asks(everyKind())},
		{name: "test_input_required_result_multi_round", about: "Asks twice", run: asks(
			sdk.InputRequestMap{"step1": name()}, sdk.InputRequestMap{"step2": form("Step 2: What is your favorite color?", `{"color":{"type":"string"}}`, "color")},
		)},
		{name: "test_input_required_result_capabilities", about: "Asks for what there is", run: asksWhatCan},
		{name: "prompt_asking", about: "A prompt that asks", run: asks(sdk.InputRequestMap{"user_context": form("What context should the prompt use?", `{"context":{"type":"string"}}`, "context")})},
	}
}

// form asks a person for texts and the like.
func form(message, properties string, required ...string) *sdk.ElicitParams {
	schema := map[string]any{"type": "object", "properties": json.RawMessage(properties)}
	if len(required) > 0 {
		schema["required"] = required
	}
	return &sdk.ElicitParams{Mode: "form", Message: message, RequestedSchema: schema}
}

func name() *sdk.ElicitParams {
	return form("What is your name?", `{"name":{"type":"string"}}`, "name")
}

func confirmed() *sdk.ElicitParams { return form("Please confirm", `{"ok":{"type":"boolean"}}`, "ok") }

func sampling(text string) *sdk.CreateMessageWithToolsParams {
	return &sdk.CreateMessageWithToolsParams{MaxTokens: 100, Messages: []*sdk.SamplingMessageV2{{Role: "user", Content: []sdk.Content{&sdk.TextContent{Text: text}}}}}
}

func everyKind() sdk.InputRequestMap {
	return sdk.InputRequestMap{"user_name": name(), "greeting": sampling("Generate a greeting"), "client_roots": &sdk.ListRootsParams{}}
}

// asks is code that asks its client, round by round, and returns what it heard.
func asks(rounds ...sdk.InputRequestMap) tool.Execute {
	return func(ctx context.Context, _ ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
		return ask(ctx, rounds...)
	}
}

// requestInput asks with what the call is given.
func requestInput(what func(in map[string]string) sdk.InputRequestMap) tool.Execute {
	return func(ctx context.Context, _ ctxperm.ToolContext, input json.RawMessage) (tool.Result, error) {
		var in map[string]string
		if err := json.Unmarshal(input, &in); err != nil {
			return tool.Result{}, err
		}
		return ask(ctx, what(in))
	}
}

func ask(ctx context.Context, rounds ...sdk.InputRequestMap) (tool.Result, error) {
	client, ok := mcp.ClientOf(ctx)
	if !ok {
		return tool.Result{}, errors.New("there is nobody to ask")
	}
	var heard []sdk.InputResponseMap
	for _, round := range rounds {
		said, err := client.Request(ctx, round)
		if err != nil {
			return tool.Result{}, err
		}
		heard = append(heard, said)
	}
	text, err := json.Marshal(heard)
	return tool.Text("The client answered: " + string(text)), err
}

func asksWhatCan(ctx context.Context, _ ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
	client, _ := mcp.ClientOf(ctx)
	can, what := client.Capabilities(), everyKind()
	if can.Elicitation == nil {
		delete(what, "user_name")
	}
	if can.Sampling == nil {
		delete(what, "greeting")
	}
	if can.RootsV2 == nil {
		delete(what, "client_roots")
	}
	return ask(ctx, what)
}

func logs(messages ...string) tool.Execute {
	return func(ctx context.Context, _ ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
		client, ok := mcp.ClientOf(ctx)
		if !ok {
			return tool.Result{}, errors.New("there is nobody to tell")
		}
		for _, m := range messages {
			client.Log(&sdk.LoggingMessageParams{Level: "info", Logger: "fixtures", Data: m})
		}
		return tool.Text(fmt.Sprintf("told %d messages", len(messages))), nil
	}
}

const (
	defaults = `{
  "name": {"type": "string", "description": "User name", "default": "John Doe"},
  "age": {"type": "integer", "description": "User age", "default": 30},
  "score": {"type": "number", "description": "User score", "default": 95.5},
  "status": {"type": "string", "description": "User status", "enum": ["active", "inactive", "pending"], "default": "active"},
  "verified": {"type": "boolean", "description": "Verification status", "default": true}
}`
	choices = `{
  "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
  "titledSingle": {"type": "string", "oneOf": [{"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"}, {"const": "value3", "title": "Third Option"}]},
  "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
  "untitledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
  "titledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"anyOf": [{"const": "value1", "title": "First Choice"}, {"const": "value2", "title": "Second Choice"}, {"const": "value3", "title": "Third Choice"}]}}
}`
)
