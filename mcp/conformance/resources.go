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

// Resources and prompts are tools, too: these are theirs.

func (f *fixtures) behindOffers() []fixture {
	return []fixture{
		{name: "read_static_text", about: "A text", run: plain(tool.Text("This is the content of the static text resource."))},
		{name: "read_static_binary", about: "A picture", run: plain(tool.Result{Parts: []tool.Part{image()}})},
		{name: "read_template", about: "One of many", input: texts("id"), run: readTemplate},
		{name: "read_watched", about: "Something that changes", run: plain(tool.Text("Watched resource content"))},
		{name: "prompt_simple", about: "A prompt", run: plain(tool.Text("This is a simple prompt for testing."))},
		{name: "prompt_arguments", about: "A prompt with arguments", input: texts("arg1", "arg2"), run: promptArguments},
		{name: "prompt_resource", about: "A prompt with a resource in it", input: texts("resourceUri"), run: promptResource},
		{name: "prompt_image", about: "A prompt with a picture in it", run: plain(tool.Result{Parts: []tool.Part{image(), {MediaType: "text/plain", Data: []byte("Please analyze the image above.")}}})},
	}
}

func (f *fixtures) offer() error {
	return errors.Join(
		f.srv.SetResources(
			mcp.Resource{URI: "test://static-text", Name: "static-text", Description: "A text", MediaType: "text/plain", Tool: "read_static_text"},
			mcp.Resource{URI: "test://static-binary", Name: "static-binary", Description: "A picture", MediaType: "image/png", Tool: "read_static_binary"},
			mcp.Resource{URI: "test://template/{id}/data", Name: "template", Description: "One of many", MediaType: "application/json", Tool: "read_template"},
			mcp.Resource{URI: "test://watched-resource", Name: "watched-resource", Description: "Something that changes", MediaType: "text/plain", Tool: "read_watched"},
		),
		f.srv.SetPrompts(f.prompts()...),
	)
}

func (f *fixtures) prompts() []mcp.Prompt {
	return []mcp.Prompt{
		{Name: "test_simple_prompt", Title: "Simple Test Prompt", Description: "A prompt", Tool: "prompt_simple"},
		{Name: "test_prompt_with_arguments", Description: "A prompt with arguments", Tool: "prompt_arguments"},
		{Name: "test_prompt_with_embedded_resource", Description: "A prompt with a resource in it", Tool: "prompt_resource"},
		{Name: "test_prompt_with_image", Description: "A prompt with a picture in it", Tool: "prompt_image"},
		{Name: "test_input_required_result_prompt", Description: "A prompt that asks", Tool: "prompt_asking"},
	}
}

// texts is the schema of arguments that are texts.
func texts(names ...string) string {
	properties := map[string]any{}
	for _, name := range names {
		properties[name] = map[string]any{"type": "string", "description": "Argument " + name}
	}
	data, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": names})
	if err != nil {
		panic(err) // of texts
	}
	return string(data)
}

func readTemplate(_ context.Context, _ ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
	var of struct{ ID string }
	if err := json.Unmarshal(in, &of); err != nil {
		return tool.Result{}, err
	}
	data, err := json.Marshal(map[string]any{"id": of.ID, "templateTest": true, "data": "Data for ID: " + of.ID})
	return tool.Text(string(data)), err
}

func promptArguments(_ context.Context, _ ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
	var of struct{ Arg1, Arg2 string }
	if err := json.Unmarshal(in, &of); err != nil {
		return tool.Result{}, err
	}
	return tool.Text(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", of.Arg1, of.Arg2)), nil
}

func promptResource(_ context.Context, _ ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
	var of struct{ ResourceURI string }
	if err := json.Unmarshal(in, &of); err != nil {
		return tool.Result{}, err
	}
	const text = "Embedded resource content for testing."
	return mcp.Result(text, &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{
		{Role: "user", Content: &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: of.ResourceURI, MIMEType: "text/plain", Text: text}}},
		{Role: "user", Content: &sdk.TextContent{Text: "Please process the embedded resource above."}},
	}})
}

// changePrompts makes the list another one.
func (f *fixtures) changePrompts(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
	extra := mcp.Prompt{Name: "test_transient", Description: "Comes", Tool: "prompt_simple"}
	if err := f.srv.SetPrompts(append(f.prompts(), extra)...); err != nil {
		return tool.Result{}, err
	}
	return tool.Text("the prompts have changed"), nil
}

// embedded is a result with a resource in it, after other blocks.
func embedded(uri string, before ...sdk.Content) tool.Execute {
	return func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
		const text = "This is an embedded resource"
		return mcp.Result(text, &sdk.CallToolResult{Content: append(before, &sdk.EmbeddedResource{
			Resource: &sdk.ResourceContents{URI: uri, MIMEType: "text/plain", Text: text},
		})})
	}
}
