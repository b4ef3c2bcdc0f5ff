package rego_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// shadows returns the lines of the rules that a policy has too much, with the
// lines of those that take their place.
func shadows(t *testing.T, policy string) (found []string) {
	t.Helper()
	e, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": policy}})
	require.NoError(t, err, policy)
	for _, w := range e.Warnings() {
		if before, by, is := strings.Cut(w.Text, "changes no decision: wherever it holds, the rule of "); is {
			_, line, _ := strings.Cut(by, "p.rego:")
			number, _, _ := strings.Cut(line, " ")
			found = append(found, before+w.At+" by "+number)
		}
	}
	return found
}

func TestShadowedRules(t *testing.T) {
	for name, tt := range map[string]struct {
		rules string
		want  int
	}{
		"subset":                {"allow contains `a` if input.tool.name == `x`\nallow contains `b` if { input.tool.name == `x`; input.call.args.n == 1 }", 1},
		"always":                {"allow contains `a`\nallow contains `b` if input.tool.name == `x`", 1},
		"if true":               {"allow contains `a` if true\nallow contains `b` if input.tool.name == `x`", 1},
		"twice":                 {"deny contains `a` if input.call.args.n == 1\ndeny contains `b` if input.call.args.n == 1", 1},
		"ask over allow":        {"ask contains `a` if input.call.args.n == 1\nallow contains `b` if { input.call.args.n == 1; input.call.args.m == 1 }", 1},
		"hold over allow":       {"hold contains `a` if input.call.effect_class == `pivot`\nallow contains `b` if { input.call.effect_class == `pivot`; input.call.args.m == 1 }", 1},
		"deny over ask":         {"deny contains `a` if input.call.args.n == 1\nask contains `b` if { input.call.args.n == 1; input.call.args.m == 1 }", 1},
		"commit":                {"deny_commit contains `a` if input.txn.totals.pivot > 0\nask_commit contains `b` if { input.txn.totals.pivot > 0; input.txn.totals.held > 1 }", 1},
		"variables":             {"deny contains `a` if { some x in input.session.labels; startswith(x, `a`) }\ndeny contains `b` if { some y in input.session.labels; startswith(y, `a`); input.call.args.n == 1 }", 1},
		"negated":               {"deny contains `a` if not input.call.args.n\ndeny contains `b` if { not input.call.args.n; input.call.args.m == 1 }", 1},
		"same label":            {"allow contains `x`\nlabel contains `a` if input.call.args.n == 1\nlabel contains `a` if { input.call.args.n == 1; input.call.args.m == 1 }", 1},
		"other label":           {"allow contains `x`\nlabel contains `a` if input.call.args.n == 1\nlabel contains `b` if { input.call.args.n == 1; input.call.args.m == 1 }", 0},
		"hold after ask":        {"ask contains `a` if input.call.args.n == 1\nhold contains `b` if { input.call.args.n == 1; input.call.effect_class == `pivot` }", 0},
		"weaker":                {"allow contains `a` if input.call.args.n == 1\ndeny contains `b` if { input.call.args.n == 1; input.call.args.m == 1 }", 0},
		"other value":           {"allow contains `a` if input.call.args.n == 1\nallow contains `b` if { input.call.args.n == 2; input.call.args.m == 1 }", 0},
		"not negated":           {"deny contains `a` if not input.call.args.n\ndeny contains `b` if { input.call.args.n; input.call.args.m == 1 }", 0},
		"other variables":       {"deny contains `a` if { some x in input.session.labels; some y in input.session.requires; x == y }\ndeny contains `b` if { some x in input.session.labels; some y in input.session.labels; x == y }", 0},
		"one element is enough": {"deny contains `a` if { some x in input.session.labels; x == `a`; startswith(x, `b`) }\ndeny contains `b` if { some x in input.session.labels; x == `a`; some y in input.session.labels; startswith(y, `b`) }", 1},
		"reason of input":       {"allow contains input.call.args.why if input.call.args.n == 1\nallow contains `b` if { input.call.args.n == 1; input.call.args.m == 1 }", 0},
		"kept approval":         {"ask contains {`reason`: `a`, `remember`: `never`} if input.call.args.n == 1\nask contains `b` if { input.call.args.n == 1; input.call.args.m == 1 }", 0},
		"with":                  {"deny contains `a` if input.call.args.n == 1 with input.call.args as {}\ndeny contains `b` if { input.call.args.n == 1; input.call.args.m == 1 }", 0},
		"comprehension":         {"deny contains `a` if count([x | some x in input.session.labels; x == `a`]) > 0\ndeny contains `b` if { count([x | some x in input.session.labels; x == `a`]) > 0; input.call.args.m == 1 }", 0},
		"the reason is used":    {"deny contains `a` if input.call.args.n == 1\ndeny contains `b` if { input.call.args.n == 1; input.call.args.m == 1 }\nhint contains `c` if `b` in deny", 0},
	} {
		t.Run(name, func(t *testing.T) {
			require.Len(t, shadows(t, "package remit\n\n"+strings.ReplaceAll(tt.rules, "`", `"`)+"\n"), tt.want)
		})
	}
}

// TestShadowedRulesChangeNothing removes each rule that is reported from random
// policies, and decides random requests with and without it.
func TestShadowedRulesChangeNothing(t *testing.T) {
	conditions := []string{
		`input.call.args.a == 1`, `input.call.args.b == 1`, `not input.call.args.c`, `input.call.args.c`, `input.call.effect_class == "pivot"`, `true`,
		`some x in input.session.labels; startswith(x, "p")`, `some y in input.session.labels; endswith(y, "q"); y != input.call.args.d`,
		`input.session.labels[_] == input.call.args.d`, `count(input.session.labels) > 1`, `not "pq" in input.session.labels`,
	}
	reported := 0
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 3))
		var rules []string
		for i := range 7 {
			var body []string
			for range 1 + r.IntN(3) {
				c := conditions[r.IntN(len(conditions))]
				body = append(body, strings.NewReplacer("x in", fmt.Sprintf("x%d in", len(body)), "(x,", fmt.Sprintf("(x%d,", len(body)), "y in", fmt.Sprintf("y%d in", len(body)), "(y,", fmt.Sprintf("(y%d,", len(body)), "y !=", fmt.Sprintf("y%d !=", len(body))).Replace(c))
			}
			rules = append(rules, fmt.Sprintf("%s contains \"r%d\" if { %s }", []string{"deny", "ask", "hold", "allow", "allow"}[r.IntN(5)], i, strings.Join(body, "; ")))
		}
		policy := func(without int) string {
			kept := append([]string{"package remit", `allow contains "never" if input.tool.name == "never"`}, rules...)
			if without >= 0 {
				kept[without+2] = ""
			}
			return strings.Join(kept, "\n") + "\n"
		}
		whole, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": policy(-1)}})
		require.NoError(t, err, policy(-1))
		for _, found := range shadows(t, policy(-1)) {
			var row int
			_, place, _ := strings.Cut(found, "p.rego:")
			_, err := fmt.Sscanf(place, "%d", &row)
			require.NoError(t, err)
			reported++
			less, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": policy(row - 3)}})
			require.NoError(t, err)
			for range 200 {
				args := fmt.Sprintf(`{"a":%d,"b":%d,"d":"%s"%s}`, r.IntN(2), r.IntN(2), []string{"p", "pq", "q"}[r.IntN(3)], []string{"", `,"c":true`, `,"c":false`}[r.IntN(3)])
				req := perm.Request{Purpose: perm.PurposeRun, Call: perm.CallFacts{Args: json.RawMessage(args), EffectClass: []string{"pivot", "pure"}[r.IntN(2)]}}
				for _, label := range []string{"p", "pq", "q"} {
					if r.IntN(2) == 0 {
						req.Session.Labels = append(req.Session.Labels, label)
					}
				}
				want, err := whole.Decide(context.Background(), req)
				require.NoError(t, err)
				got, err := less.Decide(context.Background(), req)
				require.NoError(t, err)
				require.Equal(t, want.Effect(), got.Effect(), "%s\nwithout line %d, %s %v", policy(-1), row, args, req.Session.Labels)
			}
		}
	}
	require.Greater(t, reported, 10)
}
