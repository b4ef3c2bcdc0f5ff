package rego_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm/rego"
)

// longTimeout is a timeout that a busy machine does not reach.
const longTimeout = time.Minute

// load creates an engine from one module.
func load(text string) (*rego.Engine, error) {
	return rego.New(rego.Options{Modules: map[string]string{"p.rego": text}, Timeout: longTimeout})
}

// control is a policy that loads and allows everything. Each broken policy
// below is this one with a mistake.
const control = `package remit

allow contains "all"
`

func TestControlLoads(t *testing.T) {
	_, err := load(control)
	require.NoError(t, err)
}

func TestLoadProblems(t *testing.T) {
	tests := []struct {
		name, text, at, says, fix string
	}{
		{"syntax", control + "deny contains \"x\" if {", "p.rego:4", "", "bracket"},
		{"old syntax", control + "deny[x] { x := 1 }", "p.rego:4", "keyword is required", "contains"},
		{"empty file", "", "p.rego", "empty", "package remit"},
		{"only comment", "# nothing", "p.rego", "", ""},
		{"empty policy", "package remit\n", "", "defines no rule", "allow contains"},
		{"helpers only", "package remit\nx := 1", "", "defines no rule", "allow contains"},
		{"other package only", "package remt\nx := 1", "", "only of [remt]", "package remit"},
		{"set in another package", "package remt\nallow contains \"x\"", "", "only of [remt]", "package remit"},
		{"boolean allow", control + "deny if true", "p.rego:4", "deny is a set", `deny contains "why"`},
		{"assigned", control + "deny := \"x\"", "p.rego:4", "deny is a set", `deny contains`},
		{"object", control + "deny.x := \"y\"", "p.rego:4", "deny is a set", `deny contains`},
		{"two parts", control + "deny.x contains \"y\"", "p.rego:4", "deny is a set", `deny contains`},
		{"function", control + "deny(x) if x == 1", "p.rego:4", "deny is a set", `deny contains`},
		{"default", control + "default hold := false", "p.rego:4", "no default", "denial"},
		{"else", control + "ask := 1 if { false } else := 2", "p.rego:4", "no else", "second rule"},
		{"private", control + "__remit_deny contains \"x\"", "p.rego:4", "are taken", "another name"},
		{"private elsewhere", "package other\n__remit_allow contains [0, \"x\"]", "p.rego:2", "are taken", "another name"},
		{"nested", control + "deny contains \"x\" if { x := " + strings.Repeat("[y | y := ", 9) + "input.tool.name" + strings.Repeat("]", 9) + "; x == [] }", "p.rego:4", "nested 9 deep; at most 8", "helper rules"},
		{"nested every", control + "deny contains \"x\" if {" + strings.Repeat(" every x in input.principal.roles {", 9) + " x == \"a\" " + strings.Repeat("}", 9) + " }", "p.rego:4", "nested 9 deep", "helper rules"},
		{"number", control + "deny contains 5", "p.rego:4", "not of type number", "quotes"},
		{"null", control + "hint contains null", "p.rego:4", "not of type null", "quotes"},
		{"array", control + "hint contains [\"a\"]", "p.rego:4", "not of type array", "quotes"},
		{"object element", control + "allow contains {\"a\": 1}", "p.rego:4", "not of type object", "quotes"},
		{"requirement", control + "require contains \"verfy\"", "p.rego:4", "require knows", "did you mean verify?"},
		{"pointer", control + "redact contains \"args.token\"", "p.rego:4", "JSON pointer", ""},
		{"mask", control + "mask contains \"**/.git\"", "p.rego:4", "pattern of files", ""},
		{"mask of another kind", control + "mask contains \"exec://git\"", "p.rego:4", "pattern of files", ""},
		{"misspelt set", control + "alow contains \"x\"", "p.rego:4", "no set has the name alow", "did you mean allow?"},
		{"capital set", control + "Deny contains \"x\"", "p.rego:4", "no set has the name Deny", "did you mean deny?"},
		{"unknown set", control + "permissions contains \"x\"", "p.rego:4", "no set has the name", "there is deny, limit"},
		{"undefined", control + "deny contains \"x\" if nothing", "p.rego:4", "nothing", ""},
		{"field", control + `deny contains "x" if input.acess.action == "read"`, "p.rego:4", "input.acess", "did you mean access?"},
		{"field under not", control + `deny contains "x" if not input.acess.action == "read"`, "p.rego:4", "input.acess", "did you mean access?"},
		{"field in brackets", control + `deny contains "x" if input["acess"].action == "read"`, "p.rego:4", "input.acess", "did you mean access?"},
		{"field by alias", control + "deny contains \"x\" if {\n\ta := input.access\n\ta.acton == \"read\"\n}", "p.rego:6", "acton", "did you mean action?"},
		{"field by import", "package remit\nimport input.access as a\nallow contains \"x\" if a.acton == \"read\"", "p.rego:3", "acton", "did you mean action?"},
		{"field of a map", control + `deny contains "x" if input.session.tools.git.rnu > 1`, "p.rego:4", "no field rnu", "did you mean run?"},
		{"field of a window", control + `deny contains "x" if input.session.tools.git.windows["1min"].run > 1`, "p.rego:4", "no field 1min", "did you mean 1m?"},
		{"field of a list", control + `deny contains "x" if { some c in input.changes; c.kid == "delete" }`, "p.rego:4", "kid", "did you mean kind?"},
		{"field in every", control + `deny contains "x" if { every c in input.changes { c.resource.rot == "a" } }`, "p.rego:4", "rot", "did you mean root?"},
		{"field in a comprehension", control + `deny contains "x" if count({c | c := input.changes[_].afer}) > 1`, "p.rego:4", "afer", "did you mean after?"},
		{"type", control + `deny contains "x" if input.access.action == 5`, "p.rego:4", "", "like with like"},
		{"enum", control + `deny contains "x" if input.call.effect_class == "reversble"`, "p.rego:4", `can never be "reversble"`, "did you mean reversible?"},
		{"enum, far", control + `deny contains "x" if input.purpose == "zzzzzzzz"`, "p.rego:4", "can never be", "there is run, apply"},
		{"enum turned", control + `deny contains "x" if "reversble" == input.call.effect_class`, "p.rego:4", "can never be", "reversible"},
		{"enum unified", control + `deny contains "x" if input.call.effect_class = "reversble"`, "p.rego:4", "can never be", "reversible"},
		{"enum not equal", control + `deny contains "x" if input.call.effect_class != "reversble"`, "p.rego:4", "can never be", "reversible"},
		{"enum under not", control + `deny contains "x" if not input.call.effect_class == "reversble"`, "p.rego:4", "can never be", "reversible"},
		{"enum in", control + `deny contains "x" if input.call.effect_class in {"pure", "reversble"}`, "p.rego:4", "can never be", "reversible"},
		{"enum in list", control + `deny contains "x" if input.access.action in ["red", "write"]`, "p.rego:4", "can never be", "read"},
		{"enum in with key", control + `deny contains "x" if { 0, input.access.action in ["red", "write"] }`, "p.rego:4", "can never be", "read"},
		{"enum in rule", control + "classes := {\"pure\", \"reversble\"}\ndeny contains \"x\" if input.call.effect_class in classes", "p.rego:5", "can never be", "reversible"},
		{"enum in set rule", control + "classes contains \"reversble\"\ndeny contains \"x\" if input.call.effect_class in classes", "p.rego:5", "can never be", "reversible"},
		{"enum by local list", control + "deny contains \"x\" if {\n\tl := [\"reversble\"]\n\tinput.call.effect_class in l\n}", "p.rego:6", "can never be", "reversible"},
		{"enum by alias", control + "deny contains \"x\" if {\n\tc := input.call\n\te := c.effect_class\n\te == \"reversble\"\n}", "p.rego:7", "can never be", "reversible"},
		{"enum by import", "package remit\nimport input.call\nallow contains \"x\" if call.effect_class == \"reversble\"", "p.rego:3", "can never be", "reversible"},
		{"enum in a list of the input", control + `deny contains "x" if { some c in input.session.recent; c.status == "faild" }`, "p.rego:4", "can never be", "failed"},
		{"enum by object.get", control + `deny contains "x" if object.get(input.call, "effect_class", "") == "reversble"`, "p.rego:4", "can never be", "reversible"},
		{"object.get", control + `deny contains "x" if object.get(input.call, "efect_class", "") == "pure"`, "p.rego:4", "no field efect_class", "effect_class"},
		{"object.get path", control + `deny contains "x" if object.get(input, ["call", "efect_class"], "") == "pure"`, "p.rego:4", "no field efect_class", "effect_class"},
		{"with", control + "x if input.call.declared\ndeny contains \"x\" if x with input.call.declred as true", "p.rego:5", "declred", "declared"},
		{"http", control + `deny contains "x" if http.send({"url": "http://a"}).status_code == 200`, "p.rego:4", "undefined function http.send", "not available"},
		{"now", control + `deny contains "x" if time.now_ns() > 0`, "p.rego:4", "time.now_ns", "input.time"},
		{"x509", control + `deny contains "x" if crypto.x509.parse_and_verify_certificates("x")[0]`, "p.rego:4", "crypto.x509", "current time"},
		{"metadata", control + `deny contains rego.metadata.rule().title`, "p.rego:4", "rego.metadata.rule", "annotations"},
		{"no such function", control + `deny contains "x" if nosuch(1)`, "p.rego:4", "undefined function nosuch", "define the function"},
		{"no such built-in", control + `deny contains "x" if strings.quitedifferent(1)`, "p.rego:4", "undefined function", "define the function"},
		{"field of a number", control + `deny contains "x" if input.txn.calls.total > 1`, "p.rego:4", "undefined ref", ""},
		{"zone", control + `deny contains "x" if time.clock([0, "Local"])[0] > 1`, "p.rego:4", "Local", "UTC"},
		{"zone by alias", control + "deny contains \"x\" if {\n\tns := time.parse_rfc3339_ns(input.time)\n\tz := \"Local\"\n\ttime.weekday([ns, z]) == \"Monday\"\n}", "p.rego:7", "Local", "UTC"},
		{"layout", control + `deny contains "x" if time.parse_ns("RFC1123", "x") > 1`, "p.rego:4", "abbreviated", "RFC3339"},
		{"recursion", control + "a if b\nb if a", "p.rego:4", "recursive", "circle"},
		{"unsafe", control + `deny contains x if true`, "p.rego:4", "unsafe", "some"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			engine, err := load(tt.text)
			require.Nil(t, engine)
			var bad *rego.LoadError
			require.ErrorAs(t, err, &bad)
			p := bad.Problems[0]
			t.Log(bad)
			require.Contains(t, p.At, tt.at)
			require.Contains(t, p.Text, tt.says)
			require.Contains(t, p.Fix, tt.fix)
		})
	}
}

func TestLoadFiles(t *testing.T) {
	_, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": control, "q.rego": "package remit.deny\nx := 1"}})
	require.ErrorContains(t, err, "q.rego:1:1: package remit.deny takes the place of the set deny")
	_, err = rego.New(rego.Options{Modules: map[string]string{"p.rego": control, "q.rego": "package remt\ndeny contains \"x\""}})
	require.ErrorContains(t, err, "q.rego:2:1: deny of package remt is not asked for")
	_, err = rego.New(rego.Options{Modules: map[string]string{"p.rego": control, "": control}})
	require.ErrorContains(t, err, "a module has no name")
	require.False(t, errors.Is(err, rego.ErrEvaluation))
}

// TestLoadReportsEveryRule checks that a mistake does not hide one of a later
// stage in another rule, and that a rule that is left out makes no helper
// superfluous.
func TestLoadReportsEveryRule(t *testing.T) {
	_, err := load(control + `
deny contains "a" if {
	input.tool.name == "file_write"
	input.tool.nam == "x"
	some name in wanted
	name == 1
}

wanted contains 1 if input.access.action == "read"

ask contains "b" if data.limits.frozen

ask contains 5

hold contains "c" if lib.changes

deny contains "d" if { input.call.argz.path == "x" }
`)
	var bad *rego.LoadError
	require.ErrorAs(t, err, &bad)
	var at []string
	for _, p := range bad.Problems {
		at = append(at, p.At)
	}
	require.Equal(t, []string{"p.rego:7:2", "p.rego:14:21", "p.rego:16:1", "p.rego:18:22", "p.rego:20:24"}, at, "%v", err)

	_, err = load(control + "broken if lib.changes\n\nask contains \"b\" if { broken; data.limits.frozen }\n")
	require.ErrorAs(t, err, &bad)
	require.Len(t, bad.Problems, 1, "another rule relies on what is broken")

	_, err = load(control + "deny contains \"x\" if input.tool.nam == \"a\"\n\nask contains \"y\" if count(deny) > 0\n\nhold contains \"z\" if data.remit.deny[\"x\"]\n")
	require.ErrorAs(t, err, &bad)
	require.Len(t, bad.Problems, 1, "other rules refer to the set: %v", err)

	_, err = load("package remit\n\ndeny contains \"a\" if lib.changes\n")
	require.ErrorAs(t, err, &bad)
	require.Len(t, bad.Problems, 1)
}

// TestConstantsOfALoad: what a load spends on helpers that read nothing of the input is bounded for all of them together.
func TestConstantsOfALoad(t *testing.T) {
	heavy := func(n int) string {
		text := control + "big := numbers.range(1, 2000)\n"
		for i := range n {
			text += fmt.Sprintf("h%d if { some i in big; some j in big; i+j == -%d }\ndeny contains \"%d\" if { h%d; input.tool.name == \"a\" }\n", i, i+1, i, i)
		}
		return text
	}
	few, many := rego.ConstantSteps(t, heavy(3)), rego.ConstantSteps(t, heavy(40))
	require.Greater(t, few, rego.DefaultSteps/5)
	require.Less(t, few, rego.DefaultSteps/2)
	require.Equal(t, rego.DefaultSteps, many)
}
