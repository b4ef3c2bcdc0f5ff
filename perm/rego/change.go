package rego

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

// ErrNoFix means that no change of rules was found that lets a request
// through.
var ErrNoFix = errors.New("rego: no change of rules lets this request through")

// PolicyFix is a smallest change of a policy that lets one request through, and as
// little else as rules can tell apart. It was tried out.
type PolicyFix struct {
	Edits  []Edit `json:"edits"`  // none: the policy lets it through as it is
	Effect string `json:"effect"` // what the changed policy says: allow, hold or ask
}

// Edit is one part of a Change: a condition that a rule gets, or a new rule.
type Edit struct {
	At   string `json:"at,omitempty"` // file:line of the rule that gets the condition; "" for a new rule
	Text string `json:"text"`
}

// SuggestAllow finds the smallest change with which the policy lets a request
// through: each rule that refuses it gets an exception, and where no rule allows
// it there is a new one. Both name the principal, the tool and the access as
// they are in the request. The changed policy is asked before it is told.
func (e *Engine) SuggestAllow(ctx context.Context, r perm.Request) (PolicyFix, error) {
	if e == nil || e.rules == nil {
		return PolicyFix{}, fmt.Errorf("%w: no policy is loaded", ErrNoFix)
	}
	r = r.Filled()
	t := &fixAttempt{of: e, request: r, name: e.modules.freeName("excepted")}
	for range len(e.rules.places) + 2 {
		d, err := t.decide(ctx)
		if err != nil {
			return PolicyFix{}, err
		}
		refusing := refusals(d, r.Purpose)
		if d.Effect() != perm.Deny && len(refusing) == 0 || special(r.Purpose) && len(refusing) == 0 {
			return PolicyFix{Edits: t.edits(), Effect: d.Effect().String()}, nil
		}
		if !t.add(refusing) {
			break
		}
	}
	return PolicyFix{}, ErrNoFix
}

// special reports whether only one set counts for a purpose, whatever the effect.
func special(p perm.Purpose) bool { return p == perm.PurposeVerify || p == perm.PurposeList }

// refusals lists the rules that stand in the way.
func refusals(d perm.Decision, p perm.Purpose) (at []string) {
	reasons := d.Reasons()
	switch {
	case p == perm.PurposeVerify:
		reasons = d.Details().FailedPostconditions
	case p == perm.PurposeList:
		reasons = d.Details().HideReasons
	case d.Effect() != perm.Deny:
		return nil
	}
	for _, r := range reasons {
		if r.At != "" && !slices.Contains(at, r.At) {
			at = append(at, r.At)
		}
	}
	return at
}

// fixAttempt is a policy with the change so far.
type fixAttempt struct {
	of       *Engine
	request  perm.Request
	name     string // of the rule that says what is excepted
	excepted []string
	allows   bool
}

// add makes the change larger, and reports whether it did.
func (t *fixAttempt) add(refusing []string) bool {
	if len(refusing) == 0 {
		was := t.allows
		t.allows = true
		return !was && !special(t.request.Purpose)
	}
	more := false
	for _, at := range refusing {
		if !slices.Contains(t.excepted, at) {
			t.excepted, more = append(t.excepted, at), true
		}
	}
	return more
}

func (t *fixAttempt) edits() []Edit {
	edits := []Edit{}
	for _, at := range t.excepted {
		edits = append(edits, Edit{At: at, Text: "not " + t.name})
	}
	if len(t.excepted) > 0 {
		edits = append(edits, Edit{Text: t.name + " if {\n" + conditions(t.request) + "}"})
	}
	if t.allows {
		edits = append(edits, Edit{Text: "allow contains " + ast.String(described(t.request)).String() + " if {\n" + conditions(t.request) + "}"})
	}
	return edits
}

func (t *fixAttempt) decide(ctx context.Context) (perm.Decision, error) {
	m, err := t.of.modules.with(t.edits(), t.name)
	if err != nil {
		return perm.Decision{}, err
	}
	rules, err := m.ruleset(t.of.data, t.of.parts)
	if err != nil {
		return perm.Decision{}, err
	}
	changed := &Engine{rules: rules, modules: m, keys: t.of.keys, parts: t.of.parts, steps: t.of.steps, deadline: t.of.deadline, revision: t.of.revision}
	return changed.Decide(ctx, t.request)
}

// with returns the modules with edits made: conditions at the end of rules, and
// new rules in a file of their own.
func (m *modules) with(edits []Edit, name string) (*modules, error) {
	out := &modules{parsed: map[string]*ast.Module{}, names: slices.Clone(m.names)}
	var text strings.Builder
	text.WriteString("package remit\n")
	excepted := map[string]bool{}
	for _, e := range edits {
		if e.At != "" {
			excepted[e.At] = true
			continue
		}
		text.WriteString("\n" + e.Text + "\n")
	}
	for file, mod := range m.parsed {
		out.parsed[file] = mod.Copy()
		for _, rule := range out.parsed[file].Rules {
			if setOf(mod, rule) != "" && excepted[at(rule.Loc())] {
				condition := ast.NewExpr(ast.VarTerm(name)).SetLocation(rule.Loc())
				condition.Negated = true
				rule.Body.Append(condition)
			}
		}
	}
	if len(edits) == 0 {
		return out, nil
	}
	added := m.freeFile("change.rego")
	mod, err := ast.ParseModuleWithOpts(added, text.String(), ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: capabilities()})
	if err != nil {
		return nil, fmt.Errorf("rego: the change: %w", err)
	}
	out.parsed[added], out.names = mod, append(out.names, added)
	slices.Sort(out.names)
	return out, nil
}

// freeName returns a name that no rule of package remit has.
func (m *modules) freeName(name string) string {
	taken := map[string]bool{}
	for _, mod := range m.parsed {
		if inRemit(mod) {
			for _, rule := range mod.Rules {
				taken[headName(rule)] = true
			}
		}
	}
	return free(name, "", func(s string) bool { return taken[s] })
}

func (m *modules) freeFile(name string) string {
	stem, ext, _ := strings.Cut(name, ".")
	return free(stem, "."+ext, func(s string) bool { return m.parsed[s] != nil })
}

func free(stem, end string, taken func(string) bool) string {
	name := stem + end
	for i := 2; taken(name); i++ {
		name = fmt.Sprintf("%s_%d%s", stem, i, end)
	}
	return name
}

// conditions say what a request is about, and hold for nothing else that a rule
// would want to tell from it. Where only the call itself is asked about, its
// arguments are what it is about.
func conditions(r perm.Request) string {
	var b strings.Builder
	is := func(path, value string) { fmt.Fprintf(&b, "\tinput.%s == %s\n", path, ast.String(value).String()) }
	is("principal.id", r.Principal.ID)
	is("tool.name", r.Tool.Name)
	is("access.action", string(r.Access.Action))
	is("access.resource.text", r.Access.Resource.Text)
	if r.Access.Method != "" {
		is("access.method", r.Access.Method)
	}
	if r.Access.Resource.Kind == string(perm.KindTool) && len(r.Call.Args) > 0 {
		if args, err := ast.ValueFromReader(strings.NewReader(string(r.Call.Args))); err == nil {
			fmt.Fprintf(&b, "\tinput.call.args == %s\n", args.String())
		}
	}
	return b.String()
}

// described is the reason that a new rule gives.
func described(r perm.Request) string {
	return fmt.Sprintf("%s may use %s to %s %s", r.Principal.ID, r.Tool.Name, r.Access.Action, r.Access.Resource.Text)
}
