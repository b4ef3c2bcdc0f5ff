package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/mcp/internal/rawresult"
	"github.com/remit-dev/remit/tool"
)

// Result returns a tool result in the types of the protocol: an
// *sdk.CallToolResult, or, of a tool that serves a resource or a prompt, an
// *sdk.ReadResourceResult or an *sdk.GetPromptResult. Clients get it unchanged.
// Policies, filters and Verify see it as JSON. Text is what a model reads if
// the caller is not an MCP client.
func Result(text string, r sdk.Result) (tool.Result, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return tool.Result{}, fmt.Errorf("mcp: the result: %w", err)
	}
	return rawresult.Result(data, text, nil), nil
}

// codeRefused is the error code of a read or a prompt that did not end done.
// Their results cannot say so; the error data is what a tool call has in _meta.
const codeRefused = -32000

// listResources responds to resources/list and resources/templates/list, with
// the entries whose tool the session sees.
func (s *Server) listResources(ctx context.Context, extra *sdk.RequestExtra, revision, cursor string, several bool) (*wireResult, error) {
	st, err := s.clientSessionOf(ctx, extra)
	if err != nil {
		return nil, err
	}
	s.awaitNew(ctx)
	var list []listItem
	for _, r := range load(&s.offers.resources) {
		if r.several() != several {
			continue
		}
		if _, shown := shownTool(ctx, st.session, r.Tool); !shown {
			continue
		}
		var what any = sdk.Resource{URI: r.URI, Name: r.Name, Title: r.Title, Description: r.Description, MIMEType: r.MediaType}
		if several {
			what = sdk.ResourceTemplate{URITemplate: r.URI, Name: r.Name, Title: r.Title, Description: r.Description, MIMEType: r.MediaType}
		}
		object, err := json.Marshal(what)
		if err != nil {
			return nil, err
		}
		list = append(list, listItem{name: r.URI, object: object})
	}
	others := s.catalogEntries()
	if several {
		return pageOf(revision, "resourceTemplates", append(list, s.visibleEntries(ctx, st.session, others.Templates, list)...), cursor)
	}
	return pageOf(revision, "resources", append(list, s.visibleEntries(ctx, st.session, others.Resources, list)...), cursor)
}

// listPrompts responds to prompts/list, with the entries whose tool the session
// sees.
func (s *Server) listPrompts(ctx context.Context, req *sdk.ListPromptsRequest) (*wireResult, error) {
	st, err := s.clientSessionOf(ctx, req.Extra)
	if err != nil {
		return nil, err
	}
	s.awaitNew(ctx)
	var list []listItem
	for _, p := range load(&s.offers.prompts) {
		t, shown := shownTool(ctx, st.session, p.Tool)
		if !shown {
			continue
		}
		d := sdk.Prompt{Name: p.Name, Title: p.Title, Description: p.Description}
		known, required := argumentsOf(t)
		for _, name := range slices.Sorted(maps.Keys(known)) {
			if _, fixed := p.Input[name]; !fixed {
				d.Arguments = append(d.Arguments, &sdk.PromptArgument{
					Name: name, Title: known[name].Title, Description: known[name].Description, Required: slices.Contains(required, name),
				})
			}
		}
		object, err := json.Marshal(d)
		if err != nil {
			return nil, err
		}
		list = append(list, listItem{name: p.Name, object: object})
	}
	list = append(list, s.visibleEntries(ctx, st.session, s.catalogEntries().Prompts, list)...)
	return pageOf(req.ProtocolVersion(), "prompts", list, cursorOf(req.Params))
}

// cursorOf returns the start of a page. A request can omit its params.
func cursorOf(params any) string {
	switch p := params.(type) {
	case *sdk.ListPromptsParams:
		if p != nil {
			return p.Cursor
		}
	case *sdk.ListResourcesParams:
		if p != nil {
			return p.Cursor
		}
	case *sdk.ListResourceTemplatesParams:
		if p != nil {
			return p.Cursor
		}
	}
	return ""
}

// readResource responds to resources/read by a call.
func (s *Server) readResource(ctx context.Context, req *sdk.ReadResourceRequest) (*wireResult, error) {
	st, err := s.clientSessionOf(ctx, req.Extra)
	if err != nil {
		return nil, err
	}
	p := req.Params
	r, said, ok := s.resource(p.URI)
	t, shown := shownTool(ctx, st.session, r.Tool)
	call := &sdk.CallToolRequest{Session: req.Session, Extra: req.Extra, Params: &sdk.CallToolParamsRaw{
		Meta: p.Meta, Name: r.Tool, InputResponses: p.InputResponses, RequestState: p.RequestState,
	}}
	if !ok || !shown {
		other, there := s.upstreamResource(ctx, st.session, p.URI)
		if !there {
			return nil, sdk.ResourceNotFoundError(p.URI)
		}
		return s.read(ctx, call, other)
	}
	if call.Params.Arguments, err = filled(t, r.Input, said); err != nil {
		return nil, err
	}
	o, err := s.answerBy(ctx, call)
	if err != nil || o.asks() {
		return o, err
	}
	o.set("ttlMs", 0)
	o.set("cacheScope", "private")
	if _, is := o.members["contents"]; is {
		return o, nil
	}
	contents := []map[string]any{}
	for _, c := range o.content() {
		contents = append(contents, c.read(p.URI, r.MediaType))
	}
	o.set("contents", contents)
	return o, nil
}

// getPrompt responds to prompts/get by a call.
func (s *Server) getPrompt(ctx context.Context, req *sdk.GetPromptRequest) (*wireResult, error) {
	st, err := s.clientSessionOf(ctx, req.Extra)
	if err != nil {
		return nil, err
	}
	p := req.Params
	prompt, ok := s.prompt(p.Name)
	t, shown := shownTool(ctx, st.session, prompt.Tool)
	call := &sdk.CallToolRequest{Session: req.Session, Extra: req.Extra, Params: &sdk.CallToolParamsRaw{
		Meta: p.Meta, Name: prompt.Tool, InputResponses: p.InputResponses, RequestState: p.RequestState,
	}}
	if !ok || !shown {
		other, there := s.upstreamPrompt(ctx, st.session, p.Name, p.Arguments)
		if !there {
			return nil, unknownPrompt(p.Name)
		}
		return s.upstreamResult(ctx, call, other)
	}
	if call.Params.Arguments, err = filled(t, prompt.Input, p.Arguments); err != nil {
		return nil, err
	}
	o, err := s.answerBy(ctx, call)
	if err != nil || o.asks() {
		return o, err
	}
	if _, is := o.members["messages"]; is {
		return o, nil
	}
	messages := []map[string]any{}
	for _, c := range o.content() {
		messages = append(messages, map[string]any{"role": "user", "content": c})
	}
	o.set("messages", messages)
	if prompt.Description != "" {
		o.set("description", prompt.Description)
	}
	return o, nil
}

func unknownPrompt(name string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown prompt %q", name)}
}

// answerBy returns the result of the call that serves a request. It returns an
// error if the call does not end done.
func (s *Server) answerBy(ctx context.Context, req *sdk.CallToolRequest) (*wireResult, error) {
	o, err := s.callFor(ctx, req, false)
	if err != nil {
		return nil, err
	}
	return done(o)
}

// done returns the result of a call that serves a request other than
// tools/call.
func done(o *wireResult) (*wireResult, error) {
	if _, is := o.members["isError"]; is {
		data, err := json.Marshal(o.Meta)
		if err != nil {
			return nil, err
		}
		e := &jsonrpc.Error{Code: codeRefused, Message: "the call waits for approval", Data: data}
		if all := o.content(); len(all) > 0 {
			e.Message = all[0].text()
		}
		return nil, e
	}
	delete(o.members, "structuredContent")
	return o, nil
}

// asks reports whether the result carries a client request.
func (o *wireResult) asks() bool { return string(o.members["resultType"]) == `"input_required"` }

// block is one block of content.
type block map[string]json.RawMessage

// content returns the content blocks of a result.
func (o *wireResult) content() (all []block) {
	_ = json.Unmarshal(o.members["content"], &all) // made here, or absent
	delete(o.members, "content")
	return all
}

func (b block) text() string { return unquoted(b["text"]) }

func unquoted(data json.RawMessage) (text string) {
	_ = json.Unmarshal(data, &text)
	return text
}

// read returns a block as the contents of a resource.
func (b block) read(uri, mediaType string) map[string]any {
	c := map[string]any{"uri": uri}
	switch unquoted(b["type"]) {
	case "text":
		c["text"] = b["text"]
		if mediaType != "" {
			c["mimeType"] = mediaType
		}
	case "resource":
		var r map[string]any
		_ = json.Unmarshal(b["resource"], &r)
		maps.Copy(c, r)
		if at, _ := r["uri"].(string); strings.HasPrefix(at, partURI) {
			c["uri"] = uri
		}
	default:
		c["blob"], c["mimeType"] = b["data"], b["mimeType"]
		if b["data"] == nil {
			c["blob"] = base64.StdEncoding.EncodeToString(nil)
		}
	}
	return c
}
