package mcp

import (
	"context"
	"encoding/json"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp/internal/catalog"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// CatalogEntry is a resource, a template of resources or a prompt of another server: as it is listed, and by which call of a tool of the
// runtime it is read. What that call returns is the result as the other server wrote it.
type CatalogEntry = catalog.Offer

// CatalogEntries are those of all servers. A list that is nil means that no server has such things.
type CatalogEntries = catalog.All

// Catalog is a Mirror whose servers have resources and prompts, too. Each is there for those sessions alone that the policy would let
// read it. It is safe for concurrent use.
type Catalog interface {
	Mirror
	// Entries lists what there is, under the names that clients know.
	Entries() CatalogEntries
	// Resource returns what reads a resource, listed or not; false where no server has it.
	Resource(uri string) (CatalogEntry, bool)
	// Prompt returns what reads a prompt with some arguments.
	Prompt(name string, arguments map[string]string) (CatalogEntry, bool)
	// Completion returns what completes an argument of a prompt or a resource; false where nobody does.
	Completion(p *sdk.CompleteParams) (CatalogEntry, bool)
	// Subscribe has ResourceChanged be called when a resource changes, until end is called. An error that is a *jsonrpc.Error of
	// jsonrpc.CodeMethodNotFound says that its server tells nobody.
	Subscribe(ctx context.Context, uri string) (end func(), err error)
}

// CatalogChanged tells clients that the resources and prompts of the Library are others by now.
func (s *Server) CatalogChanged() {
	s.standForResources()
	s.standForPrompts()
}

func (s *Server) catalogEntries() CatalogEntries {
	if s.library == nil {
		return CatalogEntries{}
	}
	return s.library.Entries()
}

// isInternalTool reports whether a tool is none for clients: they read what it stands for.
func (s *Server) isInternalTool(t tool.Tool) bool {
	if s.opts.Mirror == nil {
		return false
	}
	object, mirrored := s.opts.Mirror.UpstreamDefinition(t)
	return mirrored && object == nil
}

// visibleEntries are the offers that a session could have read, and that no other thing has the name of.
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

// previewRead is what a read would meet now.
func (s *Server) previewRead(ctx context.Context, in *agent.Session, o CatalogEntry) perm.Effect {
	e, err := in.PreviewDecision(ctx, o.Tool, o.Input)
	if err != nil {
		s.opts.Log.Warn("something that another server has is not shown", "tool", o.Tool, "error", err)
	}
	return e
}

// upstreamResource finds a resource of another server that the session may see.
func (s *Server) upstreamResource(ctx context.Context, in *agent.Session, uri string) (CatalogEntry, bool) {
	if s.library == nil {
		return CatalogEntry{}, false
	}
	o, ok := s.library.Resource(uri)
	return o, ok && s.previewRead(ctx, in, o) != perm.Deny
}

func (s *Server) upstreamPrompt(ctx context.Context, in *agent.Session, name string, arguments map[string]string) (CatalogEntry, bool) {
	if s.library == nil {
		return CatalogEntry{}, false
	}
	o, ok := s.library.Prompt(name, arguments)
	return o, ok && s.previewRead(ctx, in, o) != perm.Deny
}

// upstreamResult answers by what another server says.
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

// read answers resources/read by what another server says. For how long that holds is its own word; for whom is not.
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

// completeElsewhere answers completion/complete by what another server says. Nobody is asked for each letter: where the policy would
// have somebody asked, there are no values.
func (s *Server) completeElsewhere(ctx context.Context, st *clientSession, req *sdk.CompleteRequest) (*wireResult, error) {
	if s.library == nil {
		return nil, errReference
	}
	by, ok := s.library.Completion(req.Params)
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
