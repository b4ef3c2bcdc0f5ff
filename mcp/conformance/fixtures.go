package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// fixtures are what the suite calls: tools of remit, by names and with answers that the suite fixes.
type fixtures struct {
	rt  *agent.Runtime
	srv *mcp.Server
}

// fixture is one tool that has no effects.
type fixture struct {
	name, about string
	input       string // schema; empty: no arguments
	run         tool.Execute
}

const noArguments = `{"type":"object","properties":{}}`

func (f fixture) tool() (tool.Tool, error) {
	if f.input == "" {
		f.input = noArguments
	}
	return tool.FromSpec(tool.Spec{
		Name: f.name, Description: f.about, Input: json.RawMessage(f.input), EffectClass: effect.Pure, Destination: tool.NoDestination, Execute: f.run,
	})
}

func (f *fixtures) tools() (all []tool.Tool, err error) {
	for _, one := range slices.Concat(f.contents(), f.behindOffers(), f.requestFixtures(), f.taskFixtures()) {
		t, err := one.tool()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.name, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// plain is code that always returns the same.
func plain(r tool.Result) tool.Execute {
	return func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) { return r, nil }
}

func image() tool.Part { return tool.Part{MediaType: "image/png", Data: decoded(pixel)} }

func (f *fixtures) contents() []fixture {
	return []fixture{
		{name: "test_simple_text", about: "Tests simple text content", run: plain(tool.Text("This is a simple text response for testing."))},
		{name: "test_image_content", about: "Tests image content", run: plain(tool.Result{Parts: []tool.Part{image()}})},
		{name: "test_audio_content", about: "Tests audio content", run: plain(tool.Result{Parts: []tool.Part{{MediaType: "audio/wav", Data: decoded(silence)}}})},
		{name: "test_embedded_resource", about: "Tests a resource in a result", run: embedded("test://embedded-resource")},
		{name: "test_multiple_content_types", about: "Tests several blocks", run: embedded("test://mixed-content-resource",
			&sdk.TextContent{Text: "Multiple content types test:"}, &sdk.ImageContent{Data: decoded(pixel), MIMEType: "image/png"})},
		{name: "test_error_handling", about: "Tests an error", run: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Result{}, errors.New("this tool intentionally returns an error for testing")
		}},
		{name: "test_tool_with_progress", about: "Tests progress", run: progress},
		{name: "json_schema_2020_12_tool", about: "Tests that a schema arrives as it is", input: wholeSchema, run: plain(tool.Text("fits"))},
		{name: "test_x_mcp_header", about: "Tests headers that repeat arguments", input: headerSchema, run: plain(tool.Text("fits"))},
		{name: "test_streaming_elicitation", about: "Tests that a stream carries no requests", run: progress},
		{name: "test_trigger_tool_change", about: "Changes the list of tools", run: f.changeTools},
		{name: "test_trigger_prompt_change", about: "Changes the list of prompts", run: f.changePrompts},
	}
}

func progress(ctx context.Context, tc ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
	for _, done := range []float64{0, 50, 100} {
		tc.Progress(done, 100, fmt.Sprintf("Completed step %.0f of 100", done))
		select {
		case <-time.After(60 * time.Millisecond):
		case <-ctx.Done():
			return tool.Result{}, context.Cause(ctx)
		}
	}
	return tool.Text("done"), nil
}

// changeTools makes the list another one: a tool comes, or goes again.
func (f *fixtures) changeTools(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
	const name = "test_transient"
	var others []tool.Tool
	there := false
	for _, t := range f.rt.Tools().All() {
		if t.Name() == name {
			there = true
			continue
		}
		others = append(others, t)
	}
	if !there {
		t, err := fixture{name: name, about: "Comes and goes", run: plain(tool.Text("here"))}.tool()
		if err != nil {
			return tool.Result{}, err
		}
		others = append(others, t)
	}
	if err := f.rt.SetTools(others...); err != nil {
		return tool.Result{}, err
	}
	f.srv.ToolsChanged()
	return tool.Text("the tools have changed"), nil
}

// The smallest picture and the shortest sound.
const (
	pixel   = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	silence = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
)

func decoded(text string) []byte {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(err) // a constant
	}
	return data
}

const (
	wholeSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
  "properties": {
    "name": {"type": "string"},
    "address": {"$ref": "#/$defs/address"},
    "contactMethod": {"type": "string", "enum": ["phone", "email"]},
    "phone": {"type": "string"},
    "email": {"type": "string"}
  },
  "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
  "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
  "then": {"required": ["phone"]},
  "else": {"required": ["email"]},
  "additionalProperties": false
}`
	headerSchema = `{
  "type": "object",
  "properties": {
    "region": {"type": "string", "description": "repeated in Mcp-Param-Region", "x-mcp-header": "Region"},
    "level": {"type": "integer", "description": "not repeated"}
  }
}`
)
