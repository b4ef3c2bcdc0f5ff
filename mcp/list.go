package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// pageSize bounds the tools on a page of a list.
const pageSize = 500

// freshMillis is the time for which a client can reuse a list. A list changes
// with the policy and with what the session did, and the server reports
// neither.
const freshMillis = 1000

// listTools responds to tools/list: the tools that the policy does not hide
// from the session, by name.
func (s *Server) listTools(ctx context.Context, req *sdk.ListToolsRequest) (*wireResult, error) {
	st, err := s.clientSessionOf(ctx, req.Extra)
	if err != nil {
		return nil, err
	}
	s.awaitNew(ctx)
	shown, err := s.shown(ctx, st.session)
	if err != nil {
		return nil, err
	}
	after := ""
	if req.Params != nil {
		after = req.Params.Cursor
	}
	return pageOf(req.ProtocolVersion(), "tools", shown, after)
}

// awaitNew waits a moment for upstreams that have not responded yet.
func (s *Server) awaitNew(ctx context.Context) {
	if a, ok := s.opts.Mirror.(Awaiter); ok {
		a.AwaitNew(ctx)
	}
}

// pageOf responds with a page of a list.
func pageOf(revision, member string, list []listItem, after string) (*wireResult, error) {
	page, next, ok := pageAfter(list, after)
	if !ok {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the cursor is none that this server gave"}
	}
	all := make([]json.RawMessage, 0, len(page))
	for _, l := range page {
		all = append(all, l.object)
	}
	o := newObject(revision)
	o.set(member, all)
	o.set("ttlMs", freshMillis)
	o.set("cacheScope", "private")
	if next != "" {
		o.set("nextCursor", next)
	}
	return o, nil
}

// listItem is one tool, resource or prompt of a list.
type listItem struct {
	name   string
	object json.RawMessage
}

// shown returns the tools that a session sees, in a stable order.
func (s *Server) shown(ctx context.Context, in *agent.Session) ([]listItem, error) {
	tools, err := in.Tools(ctx)
	if err != nil {
		s.opts.Log.Warn("some tools are not listed", "error", err)
	}
	list := make([]listItem, 0, len(tools)+len(s.own))
	for _, t := range s.own {
		l, err := t.listed()
		if err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	for _, t := range tools {
		if _, own := s.transactionTool(t.Name()); own {
			continue // the name is taken
		}
		if s.isInternalTool(t) {
			continue
		}
		l, err := s.describe(t)
		if err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	slices.SortStableFunc(list, func(a, b listItem) int { return strings.Compare(a.name, b.name) })
	return list, nil
}

// pageAfter returns the page of a list that begins after a name.
func pageAfter(list []listItem, after string) (page []listItem, next string, ok bool) {
	if after != "" {
		at := -1
		for i, l := range list {
			if l.name == after {
				at = i
			}
		}
		if at < 0 {
			return nil, "", false
		}
		list = list[at+1:]
	}
	if len(list) > pageSize {
		return list[:pageSize], list[pageSize-1].name, true
	}
	return list, "", true
}

// describe returns a tool as the protocol lists it.
func (s *Server) describe(t tool.Tool) (listItem, error) {
	if s.opts.Mirror != nil {
		if object, ok := s.opts.Mirror.UpstreamDefinition(t); ok {
			var named struct {
				Name string `json:"name"`
			}
			if err := json.Unmarshal(object, &named); err != nil {
				return listItem{}, fmt.Errorf("mcp: how tool %s is listed: %w", t.Name(), err)
			}
			return listItem{name: named.Name, object: object}, nil
		}
	}
	spec := t.Spec()
	schema, _ := inputSchema(t)
	d := sdk.Tool{
		Name: t.Name(), Title: spec.Display.Names["en"], Description: t.ModelDescription(), InputSchema: schema,
		Annotations: annotations(t),
	}
	if len(spec.Output) > 0 {
		d.OutputSchema = spec.Output
	}
	for name, said := range map[string]string{metaUsage: spec.Usage, metaRisk: string(spec.Hints.Risk)} {
		if said != "" {
			d.Meta = withMember(d.Meta, name, said)
		}
	}
	if spec.Hints.Approval {
		d.Meta = withMember(d.Meta, metaApproval, true)
	}
	object, err := json.Marshal(d)
	if err != nil {
		return listItem{}, fmt.Errorf("mcp: how tool %s is listed: %w", t.Name(), err)
	}
	return listItem{name: t.Name(), object: object}, nil
}

// withMember returns metadata with one more member.
func withMember(m sdk.Meta, name string, value any) sdk.Meta {
	if m == nil {
		m = sdk.Meta{}
	}
	m[name] = value
	return m
}

// member holds the input of a tool that takes no object: arguments are always
// an object.
const member = "input"

// inputSchema returns the schema of a tool's arguments. Wrapped reports that
// the input is their only member.
func inputSchema(t tool.Tool) (schema json.RawMessage, wrapped bool) {
	schema = t.InputSchema()
	var root struct {
		Type any `json:"type"`
	}
	if json.Unmarshal(schema, &root) == nil && root.Type == "object" {
		return schema, false
	}
	data, err := json.Marshal(map[string]any{
		"type": "object", "properties": map[string]json.RawMessage{member: schema}, "required": []string{member}, "additionalProperties": false,
	})
	if err != nil {
		panic("mcp: " + err.Error()) // a schema is valid JSON
	}
	return data, true
}

// annotations returns hints from the tool's declaration. A client must not base
// a policy on them.
func annotations(t tool.Tool) *sdk.ToolAnnotations {
	spec := t.Spec()
	reads := t.Class() == effect.Pure || len(spec.Needs) > 0
	for _, need := range spec.Needs {
		reads = reads && (need.Action == perm.Read || need.Action == perm.List)
	}
	destructive := !reads && t.Class() != effect.Reversible && t.Class() != effect.Compensable
	open := spec.Destination != tool.NoDestination
	return &sdk.ToolAnnotations{
		Title: spec.Display.Names["en"], ReadOnlyHint: reads, IdempotentHint: spec.Hints.Idempotent,
		DestructiveHint: &destructive, OpenWorldHint: &open,
	}
}
