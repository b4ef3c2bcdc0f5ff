package mcp

import (
	"context"
	"encoding/json"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// CatalogEntry is a resource, a resource template or a prompt of an upstream:
// how it is listed, and which tool call of the runtime reads it. The call
// returns the result as the upstream wrote it.
type CatalogEntry struct {
	Name   string          // a URI, a URI template, or the prompt's name for clients
	Object json.RawMessage // as it is listed
	Tool   string          // of the runtime; reads the entry
	Input  json.RawMessage // of that call; for a listed template or prompt: the input for the policy decision whether to show it
}

// CatalogEntries holds the entries of all upstreams. A nil list means that no
// upstream has such entries; an empty list means that there are none at the
// moment.
type CatalogEntries struct{ Resources, Templates, Prompts []CatalogEntry }

// Catalog is a Mirror whose upstreams also have resources and prompts. A
// session sees an entry only if the policy lets it read the entry. A Catalog is
// safe for concurrent use.
type Catalog interface {
	Mirror
	// Entries lists the entries, under the names that clients know.
	Entries() CatalogEntries
	// Resource returns the entry that reads a resource, listed or not. It
	// returns false if no upstream has the resource.
	Resource(uri string) (CatalogEntry, bool)
	// Prompt returns the entry that reads a prompt with arguments.
	Prompt(name string, arguments map[string]string) (CatalogEntry, bool)
	// Completion returns the entry that completes an argument of a prompt or a
	// resource. It returns false if no upstream does.
	Completion(p *sdk.CompleteParams) (CatalogEntry, bool)
	// Subscribe makes the catalog call ResourceChanged when a resource changes,
	// until the caller calls end. A *jsonrpc.Error with
	// jsonrpc.CodeMethodNotFound says that the upstream reports no changes.
	Subscribe(ctx context.Context, uri string) (end func(), err error)
}

// CatalogChanged tells clients that the resources and prompts of the Catalog
// changed.
func (s *Server) CatalogChanged() {
	s.registerResources()
	s.registerPrompts()
}

func (s *Server) catalogEntries() CatalogEntries {
	if s.catalog == nil {
		return CatalogEntries{}
	}
	return s.catalog.Entries()
}

// isInternalTool reports whether clients cannot call a tool: they read the
// entry that it serves.
func (s *Server) isInternalTool(t tool.Tool) bool {
	if s.opts.Mirror == nil {
		return false
	}
	object, mirrored := s.opts.Mirror.UpstreamDefinition(t)
	return mirrored && object == nil
}

// visibleEntries returns the entries that the session could read, except those
// whose name is taken.
func (s *Server) visibleEntries(ctx context.Context, in *agent.Session, offers []CatalogEntry, taken []listItem) (list []listItem) {
	for _, o := range offers {
		if slices.ContainsFunc(taken, func(l listItem) bool { return l.name == o.Name }) {
			continue
		}
		if s.previewRead(ctx, in, o) != perm.Deny {
			list = append(list, listItem{name: o.Name, object: o.Object})
		}
	}
	return list
}

// previewRead returns the effect that the policy would give a read now.
func (s *Server) previewRead(ctx context.Context, in *agent.Session, o CatalogEntry) perm.Effect {
	e, err := in.PreviewDecision(ctx, o.Tool, o.Input)
	if err != nil {
		s.opts.Log.Warn("something that another server has is not shown", "tool", o.Tool, "error", err)
	}
	return e
}

// upstreamResource finds a resource of an upstream that the session can see.
func (s *Server) upstreamResource(ctx context.Context, in *agent.Session, uri string) (CatalogEntry, bool) {
	if s.catalog == nil {
		return CatalogEntry{}, false
	}
	o, ok := s.catalog.Resource(uri)
	return o, ok && s.previewRead(ctx, in, o) != perm.Deny
}

func (s *Server) upstreamPrompt(ctx context.Context, in *agent.Session, name string, arguments map[string]string) (CatalogEntry, bool) {
	if s.catalog == nil {
		return CatalogEntry{}, false
	}
	o, ok := s.catalog.Prompt(name, arguments)
	return o, ok && s.previewRead(ctx, in, o) != perm.Deny
}

// upstreamResult responds with the result of an upstream.
func (s *Server) upstreamResult(ctx context.Context, req *sdk.CallToolRequest, by CatalogEntry) (*wireResult, error) {
	st, err := s.clientSessionOf(ctx, req.Extra)
	if err != nil {
		return nil, err
	}
	t, ok := st.session.Tool(by.Tool)
	if !ok {
		return nil, sdk.ResourceNotFoundError(by.Name)
	}
	req.Params.Name, req.Params.Arguments = by.Tool, by.Input
	c := s.newCall(st, req)
	c.tool = t
	o, err := c.begin(ctx)
	if err != nil || o.asks() {
		return o, err
	}
	return done(o)
}

// read responds to resources/read with the result of an upstream. The upstream
// says how long a client can cache it. The server says for whom.
func (s *Server) read(ctx context.Context, req *sdk.CallToolRequest, by CatalogEntry) (*wireResult, error) {
	o, err := s.upstreamResult(ctx, req, by)
	if err != nil || o.asks() {
		return o, err
	}
	if _, said := o.members["ttlMs"]; !said {
		o.set("ttlMs", 0)
	}
	o.set("cacheScope", "private")
	return o, nil
}

// completeElsewhere responds to completion/complete with the result of an
// upstream. If the policy asks, the server returns no values: an approval for
// each letter makes no sense.
func (s *Server) completeElsewhere(ctx context.Context, st *clientSession, req *sdk.CompleteRequest) (*wireResult, error) {
	if s.catalog == nil {
		return nil, errReference
	}
	by, ok := s.catalog.Completion(req.Params)
	if !ok {
		return nil, errReference
	}
	switch s.previewRead(ctx, st.session, by) {
	case perm.Allow:
	case perm.Ask:
		o := newObject(req.ProtocolVersion())
		o.set("completion", map[string]any{"values": json.RawMessage("[]")})
		return o, nil
	default:
		return nil, errReference
	}
	return s.upstreamResult(ctx, &sdk.CallToolRequest{Session: req.Session, Extra: req.Extra, Params: &sdk.CallToolParamsRaw{Meta: req.Params.Meta}}, by)
}
