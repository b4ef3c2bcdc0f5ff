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

// listTools responds to tools/list with a page of the tools that the policy
// does not hide from the session, by name. The cursor is the name of the last
// tool of the page before, so a page costs the same whatever comes after it.
func (s *Server) listTools(ctx context.Context, req *sdk.ListToolsRequest) (*wireResult, error) {
	st, err := s.clientSessionOf(ctx, req.Extra)
	if err != nil {
		return nil, err
	}
	s.awaitNew(ctx)
	after := ""
	if req.Params != nil {
		after = req.Params.Cursor
	}
	if after != "" && !s.lists(ctx, st.session, after) {
		return nil, errCursor()
	}
	page, err := s.toolsAfter(ctx, st.session, after)
	if err != nil {
		return nil, err
	}
	next := ""
	if len(page) > pageSize {
		page, next = page[:pageSize], page[pageSize-1].name
	}
	return pageResult(req.ProtocolVersion(), "tools", page, next), nil
}

// toolsAfter returns the tools of a page that a session sees, and one more if
// there is one.
func (s *Server) toolsAfter(ctx context.Context, in *agent.Session, after string) (list []listItem, err error) {
	for _, t := range s.own {
		if t.name <= after {
			continue
		}
		l, err := t.listed()
		if err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	most := len(list) + pageSize
	var failed error
	for t, err := range in.ToolsAfter(ctx, after) {
		if err != nil {
			failed = err
			continue
		}
		if _, own := s.transactionTool(t.Name()); own || s.isInternalTool(t) {
			continue // the name is taken, or clients read an entry that the tool serves
		}
		l, err := s.describe(t)
		if err != nil {
			return nil, err
		}
		if list = append(list, l); len(list) > most {
			break
		}
	}
	if failed != nil {
		s.opts.Log.Warn("some tools are not listed", "error", failed)
	}
	slices.SortStableFunc(list, func(a, b listItem) int { return strings.Compare(a.name, b.name) })
	return list[:min(len(list), pageSize+1)], nil
}

// lists reports whether a name is one of the session's list. A cursor must not
// reveal another one.
func (s *Server) lists(ctx context.Context, in *agent.Session, name string) bool {
	if _, own := s.transactionTool(name); own {
		return true
	}
	t, shown := shownTool(ctx, in, name)
	return shown && t.Name() == name && !s.isInternalTool(t)
}

// shownTool returns the tool of a name, if the session sees it.
func shownTool(ctx context.Context, in *agent.Session, name string) (tool.Tool, bool) {
	t, known := in.Tool(name)
	if !known {
		return t, false
	}
	hidden, err := in.ToolHiddenReason(ctx, name)
	return t, err == nil && hidden == ""
}

// awaitNew waits a moment for upstreams that have not responded yet.
func (s *Server) awaitNew(ctx context.Context) {
	if a, ok := s.opts.Mirror.(Awaiter); ok {
		a.AwaitNew(ctx)
	}
}

// pageOf responds with the page of a whole list that begins after a cursor.
func pageOf(revision, member string, list []listItem, after string) (*wireResult, error) {
	page, next, ok := pageAfter(list, after)
	if !ok {
		return nil, errCursor()
	}
	return pageResult(revision, member, page, next), nil
}

func errCursor() error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the cursor is none that this server gave"}
}

func pageResult(revision, member string, page []listItem, next string) *wireResult {
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
	return o
}

// listItem is one tool, resource or prompt of a list. Its name is that of the
// runtime, which orders the list.
type listItem struct {
	name   string
	object json.RawMessage
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

// maxDescribed bounds the tools whose description a server keeps.
const maxDescribed = 8192

// describe returns a tool as the protocol lists it. A tool never changes, so the
// server keeps its description.
func (s *Server) describe(t tool.Tool) (listItem, error) {
	if s.opts.Mirror != nil {
		if object, ok := s.opts.Mirror.UpstreamDefinition(t); ok {
			return listItem{name: t.Name(), object: object}, nil
		}
	}
	if item, known := s.described.Get(t); known {
		return item, nil
	}
	item, err := described(t)
	if err == nil {
		s.described.Add(t, item)
	}
	return item, err
}

func described(t tool.Tool) (listItem, error) {
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
