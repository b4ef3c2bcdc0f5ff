package rego

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// deletion warns of a postcondition on the content of a file, if the policy has
// none on its deletion. A deleted file has no text, so the rule does not fire.
func (l *lint) deletion(e *ast.Expr, loc *ast.Location, set string) {
	if set != setEnsure || !e.Negated || callName(e) == "" {
		return
	}
	for _, op := range e.Operands() {
		if s := l.shapeOf(op); s != nil && s.path == "changes[].text" && l.allowsDeletions() && !l.judgesDeletions() {
			l.warn(loc, `add a rule of ensure with the condition change.kind == "delete"`,
				"a deleted file has no text, and then this rule does not fire, since not does not hold either")
			return
		}
	}
}

// allowsDeletions reports whether a rule can permit a deletion. A policy that
// permits nothing stands beside another one, which can.
func (l *lint) allowsDeletions() bool {
	permits := false
	for _, r := range l.rules {
		if r.set != setAllow && r.set != setAsk && r.set != setHold {
			continue
		}
		permits = true
		if actions, said := r.facts.of("access.action"); !said || slices.Contains(actions, "delete") {
			return true
		}
	}
	return !permits
}

// judgesDeletions reports whether a postcondition reads how a file changed.
func (l *lint) judgesDeletions() (found bool) {
	for _, r := range l.rules {
		if r.set != setEnsure {
			continue
		}
		ast.WalkTerms(r.rule, func(t *ast.Term) bool {
			if ref, ok := t.Value.(ast.Ref); ok {
				s := l.shapeOf(ast.NewTerm(ref))
				found = found || s != nil && (s.path == "changes[].kind" || s.path == "changes[].after")
			}
			return found
		})
	}
	return found
}
