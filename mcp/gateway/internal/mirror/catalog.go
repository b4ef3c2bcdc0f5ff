package mirror

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"

	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/mcp/gateway/internal/definition"
	"github.com/remit-dev/remit/mcp/gateway/internal/naming"
	"github.com/remit-dev/remit/mcp/gateway/internal/pin"
	"github.com/remit-dev/remit/mcp/gateway/internal/upstream"
)

// Catalog holds the resources and prompts of all servers: resources by
// their own URIs, prompts under names like those of tools. A URI must have one
// owner. If two servers list it, the gateway reads it from neither.
type Catalog struct {
	All     mcp.CatalogEntries
	servers []*serverCatalog
	owner   map[string]*serverCatalog // of listed resources, by URI; nil: several servers list it
	prompts map[string]catalogPrompt
}

// serverCatalog holds the entries of one server.
type serverCatalog struct {
	u                      *upstream.Upstream
	read, prompt, complete string // tools of the runtime; empty: none
	shapes                 []resourceTemplate
	resources              []definition.Resource
	defs                   []definition.Definition // visible prompts and templates
}

// resourceTemplate is a template of resources.
type resourceTemplate struct {
	*uritemplate.Template
	held bool // in quarantine: no server owns its URIs
}

// catalogPrompt is a prompt.
type catalogPrompt struct {
	*serverCatalog
	name string // the server's name for it
}

// addCatalog adds the catalog of one server.
func (b *builder) addCatalog(u *upstream.Upstream, d definition.Declared, held []pin.Item) {
	if u.Unknown() { // until the server responds
		all := &b.mirror.Catalog.All
		if !u.Server.NoResources && all.Resources == nil {
			all.Resources = []mcp.CatalogEntry{}
		}
		if !u.Server.NoPrompts && all.Prompts == nil {
			all.Prompts = []mcp.CatalogEntry{}
		}
	}
	s := &serverCatalog{u: u}
	withheld := reason(held, u.Server.Name, "")
	for _, def := range d.Defs {
		why := reason(held, u.Server.Name, def.Key())
		if def.Kind == definition.Templates {
			t, err := uritemplate.New(def.Name)
			if err != nil {
				b.leaveOut(u, def.Key(), def.Raw, fmt.Errorf("it is no template of URIs as RFC 6570 has them: %w", err))
				continue
			}
			s.shapes = append(s.shapes, resourceTemplate{t, why != ""})
		}
		if def.Kind != definition.Tools && why == "" {
			s.defs = append(s.defs, def)
		}
	}
	s.resources = d.Resources
	for _, r := range []struct {
		is   bool
		into *string
		make func(serverCatalog) catalogTool
	}{
		{d.Reads, &s.read, serverCatalog.resourceTool},
		{d.Prompts, &s.prompt, serverCatalog.promptTool},
		{d.Completes && (d.Reads || d.Prompts), &s.complete, serverCatalog.completer},
	} {
		if !r.is {
			continue
		}
		t, err := r.make(*s).tool(d.Identity, withheld)
		if err != nil {
			b.leaveOut(u, "", nil, err)
			continue
		}
		b.mirror.Tools, b.mirror.Listings[t.Name()] = append(b.mirror.Tools, t), nil
		*r.into = t.Name()
	}
	b.mirror.Catalog.servers = append(b.mirror.Catalog.servers, s)
}

// assignOwners determines the owners of URIs and prompts.
func (l *Catalog) assignOwners(b *builder) {
	l.owner, l.prompts = map[string]*serverCatalog{}, map[string]catalogPrompt{}
	claims := map[string][]string{} // of URIs and templates, by server
	for _, s := range l.servers {
		for _, r := range s.resources {
			claims[r.URI] = append(claims[r.URI], s.u.Server.Name)
			for _, other := range l.servers {
				if other != s && other.fits(r.URI) && !other.has(r.URI) {
					claims[r.URI] = append(claims[r.URI], other.u.Server.Name)
				}
			}
		}
		for _, d := range s.defs {
			if d.Kind == definition.Templates {
				claims[d.Name] = append(claims[d.Name], s.u.Server.Name)
			}
		}
	}
	for _, uri := range slices.Sorted(maps.Keys(claims)) {
		if who := slices.Compact(slices.Sorted(slices.Values(claims[uri]))); len(who) > 1 {
			l.owner[uri] = nil
			b.m.Log.Warn("several servers claim the same resource; it is served of none", "uri", uri, "servers", strings.Join(who, ", "))
		}
	}
	for _, s := range l.servers {
		l.list(s)
	}
}

// list lists the entries of one server.
func (l *Catalog) list(s *serverCatalog) {
	if s.read != "" {
		l.All.Resources, l.All.Templates = append([]mcp.CatalogEntry{}, l.All.Resources...), append([]mcp.CatalogEntry{}, l.All.Templates...)
		for _, r := range s.resources {
			if _, contested := l.owner[r.URI]; !contested {
				l.owner[r.URI] = s
				l.All.Resources = append(l.All.Resources, s.offer(r.URI, r.Raw))
			}
		}
	}
	if s.prompt != "" {
		l.All.Prompts = append([]mcp.CatalogEntry{}, l.All.Prompts...)
	}
	for _, d := range s.defs {
		_, contested := l.owner[d.Name]
		switch {
		case d.Kind == definition.Templates && s.read != "" && !contested:
			l.All.Templates = append(l.All.Templates, s.offer(d.Name, d.Raw))
		case d.Kind == definition.Prompts && s.prompt != "":
			name := naming.ForClients(s.u.Server.Name, d.Name)
			object, err := d.ListedAs(name)
			if err != nil {
				continue // impossible: the name came from it
			}
			l.prompts[name] = catalogPrompt{s, d.Name}
			l.All.Prompts = append(l.All.Prompts, mcp.CatalogEntry{Name: name, Object: object, Tool: s.prompt, Input: encoded(promptInput{Name: d.Name})})
		}
	}
}

func (s *serverCatalog) offer(uri string, object json.RawMessage) mcp.CatalogEntry {
	return mcp.CatalogEntry{Name: uri, Object: object, Tool: s.read, Input: encoded(resourceInput{uri})}
}

// like reports whether clients see the same in both catalogs.
func (l *Catalog) like(other Catalog) bool {
	return sameEntries(l.All.Resources, other.All.Resources) && sameEntries(l.All.Templates, other.All.Templates) && sameEntries(l.All.Prompts, other.All.Prompts)
}

// sameEntries reports whether clients see two lists of entries as the same. No
// list is not the same as an empty one.
func sameEntries(a, b []mcp.CatalogEntry) bool {
	return (a == nil) == (b == nil) && slices.EqualFunc(a, b, func(x, y mcp.CatalogEntry) bool {
		return x.Name == y.Name && x.Tool == y.Tool && string(x.Object) == string(y.Object)
	})
}

func (s *serverCatalog) has(uri string) bool {
	return slices.ContainsFunc(s.resources, func(r definition.Resource) bool { return r.URI == uri })
}

// fits reports whether a URI matches a template of the server.
func (s *serverCatalog) fits(uri string) bool {
	return slices.ContainsFunc(s.shapes, func(t resourceTemplate) bool { return t.fits(uri) })
}

func (t resourceTemplate) fits(uri string) bool {
	plain, _, _ := strings.Cut(t.Raw(), "{")
	return strings.HasPrefix(uri, plain) && t.Match(uri) != nil
}

// held reports whether a URI matches only templates in quarantine.
func (s *serverCatalog) held(uri string) bool {
	held := false
	for _, t := range s.shapes {
		if t.fits(uri) {
			if !t.held {
				return false
			}
			held = true
		}
	}
	return held
}

// of finds the one owner of a URI: the server that lists it, or that has a
// matching template. An unclaimed URI belongs to the only server with
// resources, as results can name resources that no server lists.
func (l *Catalog) of(uri string) (*serverCatalog, bool) {
	if s, listed := l.owner[uri]; listed {
		return s, s != nil
	}
	var fit, all []*serverCatalog
	for _, s := range l.servers {
		if s.read == "" {
			continue
		}
		all = append(all, s)
		if s.fits(uri) {
			fit = append(fit, s)
		}
	}
	if len(fit) == 0 {
		fit = all
	}
	if len(fit) != 1 || fit[0].held(uri) {
		return nil, false
	}
	return fit[0], true
}

// Resource returns the entry that reads a resource. It returns false if no
// server or several servers own the resource.
func (l *Catalog) Resource(uri string) (mcp.CatalogEntry, bool) {
	s, ok := l.of(uri)
	if !ok || !definition.PlainName(uri) {
		return mcp.CatalogEntry{}, false
	}
	return s.offer(uri, nil), true
}

// Upstream returns the one owner of a resource, or nil.
func (l *Catalog) Upstream(uri string) *upstream.Upstream {
	if s, ok := l.of(uri); ok && definition.PlainName(uri) {
		return s.u
	}
	return nil
}

// Prompt returns the entry that reads a prompt, by the name that clients know.
func (l *Catalog) Prompt(name string, arguments map[string]string) (mcp.CatalogEntry, bool) {
	p, ok := l.prompts[name]
	if !ok {
		return mcp.CatalogEntry{}, false
	}
	return mcp.CatalogEntry{Name: name, Tool: p.prompt, Input: encoded(promptInput{p.name, maps.Clone(arguments)})}, true
}

// Completion returns the entry that completes an argument of a prompt or a
// template. It returns false if no server does.
func (l *Catalog) Completion(p *sdk.CompleteParams) (mcp.CatalogEntry, bool) {
	if p.Ref == nil {
		return mcp.CatalogEntry{}, false
	}
	in := completionInput{Argument: argumentInput{p.Argument.Name, p.Argument.Value}}
	if p.Context != nil {
		in.Context = p.Context.Arguments
	}
	var s *serverCatalog
	switch p.Ref.Type {
	case refPrompt:
		found, ok := l.prompts[p.Ref.Name]
		if !ok {
			return mcp.CatalogEntry{}, false
		}
		s, in.Prompt = found.serverCatalog, found.name
	case refResource:
		var ok bool
		if s, ok = l.shape(p.Ref.URI); !ok {
			return mcp.CatalogEntry{}, false
		}
		in.Resource = p.Ref.URI
	}
	if s == nil || s.complete == "" {
		return mcp.CatalogEntry{}, false
	}
	return mcp.CatalogEntry{Tool: s.complete, Input: encoded(in)}, true
}

// shape finds the server of a template, or of the resource of a URI.
func (l *Catalog) shape(uri string) (*serverCatalog, bool) {
	for _, t := range l.All.Templates {
		if t.Name == uri {
			i := slices.IndexFunc(l.servers, func(s *serverCatalog) bool { return s.read == t.Tool })
			return l.servers[i], true
		}
	}
	return l.of(uri)
}

// The references of a completion.
const (
	refPrompt   = "ref/prompt"
	refResource = "ref/resource"
)

func encoded(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("gateway: " + err.Error()) // only strings
	}
	return raw
}
