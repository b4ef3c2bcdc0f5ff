package rego

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// maxProblems ends the search of check for more.
const maxProblems = 100

// check finds errors in a policy beyond its syntax, and lists the references
// that it cannot check. A stage that finds errors is the last, because the next
// ones rely on it. So check then leaves the rules with these errors out and
// looks at the others again. An author sees all mistakes at once.
func (m *modules) check(data map[string]any) ([]UncheckedRef, error) {
	notes, err := m.checkStages(data)
	var failed *LoadError
	if !errors.As(err, &failed) {
		return notes, err
	}
	found := failed.Problems
	for rest := m; len(found) < maxProblems; {
		var ok bool
		if rest, ok = rest.without(failed.Problems); !ok {
			break
		}
		if _, err := rest.checkStages(data); !errors.As(err, &failed) {
			break
		}
		found = append(found, failed.Problems...)
	}
	slices.SortStableFunc(found, Problem.compare)
	return nil, &LoadError{Problems: found}
}

// checkStages runs the stages up to the first that finds an error.
func (m *modules) checkStages(data map[string]any) ([]UncheckedRef, error) {
	if err := m.checkShape(); err != nil {
		return nil, err
	}
	c, err := m.compile()
	if err != nil {
		return nil, err
	}
	if err := m.checkUse(c); err != nil {
		return nil, err
	}
	if err := m.checkNames(c, data); err != nil {
		return nil, err
	}
	return m.checkFields(c)
}

// without returns m without the rules that the problems are in. It returns
// false if a problem is in something that other rules can rely on, or if no
// rule of a set would be left.
func (m *modules) without(found []Problem) (*modules, bool) {
	rest := &modules{parsed: maps.Clone(m.parsed), tests: m.tests, names: m.names, packs: m.packs, leftOut: maps.Clone(m.leftOut)}
	if rest.leftOut == nil {
		rest.leftOut = map[string]bool{}
	}
	for _, p := range found {
		file, row := p.line()
		mod := rest.parsed[file]
		if mod == nil {
			return nil, false
		}
		i := slices.IndexFunc(mod.Rules, func(r *ast.Rule) bool { return holdsLine(r, row) })
		switch {
		case i < 0 && slices.ContainsFunc(m.parsed[file].Rules, func(r *ast.Rule) bool { return holdsLine(r, row) }):
			continue // another problem of the same rule
		case i < 0 || setOf(mod, mod.Rules[i]) == "":
			return nil, false
		}
		if set := setOf(mod, mod.Rules[i]); !rest.leaveOut(file, i) && rest.mentions(set) {
			return nil, false // the others would refer to a set without rules
		}
	}
	for name, mod := range rest.parsed {
		if slices.ContainsFunc(mod.Rules, func(r *ast.Rule) bool { return setOf(rest.parsed[name], r) != "" }) {
			return rest, true
		}
	}
	return nil, false
}

// leaveOut removes a rule of a set, and remembers the names that it uses. It
// reports whether the set has other rules.
func (m *modules) leaveOut(file string, i int) (others bool) {
	set := headName(m.parsed[file].Rules[i])
	ast.WalkVars(m.parsed[file].Rules[i], func(v ast.Var) bool {
		m.leftOut[string(v)] = true
		return false
	})
	mod := m.parsed[file].Copy()
	mod.Rules = slices.Delete(mod.Rules, i, i+1)
	m.parsed[file] = mod
	for _, mod := range m.parsed {
		others = others || slices.ContainsFunc(mod.Rules, func(r *ast.Rule) bool { return setOf(mod, r) == set })
	}
	return others
}

// mentions reports whether a rule has a name in it.
func (m *modules) mentions(name string) (found bool) {
	for _, mod := range m.parsed {
		ast.WalkTerms(mod, func(t *ast.Term) bool {
			found = found || t.Value.Compare(ast.Var(name)) == 0 || t.Value.Compare(ast.String(name)) == 0
			return found
		})
	}
	return found
}

// holdsLine reports whether a line is one of a rule's.
func holdsLine(r *ast.Rule, row int) bool {
	loc := r.Loc()
	return loc != nil && loc.Row <= row && row <= loc.Row+strings.Count(string(loc.Text), "\n")
}

// line returns the file and the line of p, or "" and 0.
func (p Problem) line() (file string, row int) {
	parts := strings.Split(p.At, ":")
	if len(parts) < 3 {
		return "", 0
	}
	row, _ = strconv.Atoi(parts[len(parts)-2])
	return strings.Join(parts[:len(parts)-2], ":"), row
}

// compare orders problems by file and line. The order within a line stays.
func (p Problem) compare(o Problem) int {
	file, row := p.line()
	other, otherRow := o.line()
	return cmp.Or(cmp.Compare(file, other), cmp.Compare(row, otherRow))
}
