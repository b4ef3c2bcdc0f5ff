package mirror

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/mcp/gateway/internal/definition"
	"github.com/remit-dev/remit/mcp/gateway/internal/naming"
	"github.com/remit-dev/remit/mcp/gateway/internal/pin"
	"github.com/remit-dev/remit/mcp/gateway/internal/undo"
	"github.com/remit-dev/remit/mcp/gateway/internal/upstream"
	"github.com/remit-dev/remit/tool"
)

// Options configure a mirror.
type Options struct {
	QuarantineNew       bool        // quarantine the definitions at the first start
	SkipInputValidation bool        // leave the validation of inputs to each server
	OtherTools          []tool.Tool // of the runtime; names that could be confused with theirs are in quarantine
	Log                 *slog.Logger
	OnToolsChanged      func([]tool.Tool) // can be nil
	OnCatalogChanged    func()            // can be nil
}

// Mirror makes tools and a catalog of what the upstreams declare.
type Mirror struct {
	Options

	servers  []*upstream.Upstream
	pins     *pin.Store
	attempts *undo.Attempts

	rebuildLock chan struct{} // serializes rebuilds
	seen        atomic.Pointer[Snapshot]
	warned      map[string]bool // entries with warnings about missing tools; only a rebuild uses it
}

// New returns a mirror that is empty until the first Rebuild. Attempts records
// the compensations that were sent.
func New(o Options, servers []*upstream.Upstream, pins *pin.Store, attempts *undo.Attempts) *Mirror {
	return &Mirror{Options: o, servers: servers, pins: pins, attempts: attempts, rebuildLock: make(chan struct{}, 1), warned: map[string]bool{}}
}

// Snapshot holds all tools at one time.
type Snapshot struct {
	Tools       []tool.Tool
	Listings    map[string]json.RawMessage    // by name of the tool
	Upstreams   map[string]*upstream.Upstream // by name of the tool, except catalog tools
	Names       map[string]string             // names of tools by the names that clients know
	Quarantined []pin.Item
	Catalog     Catalog
}

// Current returns the tools of the last rebuild.
func (m *Mirror) Current() *Snapshot { return m.seen.Load() }

// Rebuild makes the mirror of what the servers declare now, and reports
// changes.
func (m *Mirror) Rebuild() error {
	m.rebuildLock <- struct{}{}
	defer func() { <-m.rebuildLock }()
	b := builder{m: m, mirror: &Snapshot{Listings: map[string]json.RawMessage{}, Upstreams: map[string]*upstream.Upstream{}, Names: map[string]string{}}, taken: map[string]string{}, prompts: map[string]string{}}
	for _, t := range m.OtherTools {
		b.taken[naming.Likeness(t.Name())] = t.Name()
	}
	for _, u := range m.servers {
		if err := b.server(u); err != nil {
			return err
		}
	}
	b.mirror.Catalog.assignOwners(&b)
	old := m.seen.Swap(b.mirror)
	m.warnOf(b.mirror, old)
	if old == nil {
		return nil
	}
	if m.OnToolsChanged != nil && !same(old.Tools, b.mirror.Tools) {
		m.OnToolsChanged(slices.Clone(m.seen.Load().Tools))
	}
	if m.OnCatalogChanged != nil && !b.mirror.Catalog.like(old.Catalog) {
		m.OnCatalogChanged()
	}
	return nil
}

// warnOf logs the items that are newly in quarantine.
func (m *Mirror) warnOf(now, before *Snapshot) {
	for _, q := range now.Quarantined {
		if before == nil || !slices.ContainsFunc(before.Quarantined, func(o pin.Item) bool { return o.Server == q.Server && o.Tool == q.Tool && o.Why == q.Why }) {
			m.Log.Warn("a tool is in quarantine", "tool", q.Server+"/"+q.Tool, "why", q.Why)
		}
	}
}

func same(a, b []tool.Tool) bool {
	return slices.EqualFunc(a, b, func(x, y tool.Tool) bool { return x.Digest() == y.Digest() })
}

type builder struct {
	m       *Mirror
	mirror  *Snapshot
	taken   map[string]string // tools, by likeness
	prompts map[string]string // prompts, by likeness
}

func (b *builder) server(u *upstream.Upstream) error {
	d := u.Declared()
	var held []pin.Item
	var err error
	if d.Known {
		b.unknownArguments(u, d.Of(definition.Tools))
		held, err = b.m.pins.Judge(u.Server.Name, d, b.m.QuarantineNew)
	} else { // not started yet: use its pins
		d, err = b.accepted(u)
	}
	if err != nil {
		return err
	}
	held = append(held, b.nameConflicts(u, d.Of(definition.Tools), b.taken, naming.ForRuntime)...)
	held = append(held, b.nameConflicts(u, d.Of(definition.Prompts), b.prompts, naming.ForClients)...)
	b.mirror.Quarantined = append(b.mirror.Quarantined, held...)
	has := d.Of(definition.Tools)
	for _, def := range has {
		if err := b.tool(u, def, has, d.Identity, reason(held, u.Server.Name, def.Name)); err != nil {
			b.leaveOut(u, def.Key(), def.Raw, err)
		}
	}
	b.addCatalog(u, d, held)
	r, err := b.m.reserve(u)
	if err != nil {
		return err
	}
	b.mirror.Tools, b.mirror.Listings[r.Name()] = append(b.mirror.Tools, r), nil
	return nil
}

// leaveOut notes a definition that cannot be served.
func (b *builder) leaveOut(u *upstream.Upstream, key string, object json.RawMessage, why error) {
	b.m.Log.Warn("something of a server is left out", "server", u.Server.Name, "what", key, "error", why)
	b.mirror.Quarantined = append(b.mirror.Quarantined, pin.Item{Server: u.Server.Name, Tool: key, Why: why.Error(), After: object})
}

// accepted returns the pins of a server as its definitions.
func (b *builder) accepted(u *upstream.Upstream) (d definition.Declared, err error) {
	have, _ := b.m.pins.Server(u.Server.Name)
	d.Identity = have.Identity
	for _, key := range slices.Sorted(maps.Keys(have.Tools)) {
		k := definition.KindOf(key)
		def, bad := definition.Parse(k, have.Tools[key].Definition)
		if bad != nil || def.Digest != have.Tools[key].Digest || def.Key() != key {
			return d, fmt.Errorf("what was accepted of %s of server %s was changed since, and not by remit", definition.Describe(key), u.Server.Name)
		}
		d.Defs = append(d.Defs, def)
	}
	d.Prompts, d.Reads, d.Completes = have.Prompts && !u.Server.NoPrompts, have.Resources && !u.Server.NoResources, have.Completes
	return d, nil
}

func (b *builder) tool(u *upstream.Upstream, d definition.Definition, has []definition.Definition, identity, withheld string) error {
	clash := b.taken[naming.Likeness(naming.ForRuntime(u.Server.Name, d.Name))] != naming.ForClients(u.Server.Name, d.Name)
	if clash {
		b.mirror.Names[naming.ForClients(u.Server.Name, d.Name)] = "" // known, but ambiguous
		return nil
	}
	m := b.m.tool(u, d, identity, u.Server.Tools[d.Name])
	if err := m.checkEntry(has); err != nil {
		return fmt.Errorf("its entry does not fit: %w", err)
	}
	spec, err := m.spec(b.m.SkipInputValidation)
	if err != nil {
		return err
	}
	spec.DisabledReason = withheld
	t, err := tool.FromSpec(spec)
	if err != nil {
		return err
	}
	object, err := d.ListedAs(naming.ForClients(u.Server.Name, d.Name))
	if err != nil {
		return err
	}
	b.mirror.Tools = append(b.mirror.Tools, t)
	b.mirror.Listings[t.Name()], b.mirror.Upstreams[t.Name()] = object, u
	b.mirror.Names[naming.ForClients(u.Server.Name, d.Name)] = t.Name()
	return nil
}

func (m *Mirror) tool(u *upstream.Upstream, d definition.Definition, identity string, e config.Entry) mirroredTool {
	return mirroredTool{u: u, def: d, identity: identity, entry: e, undo: undo.Tool{Upstream: u, Entry: e, Name: d.Name, Attempts: m.attempts}}
}

// unknownArguments warns about entries for tools that a server does not have:
// they have no effect.
func (b *builder) unknownArguments(u *upstream.Upstream, has []definition.Definition) {
	var names []string
	for _, d := range has {
		names = append(names, d.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(u.Server.Tools)) {
		if !slices.Contains(names, name) && !b.m.warned[u.Server.Name+"/"+name] {
			b.m.warned[u.Server.Name+"/"+name] = true
			b.m.Log.Warn("an entry is of no tool", "server", u.Server.Name, "why", naming.Unknown("tool", name, "the server", slices.Clone(names)))
		}
	}
}
