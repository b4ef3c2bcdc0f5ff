package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/mcp/gateway/internal/binding"
	"github.com/remit-dev/remit/mcp/gateway/internal/clientrequest"
	"github.com/remit-dev/remit/mcp/gateway/internal/definition"
	"github.com/remit-dev/remit/mcp/gateway/internal/naming"
	"github.com/remit-dev/remit/mcp/gateway/internal/pin"
	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
	"github.com/remit-dev/remit/mcp/internal/clientctx"
	"github.com/remit-dev/remit/mcp/internal/rawresult"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// rebuild makes the mirror of what the servers declare now, and reports
// changes.
func (g *Gateway) rebuild() error {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	b := builder{g: g, mirror: &toolSnapshot{listed: map[string]json.RawMessage{}, of: map[string]*upstream{}, called: map[string]string{}}, taken: map[string]string{}, prompts: map[string]string{}}
	for _, t := range g.opts.OtherTools {
		b.taken[naming.Likeness(t.Name())] = t.Name()
	}
	for _, u := range g.servers {
		if err := b.server(u); err != nil {
			return err
		}
	}
	b.mirror.library.shelve(&b)
	old := g.seen.Swap(b.mirror)
	g.warnOf(b.mirror, old)
	if old == nil {
		return nil
	}
	if g.opts.OnToolsChanged != nil && !same(old.tools, b.mirror.tools) {
		g.opts.OnToolsChanged(g.Tools())
	}
	if g.opts.OnCatalogChanged != nil && !b.mirror.library.like(old.library) {
		g.opts.OnCatalogChanged()
	}
	return nil
}

// warnOf logs the items that are newly in quarantine.
func (g *Gateway) warnOf(now, before *toolSnapshot) {
	for _, q := range now.quarantined {
		if before == nil || !slices.ContainsFunc(before.quarantined, func(o pin.Item) bool { return o.Server == q.Server && o.Tool == q.Tool && o.Why == q.Why }) {
			g.log.Warn("a tool is in quarantine", "tool", q.Server+"/"+q.Tool, "why", q.Why)
		}
	}
}

func same(a, b []tool.Tool) bool {
	return slices.EqualFunc(a, b, func(x, y tool.Tool) bool { return x.Digest() == y.Digest() })
}

type builder struct {
	g       *Gateway
	mirror  *toolSnapshot
	taken   map[string]string // tools, by likeness
	prompts map[string]string // prompts, by likeness
}

func (b *builder) server(u *upstream) error {
	d := u.declared()
	var held []pin.Item
	var err error
	if d.Known {
		b.unknownArguments(u, d.Of(definition.Tools))
		held, err = b.g.pins.Judge(u.cfg.Name, d, b.g.opts.QuarantineNew)
	} else { // not started yet: use its pins
		d, err = b.accepted(u)
	}
	if err != nil {
		return err
	}
	held = append(held, b.nameConflicts(u, d.Of(definition.Tools), b.taken, naming.ForRuntime)...)
	held = append(held, b.nameConflicts(u, d.Of(definition.Prompts), b.prompts, naming.ForClients)...)
	b.mirror.quarantined = append(b.mirror.quarantined, held...)
	has := d.Of(definition.Tools)
	for _, def := range has {
		if err := b.tool(u, def, has, d.Identity, reason(held, u.cfg.Name, def.Name)); err != nil {
			b.leaveOut(u, def.Key(), def.Raw, err)
		}
	}
	b.library(u, d, held)
	r, err := u.reserve()
	if err != nil {
		return err
	}
	b.mirror.tools, b.mirror.listed[r.Name()] = append(b.mirror.tools, r), nil
	return nil
}

// leaveOut notes a definition that cannot be served.
func (b *builder) leaveOut(u *upstream, key string, object json.RawMessage, why error) {
	b.g.log.Warn("something of a server is left out", "server", u.cfg.Name, "what", key, "error", why)
	b.mirror.quarantined = append(b.mirror.quarantined, pin.Item{Server: u.cfg.Name, Tool: key, Why: why.Error(), After: object})
}

// accepted returns the pins of a server as its definitions.
func (b *builder) accepted(u *upstream) (d definition.Declared, err error) {
	have, _ := b.g.pins.Server(u.cfg.Name)
	d.Identity = have.Identity
	for _, key := range slices.Sorted(maps.Keys(have.Tools)) {
		k := definition.KindOf(key)
		def, bad := definition.Parse(k, have.Tools[key].Definition)
		if bad != nil || def.Digest != have.Tools[key].Digest || def.Key() != key {
			return d, fmt.Errorf("what was accepted of %s of server %s was changed since, and not by remit", definition.Describe(key), u.cfg.Name)
		}
		d.Defs = append(d.Defs, def)
	}
	d.Prompts, d.Reads, d.Completes = have.Prompts && !u.cfg.NoPrompts, have.Resources && !u.cfg.NoResources, have.Completes
	return d, nil
}

// nameConflicts finds the tools, or the prompts, of one server that a reader
// could confuse with one another, or with another one. The gateway serves
// neither, as it cannot know which one a caller means.
func (b *builder) nameConflicts(u *upstream, defs []definition.Definition, seen map[string]string, name func(server, name string) string) (out []pin.Item) {
	mine := map[string][]definition.Definition{}
	for _, d := range defs {
		like := naming.Likeness(name(u.cfg.Name, d.Name))
		mine[like] = append(mine[like], d)
	}
	for like, all := range mine {
		other, taken := seen[like]
		for i, d := range all {
			what, _, _ := strings.Cut(definition.Describe(d.Key()), " ")
			switch {
			case taken:
				out = append(out, pin.Item{Server: u.cfg.Name, Tool: d.Key(), After: d.Raw, Why: fmt.Sprintf("it could be taken for the %s %q", what, other)})
			case len(all) > 1:
				out = append(out, pin.Item{Server: u.cfg.Name, Tool: d.Key(), After: d.Raw, Why: fmt.Sprintf("the %ss %q and %q could be taken for one another", what, d.Name, all[(i+1)%len(all)].Name)})
			}
		}
		if len(all) > 1 || taken {
			continue
		}
		seen[like] = naming.ForClients(u.cfg.Name, all[0].Name)
	}
	slices.SortFunc(out, func(x, y pin.Item) int { return cmp.Compare(x.Tool, y.Tool) })
	return out
}

// reason returns why a tool is in quarantine, or "".
func reason(held []pin.Item, server, name string) string {
	for _, q := range held {
		if q.Tool == name || q.Tool == "" {
			return fmt.Sprintf("it is in quarantine: %s; remit gateway accept %s/%s, with the --config and --state of the gateway, shows the difference and accepts it", q.Why, server, name)
		}
	}
	return ""
}

func (b *builder) tool(u *upstream, d definition.Definition, has []definition.Definition, identity, withheld string) error {
	clash := b.taken[naming.Likeness(naming.ForRuntime(u.cfg.Name, d.Name))] != naming.ForClients(u.cfg.Name, d.Name)
	if clash {
		b.mirror.called[naming.ForClients(u.cfg.Name, d.Name)] = "" // known, but ambiguous
		return nil
	}
	m := mirroredTool{u: u, def: d, identity: identity, entry: u.cfg.Tools[d.Name]}
	if err := m.checkEntry(has); err != nil {
		return fmt.Errorf("its entry does not fit: %w", err)
	}
	spec, err := m.spec(b.g.opts.SkipInputValidation)
	if err != nil {
		return err
	}
	spec.DisabledReason = withheld
	t, err := tool.FromSpec(spec)
	if err != nil {
		return err
	}
	object, err := d.ListedAs(naming.ForClients(u.cfg.Name, d.Name))
	if err != nil {
		return err
	}
	b.mirror.tools = append(b.mirror.tools, t)
	b.mirror.listed[t.Name()], b.mirror.of[t.Name()] = object, u
	b.mirror.called[naming.ForClients(u.cfg.Name, d.Name)] = t.Name()
	return nil
}

// mirroredTool is one tool of a server as a tool of the runtime.
type mirroredTool struct {
	u        *upstream
	def      definition.Definition
	identity string
	entry    config.Entry
}

// undoVersion must change when Revert interprets the records of a call
// differently.
const undoVersion = "gateway/1"

func (m mirroredTool) spec(loose bool) (tool.Spec, error) {
	self, err := perm.KindMCP.Resource(m.u.cfg.Name, m.def.Name)
	if err != nil {
		return tool.Spec{}, err
	}
	e := m.entry
	s := tool.Spec{
		Name: naming.ForRuntime(m.u.cfg.Name, m.def.Name), Description: m.def.Description, Tags: []string{"mcp", "untrusted"}, OutputContent: &provenance.Content{Trust: provenance.Untrusted},
		Input: m.def.InputSchema(loose), Needs: append(m.u.asks.Needs(), perm.Access(perm.Call, self.String())),
		EffectClass: e.Class, Destination: e.Destination, Execute: m.execute,
		Provenance: provenance.Source{Kind: provenance.MCP, Name: naming.ForClients(m.u.cfg.Name, m.def.Name), Version: m.def.Digest},
		Hints:      tool.Hints{Timeout: e.Timeout, Idempotent: e.Idempotent, Risk: e.Risk, Approval: e.Approval},
	}
	if e.Draft {
		s.Tags = append(s.Tags, "draft")
	}
	if m.u.box != nil {
		s = sandboxSpec(m.u.box, s)
	}
	if err := m.needs(&s); err != nil {
		return tool.Spec{}, err
	}
	switch {
	case e.Observed:
		s.Coverage, s.Observed = effect.Observed, observedRoots(e)
	case len(e.Snapshot) > 0:
		s.Confinement, s.Coverage = tool.Handles, effect.Declared
	}
	if e.Compensate != nil {
		s.Revert, s.UndoVersion = m.revert, undoVersion
	}
	if !e.Observed && slices.ContainsFunc(e.Snapshot, func(resource string) bool { _, tree := binding.FolderOf(resource); return tree }) {
		s.Verify = verify.Changes
	}
	if e.Verify != nil {
		s.Verify = m.verify
	}
	return s, nil
}

// needs adds the needs of the entry.
func (m mirroredTool) needs(s *tool.Spec) error {
	return needs(s, slices.Concat(m.entry.Needs, m.snapshots()), m.u.g.opts.Roots)
}

// needs adds accesses. Those that name arguments are computed for each call.
func needs(s *tool.Spec, all []perm.ResourceAccess, roots map[string]string) error {
	var named []binding.Binding
	for _, a := range all {
		b, err := binding.New(a, roots)
		if err != nil {
			return err
		}
		if len(b.Params) > 0 {
			named = append(named, b)
		}
		s.Needs = append(s.Needs, b.Bound)
	}
	if len(named) == 0 {
		return nil
	}
	before := s.AccessFor
	s.AccessFor = func(in json.RawMessage) (all []perm.ResourceAccess, err error) {
		if before != nil {
			if all, err = before(in); err != nil {
				return nil, err
			}
		}
		v, err := canon.Parse(in, canon.DefaultLimits())
		if err != nil {
			return nil, err
		}
		for _, b := range named {
			some, err := b.Fill(v)
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
		return all, nil
	}
	return nil
}

// execute runs one call.
func (m mirroredTool) execute(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
	held, err := m.snapshotFolders(ctx, tc, in)
	if err != nil {
		return tool.Result{}, tool.NoEffect(err)
	}
	defer held.Discard()
	s, turn, err := m.u.begin(ctx, tc, m.entry.Timeout)
	if err != nil {
		return tool.Result{}, err
	}
	if why := m.changed(s); why != "" {
		return tool.Result{}, tool.Blocked(why)
	}
	if turn != nil {
		return m.inBox(ctx, tc, s, turn, in)
	}
	parts, err := m.before(ctx, tc, s, in)
	if err != nil {
		return tool.Result{}, tool.NoEffect(err)
	}
	kept, err := m.snapshotFiles(ctx, tc, in)
	if err != nil {
		return tool.Result{}, err // denied, or without effect so far
	}
	a, err := m.u.call(ctx, s, m.def.Name, in, facts(ctx, tc))
	err = errors.Join(err, kept.landed(ctx), held.RecordChanges(ctx, concluded(err)))
	m.strays(held)
	if err == nil && !a.Failed && m.entry.Class != effect.Pure {
		err = held.AuthorizeChanges(ctx)
	}
	if err != nil {
		refuse(ctx, err)
		return tool.Result{}, err
	}
	rawresult.Leave(ctx, a.Object)
	if a.Failed {
		return tool.Result{}, m.responseError(a)
	}
	if m.entry.Compensate != nil {
		if err := m.noteCompensation(ctx, tc, parts, a); err != nil {
			return tool.Result{}, err
		}
	}
	return rawresult.Result(a.Object, a.Text, nil), nil
}

// responseError returns the error of a server's response.
func (m mirroredTool) responseError(a wire.Result) error {
	err := fmt.Errorf("server %s says that the call failed: %s", m.u.cfg.Name, canon.Printable(a.Text, 4<<10))
	if m.entry.ErrorsHaveNoEffect {
		return tool.NoEffect(err)
	}
	return err
}

// changed returns why a tool is not as accepted: its server may have restarted
// since the call was admitted.
func (m mirroredTool) changed(s *upstreamConn) string {
	identity := m.u.declared().Identity
	switch {
	case identity != m.identity:
		return fmt.Sprintf("the server calls itself %q now, and was %q when it was accepted", identity, m.identity)
	case !s.declares(m.def.Key(), m.def.Digest):
		return "its definition was changed since it was accepted"
	}
	return ""
}

func facts(ctx context.Context, tc ctxperm.ToolContext) callFacts {
	return callFacts{id: "remit-" + tc.Call().ID, report: tc.Progress, client: clientctx.Of(ctx), log: clientctx.LogOf(ctx), permit: clientrequest.Permitted(tc), note: func(ctx context.Context, what any) error {
		return tc.Note(ctx, clientrequest.NoteKey, what)
	}}
}

// verify checks by a tool of the server whether the call worked.
func (m mirroredTool) verify(ctx context.Context, s verify.Subject) verify.Verdict {
	c := m.entry.Verify
	parts := map[string]canon.Value{}
	for name, text := range map[string]json.RawMessage{"input": s.Input, "output": s.Output, "before": s.Notes[noteBefore]} {
		if v, err := canon.Parse(text, canon.DefaultLimits()); err == nil && v.Kind() != canon.Null {
			parts[name] = v
		}
	}
	args, err := binding.FillTemplate(c.Args, parts)
	if err != nil {
		return verify.Unclear("what to ask is not known: " + err.Error())
	}
	a, err := m.callReadOnly(ctx, c.Tool, args)
	if err != nil {
		return verify.Unclear(err.Error())
	}
	answer, err := canon.Parse(a.Object, canon.DefaultLimits())
	if err != nil {
		return verify.Unclear(err.Error())
	}
	parts["answer"] = answer
	found, err := binding.LookUp("/answer"+c.Applied, parts)
	switch {
	case errors.Is(err, binding.ErrMissing):
		return verify.Absent("the server has nothing at " + c.Applied)
	case err != nil:
		return verify.Unclear(err.Error())
	case len(c.Equals) == 0:
		return verify.Applied()
	}
	want, err := binding.FillTemplate(c.Equals, parts)
	if err != nil {
		return verify.Unclear(err.Error())
	}
	got, err := canon.Marshal(found)
	if err != nil || string(got) != string(want) {
		return verify.Absent("the server has something else at " + c.Applied)
	}
	return verify.Applied()
}

// callReadOnly calls another tool of the server, which the entry declares
// read-only.
func (m mirroredTool) callReadOnly(ctx context.Context, name string, args json.RawMessage) (wire.Result, error) {
	s, err := m.u.session(ctx)
	if err != nil {
		return wire.Result{}, err
	}
	if err := m.u.accepted(s, name); err != nil {
		return wire.Result{}, err
	}
	a, err := m.u.call(ctx, s, name, args, callFacts{})
	if err == nil && a.Failed {
		err = fmt.Errorf("server %s says that %s failed: %s", m.u.cfg.Name, name, canon.Printable(a.Text, 1<<10))
	}
	return a, err
}

// accepted returns an error if a server's definition of a key differs from the
// accepted one.
func (u *upstream) accepted(s *upstreamConn, key string) error {
	have, _ := u.g.pins.Server(u.cfg.Name)
	pin, ok := have.Tools[key]
	if !ok || have.Identity != u.declared().Identity || !s.declares(key, pin.Digest) {
		return fmt.Errorf("%s of server %s is not there as it was accepted", definition.Describe(key), u.cfg.Name)
	}
	return nil
}
