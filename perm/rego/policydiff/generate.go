package policydiff

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/remit-dev/remit/perm/rego"
)

// generator builds requests from the conditions of rules.
type generator struct {
	*rand.Rand
	schema  schema
	base    document
	targets []rego.RuleConditions // rules that have conditions, of both policies
	changed []int                 // targets that only one of the policies has in this form
	permits []int                 // targets of allow, ask and hold
	pool    map[string][]any      // constants of both policies, by path
	paths   [][]string            // the paths of pool, sorted
	places  [2]map[string]int     // targets of the old and of the new policy, by file:line
}

func newGenerator(old, changed *rego.Engine, r *rand.Rand) *generator {
	g := &generator{Rand: r, schema: inputSchema(), base: baseDocument(), pool: map[string][]any{}, places: [2]map[string]int{{}, {}}}
	was, is := old.Conditions(), changed.Conditions()
	both := forms(was)
	for form := range forms(is) {
		if both[form] {
			both[form+"both"] = true
		}
	}
	for i, of := range slices.Concat(was, is) {
		policy := 0
		if i >= len(was) {
			policy = 1
		}
		g.places[policy][of.At] = i
		if !both[formOf(of)+"both"] {
			g.changed = append(g.changed, len(g.targets))
		}
		if of.Set == "allow" || of.Set == "ask" || of.Set == "hold" {
			g.permits = append(g.permits, len(g.targets))
		}
		g.targets = append(g.targets, of)
		g.learn(of)
	}
	for _, k := range sortedKeys(g.pool) {
		g.paths = append(g.paths, strings.Split(k, "\x00"))
	}
	return g
}

func forms(all []rego.RuleConditions) map[string]bool {
	out := map[string]bool{}
	for _, of := range all {
		out[formOf(of)] = true
	}
	return out
}

// formOf returns what a rule says, without its position.
func formOf(of rego.RuleConditions) string {
	text, err := json.Marshal([]any{of.Set, of.Text, of.Alternatives, of.Constants})
	if err != nil {
		return fmt.Sprint(of)
	}
	return string(text)
}

func sortedKeys(m map[string][]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func key(path []string) string { return strings.Join(path, "\x00") }

// maxPool bounds the constants of one path.
const maxPool = 400

func (g *generator) learn(of rego.RuleConditions) {
	for _, conditions := range of.Alternatives {
		for _, c := range conditions {
			k := key(c.Path)
			for _, v := range c.Values {
				if !strings.HasPrefix(c.Op, "count:") && len(g.pool[k]) < maxPool && !slices.Contains(g.pool[k], v) {
					g.pool[k] = append(g.pool[k], v)
				}
			}
		}
	}
}

// rounds bounds how often the conditions of a request are repaired.
const rounds = 5

// attempt is a request with the conditions that it was made for.
type attempt struct {
	d           document
	target      int
	own, others []rego.Condition
}

// attempt returns one request.
func (g *generator) attempt() attempt {
	a := attempt{d: cloneDocument(g.base)}
	if len(g.targets) == 0 {
		return a
	}
	a.target = g.IntN(len(g.targets))
	if len(g.changed) > 0 && g.IntN(5) > 0 {
		a.target = pick(g.Rand, g.changed)
	}
	target := g.targets[a.target]
	a.own = g.deviate(g.conditionsOf(target))
	a.others = append(g.companions(target), g.heldClass(target)...)
	g.purpose(a.d, target.Set, slices.Concat(a.own, a.others))
	if g.IntN(3) == 0 {
		g.loose(a.d, target)
	}
	if g.IntN(5) == 0 && len(g.paths) > 0 {
		p := pick(g.Rand, g.paths)
		g.put(a.d, p, pick(g.Rand, append(slices.Clone(g.pool[key(p)]), "x")))
	}
	g.repair(a.d, a.own, a.others)
	return a
}

// unmask changes an attempt so that rules that decided no longer hold, if they
// hide what the target does. It reports whether there is such a rule.
func (g *generator) unmask(a *attempt, p pair) bool {
	found := false
	for i, o := range []Outcome{p.before, p.after} {
		for _, r := range o.Reasons {
			at, known := g.places[i][r.At]
			if !known || at == a.target || slices.Contains(g.changed, at) {
				continue
			}
			if o.Effect != "deny" && strictness(r.Set) > strictness(g.targets[a.target].Set) {
				continue
			}
			if c, ok := g.breaking(a, at); ok {
				a.others = append(a.others, c)
				found = true
			}
		}
	}
	if found {
		a.d = cloneDocument(a.d)
		g.repair(a.d, a.own, a.others)
	}
	return found
}

// breaking returns a condition with which a rule does not hold, of another
// place than those of the target if there is one.
func (g *generator) breaking(a *attempt, at int) (rego.Condition, bool) {
	for _, all := range g.targets[at].Alternatives {
		if slices.ContainsFunc(all, func(c rego.Condition) bool { return !holds(a.d, c) }) || len(all) == 0 {
			continue
		}
		var free []rego.Condition
		for _, c := range all {
			if !slices.ContainsFunc(a.own, func(o rego.Condition) bool { return key(o.Path) == key(c.Path) }) {
				free = append(free, c)
			}
		}
		if len(free) == 0 {
			free = all
		}
		c := pick(g.Rand, free)
		c.Not = !c.Not
		return c, true
	}
	return rego.Condition{}, false
}

// strictness orders the sets by which one decides if several have a reason.
func strictness(set string) int {
	if i := slices.Index([]string{"deny", "", "ask", "hold", "allow"}, set); i >= 0 {
		return i
	}
	return 1 // an obligation shows unless the call is denied
}

// conditionsOf returns the conditions of one alternative of a rule.
func (g *generator) conditionsOf(of rego.RuleConditions) []rego.Condition {
	if len(of.Alternatives) == 0 {
		return nil
	}
	return slices.Clone(pick(g.Rand, of.Alternatives))
}

// companions returns the conditions of rules that permit the call, so that a
// denial or an obligation shows.
func (g *generator) companions(target rego.RuleConditions) (all []rego.Condition) {
	n := 0
	switch target.Set {
	case "allow", "ask", "hold":
		if g.IntN(5) == 0 {
			n = 1
		}
	default:
		n = min(g.IntN(6), 1) + g.IntN(6)/5
	}
	for range n {
		if len(g.permits) > 0 {
			of := g.targets[pick(g.Rand, g.permits)]
			all = append(all, append(g.heldClass(of), g.conditionsOf(of)...)...)
		}
	}
	return all
}

// heldClass returns the condition without which the engine denies what a rule
// holds.
func (g *generator) heldClass(of rego.RuleConditions) []rego.Condition {
	if of.Set != "hold" || g.IntN(6) == 0 {
		return nil
	}
	return []rego.Condition{{Path: []string{"call", "effect_class"}, Op: "eq", Values: []any{"deferrable", "pivot"}}}
}

// deviate turns one condition around, or two, or none.
func (g *generator) deviate(all []rego.Condition) []rego.Condition {
	if len(all) == 0 {
		return all
	}
	times := []int{0, 0, 0, 0, 1, 1, 1, 1, 1, 2}[g.IntN(10)]
	for range times {
		i := g.IntN(len(all))
		all[i].Not = !all[i].Not
	}
	return all
}

// purpose sets the purpose that a set is evaluated for, if no condition does.
func (g *generator) purpose(d document, set string, all []rego.Condition) {
	if slices.ContainsFunc(all, func(c rego.Condition) bool { return c.Path[0] == "purpose" }) {
		return
	}
	purpose := "run"
	switch {
	case set == "ensure":
		purpose = "verify"
	case set == "hide":
		purpose = "list"
	case g.IntN(8) == 0:
		purpose = pick(g.Rand, []string{"apply", "revert", "merge", "verify", "list"})
	}
	d["purpose"] = purpose
}

// repair changes a document until the conditions hold, as far as it can. The
// conditions of the target come last, so they win.
func (g *generator) repair(d document, own, others []rego.Condition) {
	all := slices.Concat(others, own)
	var action bool
	for range rounds {
		done := true
		for _, c := range all {
			if len(c.Path) > 0 && !holds(d, c) {
				g.apply(d, c, all)
				done = false
			}
			action = action || len(c.Path) > 1 && c.Path[0] == "access" && c.Path[1] == "action"
		}
		if done {
			break
		}
	}
	g.fitAction(d, action, all)
}

// fitAction makes the action one of the kind of the resource. If a condition
// names the action and none the resource, the resource follows.
func (g *generator) fitAction(d document, action bool, all []rego.Condition) {
	kinds, names := get(d, []string{"access", "resource", "kind"}), get(d, []string{"access", "action"})
	if len(kinds) == 0 || len(names) == 0 {
		return
	}
	kind, _ := kinds[0].(string)
	name, _ := names[0].(string)
	if slices.Contains(actionsOf(kind), name) {
		return
	}
	resource := slices.ContainsFunc(all, func(c rego.Condition) bool {
		return len(c.Path) > 2 && c.Path[0] == "access" && c.Path[1] == "resource"
	})
	switch fitting := kindsOf(name); {
	case !action:
		g.put(d, []string{"access", "action"}, pick(g.Rand, actionsOf(kind)))
	case !resource && len(fitting) > 0:
		g.put(d, []string{"access", "resource", "kind"}, pick(g.Rand, fitting))
	}
}

// apply changes a document so that a condition holds, with a value with which
// most conditions of its path hold.
func (g *generator) apply(d document, c rego.Condition, all []rego.Condition) {
	if c.Not && (c.Op == "defined" || c.Path[len(c.Path)-1] == "[]" || g.IntN(6) == 0) {
		if g.schema.remove(d, c.Path); holds(d, c) {
			return
		}
	}
	values := g.candidates(d, c)
	g.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	best, most := any(nil), -1
	for _, v := range values[:min(len(values), 40)] {
		if !g.schema.fits(c.Path, v) {
			continue
		}
		if n := agreed(c, v, all); n > most {
			best, most = v, n
		}
	}
	if most >= 0 {
		g.put(d, c.Path, best)
	}
}

// agreed counts the conditions of a path that hold for a value.
func agreed(of rego.Condition, v any, all []rego.Condition) (n int) {
	k := key(of.Path)
	for _, c := range all {
		if key(c.Path) == k && c.Op != "same" && compares(nil, strings.TrimPrefix(c.Op, "count:"), counted(c, v), c) != c.Not {
			n++
		}
	}
	return n
}

func counted(c rego.Condition, v any) any {
	if strings.HasPrefix(c.Op, "count:") {
		return float64(length(v))
	}
	return v
}

func (g *generator) put(d document, path []string, v any) {
	if g.schema.fits(path, v) {
		g.schema.set(d, path, clone(v))
	}
}

// loose sets a place that the target reads without a known condition.
func (g *generator) loose(d document, target rego.RuleConditions) {
	known := map[string]bool{}
	for _, conditions := range target.Alternatives {
		for _, c := range conditions {
			known[key(c.Path)] = true
		}
	}
	var open [][]string
	for _, p := range target.Reads {
		if len(p) > 0 && !known[key(p)] {
			open = append(open, p)
		}
	}
	if len(open) == 0 {
		return
	}
	p := pick(g.Rand, open)
	if p[0] == "time" {
		g.setTime(d, target.Constants)
		return
	}
	v := pick(g.Rand, append(slices.Clone(target.Constants), "x", 1.0, true))
	switch w := v.(type) {
	case float64:
		v = w + float64(g.IntN(3)-1)
	case string:
		v = pick(g.Rand, []string{w, w + "x", w[:max(0, len(w)-1)], w + "/a.txt"})
	}
	if g.IntN(4) == 0 {
		v = []any{v}
	}
	g.put(d, p, v)
}

// setTime sets an hour near a constant and any day of the week.
func (g *generator) setTime(d document, constants []any) {
	hour := g.IntN(24)
	for _, v := range constants {
		if n, ok := v.(float64); ok && n >= 0 && n <= 24 && g.IntN(2) == 0 {
			hour = min(max(int(n)+g.IntN(3)-1, 0), 23)
		}
	}
	d["time"] = fmt.Sprintf("2026-01-%02dT%02d:%02d:00Z", 5+g.IntN(7), hour, 30*g.IntN(2))
}
