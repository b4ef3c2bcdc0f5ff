package learn

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing/fstest"

	"golang.org/x/net/publicsuffix"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// Options configure how wide rules are. The zero Options are valid.
type Options struct {
	MaxRules   int // rules of the policy; default 40
	Files      int // files of a folder that allow all of it; default 3
	Folders    int // folders in a folder that allow all of it; default 3
	Hosts      int // hosts of a registrable domain that allow all of it; default 3
	Extensions int // a folder is allowed for so many extensions, or for all; default 3
	Repeated   int // calls that make an unusual argument known; default 2
	Texts      int // different texts that allow a program any text; default 3
}

func (o Options) filled() Options {
	for _, one := range []struct {
		value *int
		or    int
	}{{&o.MaxRules, 40}, {&o.Files, 3}, {&o.Folders, 3}, {&o.Hosts, 3}, {&o.Extensions, 3}, {&o.Repeated, 2}, {&o.Texts, 3}} {
		if *one.value <= 0 {
			*one.value = one.or
		}
	}
	return o
}

// maxNames bounds a set of names that an argument may have, and maxListed the
// paths of one rule.
const (
	maxNames  = 8
	maxListed = 12
)

// Policy is a policy that was learned.
type Policy struct {
	Rego    string    `json:"rego"`     // the module
	Test    string    `json:"test"`     // a module with its tests
	Rules   []Rule    `json:"rules"`    // with what they were learned from
	Covered int       `json:"covered"`  // calls that the policy allows, of those to learn from
	LeftOut []LeftOut `json:"left_out"` // what the policy does not allow, although it went well
	Refused []LeftOut `json:"refused"`  // what was denied, or what a person was asked about

	commands []*commands
}

// Rule is a rule of a learned policy.
type Rule struct {
	Reason string   `json:"reason"`
	Count  int      `json:"count"` // calls that it comes from
	Calls  []string `json:"calls"` // examples

	body []string // conditions
	head string   // empty: a rule of the set learned
	// commands is the head of the rules that this rule about scripts needs.
	commands string
	test     perm.Request
	found    map[string]bool // calls
}

// LeftOut is a group of accesses that the policy does not allow.
type LeftOut struct {
	Why   string   `json:"why"`
	What  string   `json:"what"`
	Count int      `json:"count"`
	Calls []string `json:"calls"` // examples
}

// Policy returns the policy that the evidence supports. It checks that the
// policy loads, and that it decides as the report says.
func (e *Evidence) Policy(ctx context.Context, o Options) (*Policy, error) {
	p := e.build(o.filled())
	engine, err := rego.Load(rego.Source{FS: fstest.MapFS{"learned.rego": {Data: []byte(p.Rego)}}})
	if err != nil {
		return nil, fmt.Errorf("learn: the learned policy does not load: %w", err)
	}
	calls := map[string]bool{}
	for _, s := range e.good {
		d, err := engine.Decide(ctx, s.Request)
		if err != nil {
			return nil, fmt.Errorf("learn: call %s: %w", s.Call.ID, err)
		}
		allowed, seen := calls[s.Call.ID]
		calls[s.Call.ID] = (allowed || !seen) && d.Effect() == perm.Allow
	}
	for _, allowed := range calls {
		if allowed {
			p.Covered++
		}
	}
	for _, s := range e.bad {
		if d, err := engine.Decide(ctx, s.Request); err == nil && d.Effect() == perm.Allow {
			p.leave(&p.Refused, "the policy allows this access alone, because other calls had it without an approval", s)
		}
	}
	return p, nil
}

func (e *Evidence) build(o Options) *Policy {
	p := &Policy{Rules: []Rule{}, LeftOut: []LeftOut{}, Refused: []LeftOut{}}
	p.files(e, o)
	p.hosts(e, o)
	p.calls(e)
	p.scripts(e, o)
	p.others(e)
	p.cut(o.MaxRules)
	for _, s := range e.bad {
		why := "the policy denied it"
		if s.effect == perm.Ask.String() {
			why = "a person was asked"
		}
		p.leave(&p.Refused, why, s)
	}
	for _, list := range [][]LeftOut{p.LeftOut, p.Refused} {
		slices.SortStableFunc(list, func(x, y LeftOut) int { return cmp.Compare(y.Count, x.Count) })
	}
	p.render()
	return p
}

// cut keeps the rules that most calls come from.
func (p *Policy) cut(most int) {
	slices.SortStableFunc(p.Rules, func(x, y Rule) int {
		if x.commands != y.commands {
			return strings.Compare(y.commands, x.commands) // the rules about commands need these
		}
		return cmp.Compare(y.Count, x.Count)
	})
	if len(p.Rules) <= most {
		return
	}
	for _, r := range p.Rules[most:] {
		p.LeftOut = append(p.LeftOut, LeftOut{Why: fmt.Sprintf("more than %d rules", most), What: r.Reason, Count: r.Count, Calls: r.Calls})
	}
	kept := p.Rules[:most]
	has := func(head string) bool { return slices.ContainsFunc(kept, func(r Rule) bool { return r.head == head }) }
	p.Rules = slices.DeleteFunc(slices.Clone(kept), func(r Rule) bool { return r.commands != "" && !has(r.commands) })
	p.Rules = slices.DeleteFunc(p.Rules, func(r Rule) bool {
		return r.head != "" && !slices.ContainsFunc(kept, func(w Rule) bool { return w.commands == r.head })
	})
}

// add adds a rule that comes from samples.
func (p *Policy) add(r Rule, from []sample) {
	r.found = map[string]bool{}
	for _, s := range from {
		r.found[s.Call.ID] = true
		r.Calls = example(r.Calls, s.Call.ID)
	}
	r.Count = len(r.found)
	if r.test.Purpose == "" {
		r.test = from[0].Request
	}
	p.Rules = append(p.Rules, r)
}

func (p *Policy) leave(list *[]LeftOut, why string, s sample) {
	what := s.Tool.Name + ": " + string(s.Access.Action) + " " + s.Access.Resource.Text
	if s.Call.Script != nil {
		var names []string
		for _, c := range s.Call.Script.Commands {
			if c.Program != nil && !slices.Contains(names, *c.Program) {
				names = append(names, *c.Program)
			}
		}
		what = s.Tool.Name + ": a script with " + strings.Join(names, ", ")
	}
	if len(what) > 160 {
		what = strings.ToValidUTF8(what[:160], "") + "…"
	}
	at := slices.IndexFunc(*list, func(l LeftOut) bool { return l.Why == why && l.What == what })
	if at < 0 {
		at = len(*list)
		*list = append(*list, LeftOut{Why: why, What: what})
	}
	(*list)[at].Count++
	(*list)[at].Calls = example((*list)[at].Calls, s.Call.ID)
}

// group splits samples by a key, in the order in which the keys occur.
func group(samples []sample, key func(sample) (string, bool)) (groups [][]sample) {
	at := map[string]int{}
	for _, s := range samples {
		k, ok := key(s)
		if !ok {
			continue
		}
		if _, seen := at[k]; !seen {
			at[k] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[k]] = append(groups[at[k]], s)
	}
	return groups
}

// kindOf is equal for tools that act in the same way.
func kindOf(s sample) string {
	return strings.Join([]string{string(s.Access.Action), s.Call.EffectClass, s.Tool.Confinement}, "\x00")
}

func tools(samples []sample) (names []string) {
	for _, s := range samples {
		if !slices.Contains(names, s.Tool.Name) {
			names = append(names, s.Tool.Name)
		}
	}
	slices.Sort(names)
	return names
}

func common(samples []sample) []string {
	return []string{"input.access.action == " + quote(string(samples[0].Access.Action)), oneOf("input.tool.name", tools(samples))}
}

func fileKey(s sample) (string, bool) {
	return kindOf(s) + "\x00" + s.Access.Resource.Root, s.Access.Resource.Kind == "file"
}

// files adds the rules about files.
func (p *Policy) files(e *Evidence, o Options) {
	for _, g := range group(e.good, fileKey) {
		want, _ := fileKey(g[0])
		bad := slices.DeleteFunc(slices.Clone(e.bad), func(s sample) bool { k, ok := fileKey(s); return !ok || k != want })
		r := learnPaths(g, bad, o)
		where := []string{`input.access.resource.kind == "file"`, "input.access.resource.root == " + quote(g[0].Access.Resource.Root)}
		does := fmt.Sprintf("%s files", g[0].Access.Action)
		if len(r.byWide) > 0 {
			p.add(Rule{Reason: does + " " + r.text(), body: slices.Concat(common(g), where, r.conditions())}, r.byWide)
		}
		exact := slices.Clone(r.byOne)
		slices.SortStableFunc(exact, func(x, y sample) int { return strings.Compare(x.Access.Resource.Path, y.Access.Resource.Path) })
		for chunk := range slices.Chunk(r.sorted(), maxListed) {
			from := slices.DeleteFunc(slices.Clone(exact), func(s sample) bool { return !slices.Contains(chunk, s.Access.Resource.Path) })
			p.add(Rule{Reason: does + " that calls named", body: slices.Concat(common(from), where, []string{oneOf("file_path", chunk)})}, from)
		}
		for _, s := range r.left {
			p.leave(&p.LeftOut, "other programs run this file: a person looks at each change", s)
		}
	}
}

func (r *pathRule) sorted() []string {
	slices.Sort(r.exact)
	return r.exact
}

func (r *pathRule) text() string {
	switch {
	case slices.Contains(r.below, ""):
		return "of all folders"
	case len(r.below) == 0:
		return "at the top"
	case len(r.below) > 4:
		return fmt.Sprintf("below %s and %d other folders", strings.Join(r.below[:3], ", "), len(r.below)-3)
	default:
		return "below " + strings.Join(r.below, ", ")
	}
}

func (r *pathRule) conditions() (list []string) {
	switch {
	case slices.Contains(r.below, ""):
	case r.direct && len(r.below) > 0:
		list = append(list, "in_folder("+set(append([]string{""}, r.below...))+")")
	case r.direct:
		list = append(list, `in_folder({""})`)
	default:
		list = append(list, "in_folder("+set(r.below)+")")
	}
	if r.exts != nil {
		list = append(list, `object.get(input.access.resource, "ext", "") in `+set(r.exts))
	}
	return append(list, "usual_path")
}

// hosts adds the rules about hosts.
func (p *Policy) hosts(e *Evidence, o Options) {
	for _, g := range group(e.good, func(s sample) (string, bool) {
		r := s.Access.Resource
		return fmt.Sprint(kindOf(s), s.Tool.Name, r.Kind, r.Port, s.Access.Method), r.Kind == "http" || r.Kind == "https"
	}) {
		a := g[0].Access
		where := append(common(g), "input.access.resource.kind == "+quote(a.Resource.Kind), fmt.Sprintf("input.access.resource.port == %d", a.Resource.Port))
		if a.Method != "" {
			where = append(where, "input.access.method == "+quote(a.Method))
		}
		names := map[string]bool{}
		for _, s := range g {
			names[s.Access.Resource.Host] = true
		}
		byDomain := map[string]int{}
		for name := range names {
			byDomain[domain(name)]++
		}
		wide := func(s sample) bool { d := domain(s.Access.Resource.Host); return d != "" && byDomain[d] >= o.Hosts }
		for _, some := range group(g, func(s sample) (string, bool) { return domain(s.Access.Resource.Host), wide(s) }) {
			d := domain(some[0].Access.Resource.Host)
			p.add(Rule{Reason: "connect to hosts of " + d, body: append(slices.Clone(where), `endswith(concat("", [".", input.access.resource.host]), `+quote("."+d)+")")}, some)
		}
		single := slices.DeleteFunc(slices.Clone(g), wide)
		for chunk := range slices.Chunk(hostsOf(single), maxListed) {
			from := slices.DeleteFunc(slices.Clone(single), func(s sample) bool { return !slices.Contains(chunk, s.Access.Resource.Host) })
			p.add(Rule{Reason: "connect to hosts that calls named", body: append(slices.Clone(where), oneOf("input.access.resource.host", chunk))}, from)
		}
	}
}

func hostsOf(samples []sample) (names []string) {
	for _, s := range samples {
		if !slices.Contains(names, s.Access.Resource.Host) {
			names = append(names, s.Access.Resource.Host)
		}
	}
	slices.Sort(names)
	return names
}

// domain returns the registrable domain of a host. Empty: it has none.
func domain(host string) string {
	d, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil {
		return ""
	}
	return d
}

// calls adds the rules about tools without another resource.
func (p *Policy) calls(e *Evidence) {
	for _, g := range group(e.good, func(s sample) (string, bool) { return s.Tool.Name, s.Access.Resource.Kind == "tool" }) {
		body := common(g)
		values := arguments(g)
		for _, name := range sortedKeys(values) {
			body = append(body, oneOf("input.call.args["+quote(name)+"]", values[name]))
		}
		p.add(Rule{Reason: "call " + g[0].Tool.Name, body: body}, g)
	}
}

// others adds the rules about everything else, by its full name.
func (p *Policy) others(e *Evidence) {
	known := []string{"file", "http", "https", "tool", "secret"}
	for _, g := range group(e.good, func(s sample) (string, bool) {
		return kindOf(s) + s.Tool.Name, !slices.Contains(known, s.Access.Resource.Kind) && s.Call.Script == nil
	}) {
		if g[0].Access.Resource.Kind == "exec" && g[0].Tool.Confinement != "sandbox" {
			for _, s := range g {
				p.leave(&p.LeftOut, "a program outside the sandbox, and its arguments are unknown", s)
			}
			continue
		}
		var texts []string
		for _, s := range g {
			if !slices.Contains(texts, s.Access.Resource.Text) {
				texts = append(texts, s.Access.Resource.Text)
			}
		}
		for chunk := range slices.Chunk(texts, maxListed) {
			from := slices.DeleteFunc(slices.Clone(g), func(s sample) bool { return !slices.Contains(chunk, s.Access.Resource.Text) })
			p.add(Rule{Reason: fmt.Sprintf("%s %s that calls named", g[0].Access.Action, g[0].Access.Resource.Kind), body: append(common(from), oneOf("input.access.resource.text", chunk))}, from)
		}
	}
}
