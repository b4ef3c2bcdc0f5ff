package gateway

import (
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/mcp"
)

// Entries lists the resources, templates and prompts of all servers, except
// those in quarantine.
func (g *Gateway) Entries() mcp.CatalogEntries { return g.mirror.Current().Catalog.All }

// Resource returns the entry that reads a resource. It returns false if no
// server or several servers own the resource.
func (g *Gateway) Resource(uri string) (mcp.CatalogEntry, bool) {
	return g.mirror.Current().Catalog.Resource(uri)
}

// Prompt returns the entry that reads a prompt, by the name that clients know.
func (g *Gateway) Prompt(name string, arguments map[string]string) (mcp.CatalogEntry, bool) {
	return g.mirror.Current().Catalog.Prompt(name, arguments)
}

// Completion returns the entry that completes an argument of a prompt or a
// template. It returns false if no server does.
func (g *Gateway) Completion(p *sdk.CompleteParams) (mcp.CatalogEntry, bool) {
	return g.mirror.Current().Catalog.Completion(p)
}
