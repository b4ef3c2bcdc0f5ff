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

// ErrNoFix states that no change of rules lets a request through.
var ErrNoFix = errors.New("rego: no change of rules lets this request through")

// PolicyFix is a smallest change of a policy that lets one request through. It
// lets through as few other requests as rules can distinguish. SuggestAllow has
// evaluated the changed policy.
type PolicyFix struct {
	Edits  []Edit `json:"edits"`  // empty: the policy already lets the request through
	Effect string `json:"effect"` // effect under the changed policy: allow, hold or ask
}

// Edit is one part of a PolicyFix: a condition for a rule, or a new rule.
type Edit struct {
	At   string `json:"at,omitempty"` // file:line of the rule that gets the condition; "": a new rule
	Text string `json:"text"`
}

// SuggestAllow finds the smallest change with which the policy lets a request
// through. It adds an exception to each rule that denies the request. If no
// rule allows the request, it adds one. Both name the principal, the tool and
// the access of the request. SuggestAllow evaluates the changed policy before
// it returns the change.
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

// special reports whether only one set counts for a purpose, with any effect.
func special(p perm.Purpose) bool { return p == perm.PurposeVerify || p == perm.PurposeList }

// refusals returns the positions of the rules that deny the request.
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

// fixAttempt is a policy with the edits so far.
type fixAttempt struct {
	of       *Engine
	request  perm.Request
	name     string // name of the rule that defines the exception
	excepted []string
	allows   bool
}

// add extends the change and reports whether it did.
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

// with returns the modules with edits applied: conditions at the end of rules,
// and new rules in a separate file.
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

// conditions returns conditions that match the request and no other request
// that a rule could need to distinguish from it. If the access is the call of
// the tool itself, the conditions also match the arguments.
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

// described returns the reason of a new rule.
func described(r perm.Request) string {
	return fmt.Sprintf("%s may use %s to %s %s", r.Principal.ID, r.Tool.Name, r.Access.Action, r.Access.Resource.Text)
}
