package config

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/jsonfile"
	"github.com/remit-dev/remit/mcp/gateway/internal/binding"
	"github.com/remit-dev/remit/mcp/gateway/internal/naming"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// Entry is the configuration of one tool of a server. The zero Entry declares
// nothing.
type Entry struct {
	Draft       bool // drafted from the server's hints, and not reviewed
	Needs       []perm.ResourceAccess
	Class       effect.Class
	Destination tool.Destination
	Timeout     time.Duration
	Idempotent  bool // repeating the call has no further effect
	Risk        perm.Risk
	Approval    bool // the author of the entry advises an approval for each call
	// ErrorsHaveNoEffect means that a call with an error response had no
	// effect. Otherwise its effect is unknown.
	ErrorsHaveNoEffect bool
	// Exclusive means that no other call of the server runs meanwhile, so that
	// its client requests belong to this call.
	Exclusive bool

	ReadBefore *ToolCallTemplate // a read-only tool to call first; its response is /before in templates
	Compensate *ToolCallTemplate // reverts a call
	Snapshot   []string          // files, as file://root/{argument}, and folders, as file://root/**, to save before each call
	// Observed means that the server can act anywhere, and the entry does not
	// assert that its calls change only the snapshot.
	Observed bool
	Verify   *ResultCheck

	Roles provenance.Roles // of the arguments
	// TrustedFields are the parts of the structured content that only the
	// service and the user chooses, as JSON pointers with * for each element or
	// member.
	TrustedFields []string
}

// ToolCallTemplate is a call of another tool of the same server.
type ToolCallTemplate struct {
	Tool string
	// Args is a template of the arguments. The gateway replaces {"$from":
	// pointer} by the value at the pointer into the call, and {"$each": pointer,
	// "as": template} by a list with one element for each element there.
	Args json.RawMessage
	// Repeatable means that the gateway can send the call again if it does not
	// know whether the first arrived.
	Repeatable bool
}

// ResultCheck verifies a call by a read-only tool. The call worked if the
// response has a value at Applied.
type ResultCheck struct {
	ToolCallTemplate

	Applied string          // pointer into the response: a value exists there if and only if the call worked
	Equals  json.RawMessage // template of the expected value; nil: any value
}

func (r *reader) remit(n, list *jsonfile.Node) {
	if n == nil || !n.Closed(names(remitMembers)...) {
		return
	}
	servers := n.Get("servers")
	if servers == nil || !servers.IsObject() {
		return
	}
	for _, m := range servers.Members() {
		at := slices.IndexFunc(r.config.Servers, func(s Server) bool { return s.Name == m.Name })
		if at < 0 {
			if list.Get(m.Name) == nil {
				var names []string
				for _, s := range list.Members() {
					names = append(names, s.Name)
				}
				m.RefuseName("%s", naming.Unknown("server", m.Name, `"mcpServers"`, names))
			}
			continue // disabled
		}
		r.known(&r.config.Servers[at], m)
	}
}

func (r *reader) known(s *Server, n *jsonfile.Node) {
	if !n.Closed(names(knownMembers)...) {
		return
	}
	s.Resources, s.NoResources = r.reading(n.Get("resources"))
	s.Prompts, s.NoPrompts = r.reading(n.Get("prompts"))
	if roots := n.Get("roots"); roots != nil {
		s.Roots = r.roots(roots)
	}
	if may := n.Get("asks"); may != nil {
		s.ClientFeatures = []ClientFeature{}
		for _, e := range may.Elements() {
			a := ClientFeature(e.Text())
			if a != Elicitation && a != Sampling && a != Roots {
				e.Refuse("a server asks for %q, %q or %q", Elicitation, Sampling, Roots)
			}
			if a == Roots && len(s.Roots) > 0 {
				e.Refuse(`the folders that the server is told of are those of "roots"; leave one of the two out`)
			}
			s.ClientFeatures = append(s.ClientFeatures, a)
		}
	}
	if box := n.Get("sandbox"); box != nil {
		r.sandbox(s, box)
	}
	tools := n.Get("tools")
	if tools == nil || !tools.IsObject() {
		return
	}
	for _, m := range tools.Members() {
		e := r.entry(s, m)
		if e.Draft && e.Class == effect.Pivot && m.Get("undo") == nil && s.Sandbox != nil && !s.Sandbox.Network {
			e.Class = "" // drafted outside the sandbox: here the runtime observes its writes
		}
		s.Tools[m.Name] = e
	}
}

func (r *reader) sandbox(s *Server, n *jsonfile.Node) {
	if !n.Closed(names(sandboxMembers)...) {
		return
	}
	if s.Command == "" {
		n.RefuseName("only a server with a command can run in the sandbox")
		return
	}
	s.Sandbox = &Sandbox{}
	if roots := n.Need("roots"); roots != nil {
		s.Sandbox.Roots = r.roots(roots)
	}
	for _, e := range n.Get("readable").Elements() {
		dir := r.expand(e)
		if !filepath.IsAbs(dir) {
			e.Refuse("want an absolute path")
		}
		s.Sandbox.Readable = append(s.Sandbox.Readable, filepath.Clean(dir))
	}
	if net := n.Get("network"); net != nil {
		s.Sandbox.Network = net.Bool()
	}
}

// roots parses names of roots.
func (r *reader) roots(n *jsonfile.Node) []string {
	for _, e := range n.Elements() {
		if _, err := perm.FileResource(e.Value.Text(), "."); err != nil {
			e.Refuse("it is the name of a root, such as workspace")
		}
	}
	return n.Texts()
}

func (r *reader) entry(s *Server, n *jsonfile.Node) (e Entry) {
	if !n.Closed(names(entryMembers)...) {
		return e
	}
	if d := n.Get("draft"); d != nil {
		e.Draft = d.Bool()
	}
	if i := n.Get("idempotent"); i != nil {
		e.Idempotent = i.Bool()
	}
	if risk := n.Get("risk"); risk != nil {
		if e.Risk = perm.Risk(risk.Text()); !e.Risk.Valid() {
			risk.Refuse("unknown risk; valid are low, medium, high")
		}
	}
	if a := n.Get("approval"); a != nil {
		e.Approval = a.Bool()
	}
	if a := n.Get("exclusive"); a != nil {
		e.Exclusive = a.Bool()
	}
	e.Roles, e.TrustedFields = rolesOf(n.Get("roles")), fieldsOf(n.Get("trustedFields"))
	r.needs(&e, n.Get("needs"))
	r.effects(&e, n)
	if changes := func(a perm.ResourceAccess) bool { return a.Action.Changes() }; e.Class == effect.Pure && slices.ContainsFunc(e.Needs, changes) {
		n.Get("effectClass").Refuse("a tool that is pure needs no write and no delete; say what undo can do of it, or leave the need out")
	}
	if b := n.Get("before"); b != nil {
		e.ReadBefore = r.invocation(b, b.Closed(names(templateMembers)...))
	}
	r.undo(s, &e, n)
	if v := n.Get("verify"); v != nil && v.Closed(names(verifyMembers)...) {
		e.Verify = &ResultCheck{ToolCallTemplate: *r.invocation(v, true)}
		if at := v.Need("applied"); at != nil {
			e.Verify.Applied = at.Text()
			checkPointer(at, at.Text())
		}
		if want := v.Get("equals"); want != nil {
			e.Verify.Equals = r.template(want)
		}
	}
	return e
}

// reading parses the entry for all resources, or all prompts, of a server. Off
// means that the gateway does not serve them.
func (r *reader) reading(n *jsonfile.Node) (e Entry, off bool) {
	switch {
	case n == nil:
		return e, false
	case n.Value.Kind() == canon.Bool:
		if off = !n.Bool(); !off {
			n.Refuse("leave it out, which is the same; or false, and they are not served")
		}
		return e, off
	case !n.Closed(names(readMembers)...):
		return e, false
	}
	r.needs(&e, n.Get("needs"))
	r.effects(&e, n)
	if e.Class != "" && e.Class != effect.Pure && e.Class != effect.Pivot {
		n.Get("effectClass").Refuse("a read is pure, or pivot where it is not known what it does")
	}
	return e, false
}

func (r *reader) effects(e *Entry, n *jsonfile.Node) {
	if c := n.Get("effectClass"); c != nil {
		if e.Class = effect.Class(c.Text()); !e.Class.Valid() {
			c.Refuse("unknown effect class; valid are %v", effect.Classes())
		}
	}
	if d := n.Get("destination"); d != nil {
		e.Destination = tool.Destination(d.Text())
		all := []tool.Destination{tool.NoDestination, tool.Configured, tool.ThirdParty, tool.ModelChosen}
		if !slices.Contains(all, e.Destination) {
			d.Refuse("unknown destination; valid are %v", all)
		}
	}
	if t := n.Get("timeout"); t != nil {
		limit, err := time.ParseDuration(t.Text())
		if err != nil || limit <= 0 {
			t.Refuse(`a timeout is a duration above zero, such as "30s"`)
		}
		e.Timeout = limit
	}
	if x := n.Get("errors"); x != nil {
		switch x.Text() {
		case "no_effect":
			e.ErrorsHaveNoEffect = true
		case "unknown":
		default:
			x.Refuse(`it says what an answer that is an error means: "no_effect" or "unknown"`)
		}
	}
}

func (r *reader) needs(e *Entry, n *jsonfile.Node) {
	if n == nil {
		return
	}
	for _, m := range n.Elements() {
		if !m.Closed(names(needMembers)...) {
			continue
		}
		a := perm.ResourceAccess{Action: perm.Action(m.Need("action").Text()), Resource: m.Need("resource").Text()}
		if method := m.Get("method"); method != nil {
			a.Method = method.Text()
		}
		if a.Action == "" || a.Resource == "" {
			continue // reported already
		}
		if _, err := perm.NewSet(a); err != nil {
			m.Refuse("%v", err)
		}
		e.Needs = append(e.Needs, a)
	}
	if n.Value.Kind() != canon.Array {
		n.Texts() // reports the fault
	}
}

func (r *reader) undo(s *Server, e *Entry, n *jsonfile.Node) {
	undo := n.Get("undo")
	if undo == nil {
		if e.Class == effect.Compensable || e.Class == effect.Reversible && s.Sandbox == nil {
			n.Refuse(`a tool of class %s says how it is reverted: "undo", with "compensate" or "snapshot"`, e.Class)
		}
		return
	}
	if undo.Value.Kind() == canon.String {
		if undo.Text() != "irreversible" {
			undo.Refuse(`want "irreversible", or an object with "compensate" or "snapshot"`)
		}
		if e.Class == "" {
			e.Class = effect.Pivot
		}
		if e.Class != effect.Pivot && e.Class != effect.Deferrable {
			undo.Refuse("a tool of class %s is not irreversible", e.Class)
		}
		return
	}
	if !undo.Closed(names(undoMembers)...) {
		return
	}
	if c := undo.Get("compensate"); c != nil {
		e.Compensate = r.invocation(c, c.Closed(names(templateMembers)...))
		if again := undo.Get("repeatable"); again != nil {
			e.Compensate.Repeatable = again.Bool()
		}
	}
	if files := undo.Get("snapshot"); files != nil {
		r.snapshot(e, files)
	}
	if (e.Compensate == nil) == (len(e.Snapshot) == 0) {
		undo.Refuse(`want one of "compensate" and "snapshot"`)
		return
	}
	r.undoClass(s, e, undo)
}

func (r *reader) undoClass(s *Server, e *Entry, undo *jsonfile.Node) {
	kept := len(e.Snapshot) > 0
	switch {
	case kept && s.Sandbox != nil && e.Draft: // drafted outside the sandbox
		switch e.Snapshot = nil; {
		case e.Class == effect.Pure:
		case s.Sandbox.Network:
			e.Class = effect.Pivot
		default:
			e.Class = ""
		}
	case kept && s.Sandbox != nil:
		undo.Refuse("a server in the sandbox needs no snapshot: what its calls leave in its roots is reverted")
	case kept && (e.Class == "" || e.Class == effect.Pure || e.Class == effect.Pivot || e.Draft && e.Class == effect.Reversible):
		if e.Observed = true; e.Class != effect.Pure {
			e.Class = effect.Pivot
		}
	case e.Class == "":
		e.Class = effect.Compensable
	case e.Class != effect.Compensable && e.Class != effect.Reversible:
		undo.Refuse("a tool of class %s is not reverted", e.Class)
	}
}

func (r *reader) snapshot(e *Entry, n *jsonfile.Node) {
	if e.Snapshot = n.Texts(); len(e.Snapshot) == 0 {
		n.Refuse(`it is empty; it lists files, such as "file://workspace/{path}", or folders, such as "file://workspace/**"`)
	}
	kind := map[string]bool{} // by root: whether the snapshot is of folders
	for _, m := range n.Elements() {
		text, tree := binding.FolderOf(m.Value.Text())
		p, err := perm.ParsePattern(text)
		if err != nil {
			m.Refuse("%v", err)
			continue
		}
		if p.Kind() != perm.KindFile || strings.Contains(text, "*") {
			m.Refuse("it is one file below a root, such as file://workspace/{path}, or a folder with all that is in it, such as file://workspace/** or file://workspace/{folder}/**")
			continue
		}
		root := binding.RootOf(text)
		if before, known := kind[root]; known && before != tree {
			m.Refuse("of one root it names files, or folders, and not both: what lies in a folder is kept with it")
		}
		kind[root] = tree
	}
}

func (r *reader) invocation(n *jsonfile.Node, ok bool) *ToolCallTemplate {
	out := &ToolCallTemplate{}
	if !ok {
		return out
	}
	out.Tool = n.Need("tool").Text()
	if args := n.Get("args"); args != nil && args.IsObject() {
		out.Args = r.template(args)
	}
	return out
}

// template parses a value in which {"$from": "/input/path"} and {"$each": …,
// "as": …} refer to parts of a call.
func (r *reader) template(n *jsonfile.Node) json.RawMessage {
	r.checkTemplate(n)
	return n.Value.Canonical()
}

func (r *reader) checkTemplate(n *jsonfile.Node) {
	if from := n.Get("$from"); from != nil {
		n.Closed("$from")
		checkPart(from)
		return
	}
	if each := n.Get("$each"); each != nil {
		n.Closed("$each", "as")
		checkPart(each)
		if as := n.Need("as"); as != nil {
			r.checkTemplate(as)
		}
		return
	}
	for _, m := range append(slices.Clone(n.Members()), n.Elements()...) {
		r.checkTemplate(m)
	}
}

func checkPointer(n *jsonfile.Node, text string) {
	if text != "" && !strings.HasPrefix(text, "/") {
		n.Refuse("want a pointer, such as /input/path: %s", fmt.Sprintf("each step of it begins with %q", "/"))
	}
}

// partNames are the parts that a pointer of a template can start with.
var partNames = []string{"input", "output", "before", "item", "answer"}

func checkPart(n *jsonfile.Node) {
	text := n.Text()
	first, _, _ := strings.Cut(strings.TrimPrefix(text, "/"), "/")
	switch {
	case !strings.HasPrefix(text, "/"):
		n.Refuse("want a pointer, such as /input/path: each step of it begins with %q", "/")
	case !slices.Contains(partNames, first):
		n.Refuse("it leads nowhere: a pointer begins with /input, /output or /before, and with /item in a list that is made of each element")
	}
}
