package define

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/jsonfile"
	"github.com/remit-dev/remit/internal/schema"
	"github.com/remit-dev/remit/internal/suggest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// file is one definition while it is read. What is wrong goes to the report of its nodes.
type file struct {
	path string
	root *jsonfile.Node
	id   string
	key  string
	impl Implementation
	spec tool.Spec
}

var members = []string{
	"schemaVersion", "id", "version", "implementation", "icon", "visibility", "deprecated", "tags", "settings", "function", "needs",
	"effectClass", "compensation", "destination", "roles", "content", "audience", "counters", "hints", "sensitive", "i18n",
}

var (
	idOK = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$`)
	})
	versionOK = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`)
	})
)

// read reads one file as far as it goes.
func read(report *jsonfile.Report, path string, text []byte, have map[string]Implementation) *file {
	f := &file{path: path, root: jsonfile.Parse(report, path, text)}
	if !f.root.Closed(members...) {
		return f
	}
	f.root.Version("1")
	f.identity(have)
	f.spec.Provenance = provenance.Source{
		Kind: provenance.Definition, Name: path, Version: f.spec.Version,
		Implementation: f.key, Digest: string(canon.SumBytes(text)),
	}
	f.function()
	f.needs()
	f.effects()
	f.settings()
	f.roles()
	f.content()
	f.audience()
	f.hints()
	f.display()
	return f
}

func (f *file) identity(have map[string]Implementation) {
	id, version, key := f.root.Need("id"), f.root.Need("version"), f.root.Need("implementation")
	if f.id = id.Text(); id != nil && !idOK().MatchString(f.id) {
		id.Refuse("an id is 1 to 128 letters, digits and . _ / - and begins with a letter or digit")
	}
	asked := version.Text()
	if version != nil && !versionOK().MatchString(asked) {
		version.Refuse("a version is 1 to 64 letters, digits and . _ + - and begins with a letter or digit")
	}
	f.key = key.Text()
	impl, there := have[f.key]
	if key != nil && !there {
		key.Refuse("%s", missing(f.key, have))
	}
	f.impl = impl
	if there {
		f.spec = impl.spec()
	}
	f.spec.Version = asked
}

// base is the tool that the file describes, where it describes one.
func (f *file) base() (tool.Tool, bool) { return f.impl.base, !f.impl.base.IsZero() }

func (f *file) function() {
	fn := f.root.Need("function")
	if fn == nil || !fn.Closed("name", "description", "usage", "strict", "parameters", "returns") {
		return
	}
	name, description := fn.Need("name"), fn.Need("description")
	f.spec.Name = name.Text()
	if err := probe(tool.Spec{Name: f.spec.Name}); name != nil && err != nil {
		name.Refuse("%v", err)
	}
	if f.spec.Description = description.Text(); description != nil && f.spec.Description == "" {
		description.Refuse("it is empty: a model knows nothing else of the tool")
	}
	if usage := fn.Get("usage"); usage != nil {
		f.spec.Usage = usage.Text()
		if err := probe(tool.Spec{Usage: f.spec.Usage}); err != nil {
			usage.Refuse("%v", err)
		}
	}
	f.parameters(fn)
	if returns := fn.Get("returns"); returns != nil {
		if _, narrows := f.base(); narrows {
			returns.RefuseName("what the tool returns is the implementation's own")
		}
		f.spec.Output = returns.Value.Canonical()
		compiled(returns)
	}
}

func (f *file) parameters(fn *jsonfile.Node) {
	strict, parameters := fn.Get("strict"), fn.Get("parameters")
	asked := strict != nil && strict.Bool()
	if parameters == nil {
		if s, err := schema.Compile(f.spec.Input); asked && (err != nil || !s.Closed()) {
			strict.Refuse("a strict function has parameters")
		}
		return
	}
	f.spec.Input = parameters.Value.Canonical()
	if s := compiled(parameters); s != nil && asked && !s.Closed() {
		parameters.Refuse(`the function is strict, and this schema takes further members: each object in it says "additionalProperties": false`)
	}
}

// compiled compiles a schema, or says at which place it is wrong.
func compiled(n *jsonfile.Node) *schema.Schema {
	s, err := schema.Compile(n.Value.Canonical())
	if err == nil {
		return s
	}
	if at, ok := errors.AsType[*schema.PlaceError](err); ok {
		for _, at := range append([]*schema.PlaceError{at}, at.More...) {
			n.Under(at.Path).Refuse("%s", at.Text)
		}
	} else {
		n.Refuse("%v", err)
	}
	return nil
}

// probe is what FromSpec says of a part of a definition, as of a tool with nothing else.
func probe(s tool.Spec) error {
	name := s.Name
	if name == "" {
		s.Name, name = "probe", "probe"
	}
	s.Execute = func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
		return tool.Result{}, nil
	}
	_, err := tool.FromSpec(s)
	if err == nil {
		return nil
	}
	text := strings.TrimPrefix(err.Error(), fmt.Sprintf("tool %q: ", name))
	for _, noise := range []string{"need 1: ", "settings: "} {
		text = strings.TrimPrefix(text, noise)
	}
	return errors.New(text)
}

func (f *file) needs() {
	n := f.root.Get("needs")
	if n == nil {
		return
	}
	if n.Value.Kind() != canon.Array {
		n.Texts() // which refuses it
		return
	}
	f.spec.Needs = []perm.ResourceAccess{}
	for _, e := range n.Elements() {
		if !e.Closed("action", "resource", "method") {
			continue
		}
		a := perm.ResourceAccess{Action: perm.Action(e.Need("action").Text()), Resource: e.Need("resource").Text()}
		if m := e.Get("method"); m != nil {
			a.Method = m.Text()
		}
		f.need(e, a)
	}
	if base, narrows := f.base(); narrows && base.Spec().Confinement == tool.Trusted && !slices.Equal(f.spec.Needs, base.Spec().Needs) {
		n.RefuseName("nothing confines the implementation to its needs, so fewer needs would only hide accesses; leave the member out")
	}
}

func (f *file) need(n *jsonfile.Node, a perm.ResourceAccess) {
	if a.Action == "" || a.Resource == "" {
		return // told already
	}
	f.spec.Needs = append(f.spec.Needs, a)
	one := tool.Spec{Needs: []perm.ResourceAccess{a}}
	if _, err := schema.Compile(f.spec.Input); err == nil {
		one.Input = f.spec.Input
	}
	if err := probe(one); err != nil {
		n.Refuse("%v", err)
		return
	}
	base, narrows := f.base()
	if !narrows || slices.Contains(base.Spec().Needs, a) {
		return
	}
	if p, err := a.Pattern(); err == nil && len(p.Params()) > 0 {
		n.Refuse("a need with a parameter is one of those that the implementation has: %s; another one is a bound, such as \"file://workspace/docs/**\"", needsOf(base))
		return
	}
	held, err := perm.NewSet(base.RequiredAccesses()...)
	if err != nil || !held.Covers(a) {
		n.Refuse("it is more than the implementation needs, which is %s", needsOf(base))
	}
}

func needsOf(t tool.Tool) string {
	var all []string
	for _, a := range t.Spec().Needs {
		all = append(all, a.String())
	}
	return listed(all)
}

func (f *file) effects() {
	base, narrows := f.base()
	if n := f.root.Get("effectClass"); n != nil {
		class := effect.Class(n.Text())
		switch {
		case !class.Valid():
			n.Refuse("unknown effect class; valid are %s", listedOf(effect.Classes()))
		case narrows && milder(class, base.Class()):
			n.Refuse("it is milder than what the implementation says of itself, which is %s", base.Class())
		case narrows && class != base.Class():
			f.spec.ClassOf = nil // which would make single calls milder
		}
		f.spec.EffectClass = class
	}
	if n := f.root.Get("destination"); n != nil {
		to := tool.Destination(n.Text())
		order := destinations()
		switch {
		case !slices.Contains(order, to):
			n.Refuse("unknown destination; valid are %s", listedOf(order))
		case narrows && slices.Index(order, to) < slices.Index(order, base.Spec().Destination):
			n.Refuse("it is milder than what the implementation says of itself, which is %s", base.Spec().Destination)
		}
		f.spec.Destination = to
	}
	f.compensation()
}

// compensation checks that the file says whether the implementation has code
// that reverts its calls. A reader of the file must be able to see this.
func (f *file) compensation() {
	n := f.root.Get("compensation")
	switch {
	case n == nil && f.spec.Revert != nil && f.impl.base.IsZero():
		f.root.Refuse(`"compensation" is missing: the implementation reverts calls by itself, so the file says "compensation": {"undoVersion": %q}`, f.spec.UndoVersion)
	case n == nil || !n.Closed("undoVersion"):
	case f.spec.Execute == nil: // no implementation, which was told
	case f.spec.Revert == nil:
		n.RefuseName("the implementation has no code that reverts calls")
	default:
		undo := n.Need("undoVersion")
		if got := undo.Text(); undo != nil && got != f.spec.UndoVersion {
			undo.Refuse("the implementation reverts calls of undo version %q", f.spec.UndoVersion)
		}
	}
}

func (f *file) settings() {
	n := f.root.Get("settings")
	if n == nil || !n.IsObject() {
		return
	}
	if base, narrows := f.base(); narrows {
		n.RefuseName("the settings are those of the implementation")
		f.spec.Settings = base.Spec().Settings
		return
	}
	f.spec.Settings = tool.Params{}
	for _, m := range n.Members() {
		if !m.Closed("type", "items", "description", "required", "default", "enum", "examples", "secret") {
			continue
		}
		p := tool.Param{Name: m.Name, Type: m.Need("type").Text(), Items: m.Get("items").Text(), Description: m.Get("description").Text()}
		p.Required, p.Secret = m.Get("required").Bool(), m.Get("secret").Bool()
		if d := m.Get("default"); d != nil {
			p.Default = d.Value.Any()
		}
		p.Enum, p.Examples = anys(m.Get("enum")), anys(m.Get("examples"))
		if err := probe(tool.Spec{Settings: tool.Params{p}}); err != nil && p.Type != "" {
			m.RefuseName("%s", strings.TrimPrefix(err.Error(), fmt.Sprintf("parameter %q: ", m.Name)))
			continue
		}
		f.spec.Settings = append(f.spec.Settings, p)
	}
	if len(n.Members()) == 0 {
		n.Refuse("it is empty; leave it out")
	}
}

func anys(n *jsonfile.Node) []any {
	if n == nil {
		return nil
	}
	if n.Value.Kind() != canon.Array {
		n.Texts() // which refuses it
		return nil
	}
	out := []any{}
	for _, e := range n.Elements() {
		out = append(out, e.Value.Any())
	}
	return out
}

func (f *file) hints() {
	if n := f.root.Get("hints"); n != nil && n.Closed("idempotent", "risk", "approval", "concurrent", "timeout") {
		f.idempotent(n.Get("idempotent"))
		f.risk(n)
		if t := n.Get("timeout"); t != nil {
			limit, err := time.ParseDuration(t.Text())
			if err != nil || limit <= 0 {
				t.Refuse(`a timeout is a duration above zero, such as "30s" or "1m30s"`)
			}
			f.spec.Hints.Timeout = limit
		}
	}
	if n := f.root.Get("sensitive"); n != nil {
		for _, name := range n.Texts() {
			if !slices.Contains(f.spec.Hints.Sensitive, name) {
				f.spec.Hints.Sensitive = append(f.spec.Hints.Sensitive, name)
			}
		}
		f.sensitive(n)
	}
	if n := f.root.Get("counters"); n != nil {
		f.counters(n)
	}
	if n := f.root.Get("tags"); n != nil {
		for _, tag := range n.Texts() {
			if !slices.Contains(f.spec.Tags, tag) {
				f.spec.Tags = append(f.spec.Tags, tag)
			}
		}
	}
}

func (f *file) idempotent(n *jsonfile.Node) {
	if n == nil {
		return
	}
	says := n.Bool()
	if base, narrows := f.base(); narrows && says && !base.Spec().Hints.Idempotent {
		n.Refuse("the implementation does not say that it is")
	}
	f.spec.Hints.Idempotent = says
}

// risk reads what the author thinks of calls. What narrows an implementation says no milder.
func (f *file) risk(hints *jsonfile.Node) {
	_, narrows := f.base()
	was := f.spec.Hints
	if n := hints.Get("risk"); n != nil {
		risk := perm.Risk(n.Text())
		switch {
		case !risk.Valid():
			n.Refuse("unknown risk; valid are low, medium, high")
		case narrows && was.Risk != "" && risk.Max(was.Risk) != risk:
			n.Refuse("it is lower than what the implementation says of itself, which is %s", was.Risk)
		default:
			f.spec.Hints.Risk = risk
		}
	}
	if n := hints.Get("approval"); n != nil {
		if f.spec.Hints.Approval = n.Bool(); narrows && was.Approval && !f.spec.Hints.Approval {
			n.Refuse("the implementation advises it")
		}
	}
	if n := hints.Get("concurrent"); n != nil {
		if f.spec.Hints.Concurrent = n.Bool(); narrows && !was.Concurrent && f.spec.Hints.Concurrent {
			n.Refuse("the implementation does not say that it is")
		}
	}
}

// sensitive refuses names of no argument, which would keep nothing from being shown.
func (f *file) sensitive(n *jsonfile.Node) {
	doc, err := canon.Parse(f.spec.Input, canon.DefaultLimits())
	if err != nil {
		if f.spec.Input == nil {
			n.RefuseName("the function has no parameters")
		}
		return
	}
	properties, _ := doc.Get("properties")
	for _, e := range n.Elements() {
		if _, ok := properties.Get(e.Value.Text()); !ok && e.Value.Kind() == canon.String {
			e.Refuse("it is no argument of the function")
		}
	}
}

func (f *file) counters(n *jsonfile.Node) {
	counters := n.TextMap()
	if f.spec.Counters == nil {
		f.spec.Counters = map[string]string{}
	}
	for _, m := range n.Members() {
		own, taken := f.spec.Counters[m.Name]
		if taken && own != counters[m.Name] {
			m.Refuse("the implementation counts argument %q under this name", own)
			continue
		}
		f.spec.Counters[m.Name] = counters[m.Name]
		one := tool.Spec{Counters: map[string]string{m.Name: counters[m.Name]}}
		if _, err := schema.Compile(f.spec.Input); err == nil {
			one.Input = f.spec.Input
		}
		if err := probe(one); err != nil && m.Value.Kind() == canon.String {
			m.Refuse("%v", err)
		}
	}
}

func (f *file) display() {
	if n := f.root.Get("deprecated"); n != nil {
		if f.spec.Deprecated = n.Text(); n.Value.Kind() == canon.String && f.spec.Deprecated == "" {
			n.Refuse("it is empty: say what to use instead, or leave it out")
		}
	}
	if n := f.root.Get("icon"); n != nil {
		f.spec.Display.Icon = n.Text()
	}
	if n := f.root.Get("visibility"); n != nil {
		f.spec.Display.Surfaces = n.Texts()
	}
	n := f.root.Get("i18n")
	if n == nil || !n.IsObject() {
		return
	}
	names, descriptions := map[string]string{}, map[string]string{}
	for _, m := range n.Members() {
		if !languageOK().MatchString(m.Name) {
			m.RefuseName(`a language is written as in "de" or "pt-BR"`)
		}
		if !m.Closed("name", "description") {
			continue
		}
		if name := m.Get("name"); name != nil {
			names[m.Name] = name.Text()
		}
		if description := m.Get("description"); description != nil {
			descriptions[m.Name] = description.Text()
		}
	}
	if len(names) > 0 {
		f.spec.Display.Names = names
	}
	if len(descriptions) > 0 {
		f.spec.Display.Descriptions = descriptions
	}
}

var languageOK = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$`)
})

// tool freezes what was read. It is called where nothing was wrong so far.
func (f *file) tool() (tool.Tool, error) {
	t, err := tool.FromSpec(f.spec)
	if err != nil {
		return t, errors.New(strings.TrimPrefix(err.Error(), fmt.Sprintf("tool %q: ", f.spec.Name)))
	}
	return t, nil
}

func nearestOf(name string, all []string) string { return suggest.Name(name, all) }

func listed(all []string) string { return cmp.Or(strings.Join(all, ", "), "none") }

func listedOf[S ~string](all []S) string {
	var texts []string
	for _, s := range all {
		texts = append(texts, string(s))
	}
	return listed(texts)
}
