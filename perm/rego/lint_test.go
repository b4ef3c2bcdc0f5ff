package rego_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm/rego"
)

// warned returns the warnings of the control and one more text.
func warned(t *testing.T, text string, tools ...rego.Tool) string {
	t.Helper()
	e, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": strings.Replace(control, `"all"`, `"all" if input.principal.id == "root"`, 1) + text}, Timeout: longTimeout, Data: map[string]any{
		"on": true, "a": map[string]any{"twin": 1}, "b": map[string]any{"twin": 2}, "names": []any{"x"}, "pairs": []any{map[string]any{}},
	}})
	require.NoError(t, err)
	var lines []string
	for _, w := range e.WarningsFor(tools, false) {
		require.NotEmpty(t, w.Fix)
		lines = append(lines, w.String())
	}
	return strings.Join(lines, "\n")
}

// TestWarnings checks warnings beyond those for typical mistakes (cmd/remit
// TestTypicalMistakes).
func TestWarnings(t *testing.T) {
	for name, tt := range map[string]struct{ text, says string }{
		"false":                 {`deny contains "x" if false`, "p.rego:4:22: this rule of deny never fires: a condition of it is false"},
		"a helper's condition":  {"files if input.access.resource.kind == \"file\"\ndeny contains \"x\" if { files; input.access.resource.kind == \"db\" }", `input.access.resource.kind is "file"`},
		"narrowed twice":        {`deny contains "x" if { input.access.action in {"read", "write"}; input.access.action in {"write", "list"}; input.access.action == "read" }`, "never fires"},
		"a table with a host":   {`deny contains "x" if { input.access.resource.table == "a"; input.access.resource.host == "b" }`, "never fires"},
		"a program in a root":   {`deny contains "x" if { input.access.resource.program == "git"; input.access.resource.root == "b" }`, "never fires"},
		"a server with a table": {`deny contains "x" if { input.access.resource.server == "a"; input.access.resource.table == "b" }`, "never fires"},
		"a file with a method":  {`deny contains "x" if { input.access.method == "GET"; input.access.resource.kind == "file" }`, "never fires"},
		"an ext of a table":     {`deny contains "x" if { input.access.resource.ext == ".go"; input.access.resource.kind == "db" }`, "never fires"},
		"a set as a condition":  {`deny contains "x" if ask` + "\nask contains \"y\" if input.call.declared", "this condition always holds"},
		"a name near a set":     {`allowed if input.call.declared`, "did you mean allow?"},
		"hold, by default":      {`hold contains "x" if input.call.effect_class == "reversible"`, "only deferrable and pivot"},
		"a label by a helper":   {"label contains \"a b\" if input.call.declared\ndeny contains \"x\" if \"a_b\" in input.session.labels", `write "a b"`},
		"a deny with presence":  {"deny contains \"x\" if { y := input.access.resource.host }\nask contains \"y\" if { z := input.access.resource.host; input.call.declared }", "decides nothing"},
		"narrowed":              {"deny contains \"x\" if input.access.action == \"write\"\nask contains \"y\" if { input.access.action in {\"write\", \"read\"}; input.access.action in {\"write\", \"list\"} }", "decides nothing"},
		"a budget of programs":  {`limit contains {"budget": "writes", "max": 3, "per": "principal"} if input.access.action in {"write", "delete"}`, `p.rego:4:70: this budget per principal denies what a program changes: the rule gives it only once the program has run`},
		"a field, equal":        {`deny contains "x" if { method := "GET" }`, "input.access.method"},
		"text of a change":      {`ensure contains "x" if { some c in input.changes; not startswith(c.text, "a") }`, `a deleted file has no text, and then this rule does not fire`},
		"text of a deny":        {`deny contains "x" if { some c in input.changes; contains(c.text, "a") }`, `this rule of deny never fires: deny does not count with purpose verify`},
		"text, equal":           {`ask contains "x" if { some c in input.changes; c.media_type == "text/plain" }`, `this rule of ask never fires`},
		"a cut text":            {`allow contains "x" if { some c in input.changes; c.cut }`, `this rule of allow never fires`},
		"a mask's root":         {`mask contains "file://wrkspace/secrets/**"`, `the root "wrkspace", which is nearly workspace (fix: did you mean workspace?)`},
		"ext under not":         {`deny contains "x" if not startswith(input.access.resource.ext, ".")`, `object.get(input.access.resource, "ext", "")`},
	} {
		t.Run(name, func(t *testing.T) { require.Contains(t, warned(t, tt.text), tt.says) })
	}
}

// TestFalseConditionIsOneWarning checks that a rule that never fires is not said
// to deny every call.
func TestFalseConditionIsOneWarning(t *testing.T) {
	for _, text := range []string{`deny contains "x" if false`, `ask contains "x" if { false; input.access.action == "read" }`} {
		got := warned(t, text)
		require.Contains(t, got, "never fires: a condition of it is false")
		require.NotContains(t, got, "\n", "one warning")
	}
}

// TestContentWithoutDeletion checks that a policy that permits no deletion gets
// no warning about the content of deleted files, and that a policy that permits
// nothing gets one, because it stands beside another.
func TestContentWithoutDeletion(t *testing.T) {
	keeps := "package remit\nensure contains \"x\" if { some c in input.changes; not startswith(c.text, \"a\") }\n"
	for permits, warnings := range map[string]int{
		"": 1, `allow contains "y" if input.access.action in {"read", "write"}`: 0, `ask contains "y" if input.access.action in {"write", "delete"}`: 1,
		`hold contains "y" if input.tool.name == "a"`: 1, `label contains "y" if input.access.action == "read"`: 1,
	} {
		e, err := load(keeps + permits)
		require.NoError(t, err)
		require.Len(t, e.Warnings(), warnings, permits)
	}
}

// TestNoFalseAlarm checks that valid rules cause no warning.
func TestNoFalseAlarm(t *testing.T) {
	for name, text := range map[string]string{
		"two elements":             `deny contains "x" if { some a in input.changes; a.kind == "write"; some b in input.changes; b.kind == "delete" }`,
		"two elements of a list":   `deny contains "x" if { some a in input.principal.roles; a in {"a"}; some b in input.principal.roles; b in {"b"} }`,
		"text of a deleted file":   "ensure contains \"x\" if { some c in input.changes; not startswith(c.text, \"a\") }\nensure contains \"y\" if { some c in input.changes; c.kind == \"delete\" }",
		"text of a label":          `label contains "x" if { some c in input.changes; contains(c.text, "a") }`,
		"changes of a deny":        `deny contains "x" if { some c in input.changes; c.kind == "delete" }`,
		"no text of a deny":        `deny contains "x" if { some c in input.changes; not c.text; c.kind == "write" }`,
		"a mask of roots":          "mask contains \"file://*/**/.env\"\nmask contains \"file://workspace/a\"\nmask contains \"file://origin/a\"",
		"text without not":         `ensure contains "x" if { some c in input.changes; contains(c.text, "a") }`,
		"a false helper":           "off if false\ndeny contains \"x\" if off",
		"a switch in data":         `deny contains "x" if { y := data.on }`,
		"a condition in data":      `deny contains "x" if data.on`,
		"a helper with a value":    "level := 2 if input.call.declared\ndeny contains \"x\" if level",
		"two ways":                 "far if input.access.resource.kind == \"https\"\nfar if input.access.action == \"execute\"\ndeny contains \"x\" if { far; input.access.resource.kind == \"exec\" }",
		"a wider rule":             "deny contains \"x\" if input.access.action == \"write\"\nask contains \"y\" if input.access.action in {\"write\", \"read\"}",
		"another place":            "deny contains \"x\" if { y := input.access.resource.host }\nask contains \"y\" if input.access.action == \"connect\"",
		"values that exclude":      "level := 1 if input.access.action == \"read\"\nlevel := 2 if input.access.action == \"write\"\ndeny contains \"x\" if level == 2",
		"values behind more":       "level := 1 if input.call.declared\nlevel := 2 if input.access.action == \"write\"\ndeny contains \"x\" if level == 2",
		"a mixed list":             `deny contains "x" if { input.call.args.x in ["a", 1]; input.call.args.x == "b" }`,
		"an object of values":      `deny contains "x" if { input.access.action in {"k": "read"}; input.call.declared }`,
		"few recent calls":         `deny contains "x" if count(input.session.recent) > 5`,
		"many arguments":           `deny contains "x" if count(input.call.args) > 100`,
		"a number alone":           `deny contains "x" if input.txn.calls > 100`,
		"no list":                  `deny contains "x" if input.call.args.x != "y"`,
		"a variable of its own":    `deny contains "x" if { other := "GET"; input.call.declared }`,
		"a budget without period":  `limit contains {"budget": "payments", "max": 3}`,
		"a budget of calls":        `limit contains {"budget": "writes", "max": 3, "per": "principal"} if input.access.action in {"write", "execute"}`,
		"a budget of reads":        `limit contains {"budget": "reads", "max": 3, "per": "principal"} if input.access.action == "read"`,
		"a budget of one tool":     `limit contains {"budget": "writes", "max": 3, "per": "principal"} if { input.access.action == "write"; input.tool.name == "file_write" }`,
		"a budget of a session":    `limit contains {"budget": "writes", "max": 3} if input.access.action == "write"`,
		"a budget with a variable": `limit contains {"budget": name, "max": 3} if name := input.tool.name`,
	} {
		t.Run(name, func(t *testing.T) { require.Empty(t, warned(t, text)) })
	}
	var none *rego.Engine
	require.Empty(t, none.Warnings())
	e := engine(t, control)
	require.Empty(t, e.Warnings())
}

// TestWarningsForTools checks warnings beyond those for typical mistakes.
func TestWarningsForTools(t *testing.T) {
	pay := rego.Tool{Name: "pay", Version: "2", Args: []string{"amount", "dry"}, Missing: []string{"dry"}}
	counted := rego.Tool{
		Name: "counted", Args: []string{"amount", "dry", "way"}, Counters: []string{"euro"},
		Types: map[string]string{"amount": "integer", "dry": "boolean", "way": "string"}, Enums: map[string][]string{"way": {"card", "bank"}},
	}
	send := rego.Tool{Name: "send", Args: []string{"to", "amount"}, Types: map[string]string{"to": "string", "amount": "string"}}
	free, older := rego.Tool{Name: "free"}, rego.Tool{Name: "pay", Version: "1", Args: []string{"sum"}}
	for text, says := range map[string]string{
		`deny contains "x" if { input.tool.name == "pay"; input.call.args.amuont > 3 }`:                                    "did you mean amount?",
		`deny contains "x" if { input.tool.name == "pay"; input.call.args.amount > 3 }`:                                    "",
		`deny contains "x" if { input.tool.name == "pay"; input.call.args.sub.x }`:                                         `no argument "sub"`,
		`deny contains "x" if { input.tool.name == "pay"; input.tool.version == "3" }`:                                     `is there in version "2", not "3"`,
		`deny contains "x" if { input.tool.name == "pay"; input.tool.version == "2" }`:                                     "",
		`deny contains "x" if { input.tool.name == "pay"; input.tool.version == "1"; input.call.args.sum > 3 }`:            "",
		`deny contains "x" if { input.tool.name == "free"; input.call.args.any == "x" }`:                                   "",
		`deny contains "x" if { input.tool.name in {"pay", "other_tool"}; input.call.args.any }`:                           "",
		`allow contains "x" if { input.tool.name == "pay"; input.call.effect_class == "pure" }`:                            "",
		`deny contains "x" if { input.tool.name == "pay"; input.call.args.dry == false }`:                                  "may leave dry out",
		`allow contains "x" if { input.tool.name == "pay"; input.call.args.dry == false }`:                                 "",
		`deny contains "x" if { input.tool.name == "pya"; input.call.declared }`:                                           "did you mean pay?",
		`limit contains {"budget": "b", "max": 3, "tools": ["paay", "free"]}`:                                              `no tool is named "paay"`,
		`deny contains "x" if { input.tool.name == "send"; input.call.args.to == 5 }`:                                      `argument "to" of send is a string, and is compared with a number`,
		`deny contains "x" if { input.tool.name == "send"; input.call.args.to > "5" }`:                                     "",
		`deny contains "x" if { input.tool.name == "send"; input.call.args.to in {"a", "b"} }`:                             "",
		`deny contains "x" if { input.tool.name == "send"; input.call.args.to == null }`:                                   "",
		`deny contains "x" if { input.tool.name == "send"; input.call.args.to in data.names }`:                             "",
		`deny contains "x" if { input.tool.name in {"send", "free"}; input.call.args.to == 5 }`:                            "",
		`deny contains "x" if { data.remit.lib.happened({"tool": "pya"}) }`:                                                "did you mean pay?",
		`deny contains "x" if { data.remit.lib.before({"tool": "pay"}, {"tool": "sned"}) }`:                                "did you mean send?",
		`deny contains "x" if { data.remit.lib.count({"tool": "pya", "outcome": "done"}, "1h") > 3 }`:                      "did you mean pay?",
		`deny contains "x" if { data.remit.lib.happened({"tool": "pya*"}); data.remit.lib.happened({"outcome": "done"}) }`: "",
		`limit contains {"budget": "b", "max": 3, "sum": "eruo"} if input.tool.name == "counted"`:                          "did you mean euro?",
		`limit contains {"budget": "b", "max": 3, "sum": "euro"} if input.tool.name == "counted"`:                          "",
		`limit contains {"budget": "b", "max": 3, "sum": "euro"} if input.tool.name == "bare"`:                             "leave sum out to count calls",
		`limit contains {"budget": "b", "max": 3, "sum": "any"} if input.tool.name == "free"`:                              "",
		`deny contains "x" if { input.tool.name == "counted"; input.call.args.way == "cash" }`:                             `argument "way" of counted is never "cash"`,
		`deny contains "x" if { input.tool.name == "counted"; input.call.args.way in {"card", "bank"} }`:                   "",
		`deny contains "x" if { input.tool.name == "counted"; input.call.args.amount > "100" }`:                            "without quotes",
		`deny contains "x" if { input.tool.name == "counted"; input.call.args.amount > 100 }`:                              "",
		`deny contains "x" if { input.tool.name == "counted"; input.call.args.dry == true }`:                               "",
		`redact contains "/args/amuont" if input.tool.name == "pay"`:                                                       "did you mean amount?",
		`redact contains "/output/amuont" if input.tool.name == "pay"`:                                                     "",
		`deny contains "x" if { input.tool.name == "pay"; some k in ["a"]; input.call.args[k] }`:                           "",
		`hint contains "x" if { input.tool.name == "pay"; not input.call.args.amount; count(input.call.args) > 0 }`:        "",
	} {
		t.Run(text, func(t *testing.T) {
			got := warned(t, text, pay, older, free, send, counted, rego.Tool{Name: "bare", Counters: []string{}})
			if says == "" {
				require.Empty(t, got)
			} else {
				require.Contains(t, got, says)
			}
		})
	}
}

// TestComparisonsThatNeverHold checks that they are errors: a rule with one
// never fires.
func TestComparisonsThatNeverHold(t *testing.T) {
	of := func(condition string) string { return control + `deny contains "x" if ` + condition }
	for condition, want := range map[string]string{
		`startswith(input.access.resource.path, "./a")`:            "from the root on",
		`input.access.resource.host == "Example.com:443/a"`:        `write "example.com"`,
		`input.access.resource.scheme == "https://"`:               `write "https"`,
		`input.access.resource.root == "/home/me"`:                 "--root",
		`input.access.resource.text == "a.txt"`:                    "write it whole",
		`input.access.resource.text == "file:///workspace/a"`:      `write "file://workspace/a": the first name is the root`,
		`startswith(input.access.resource.text, "file:///etc")`:    "the first name is the root",
		`startswith(input.access.resource.text, "/etc")`:           "compare input.access.resource.path",
		`input.access.resource.statement == "DROP"`:                `write "drop"`,
		`".." in input.access.resource.segments`:                   "canonical path",
		`input.access.resource.ext == "go"`:                        `write ".go"`,
		`input.time > "yesterday"`:                                 "time.clock",
		`input.txn.calls > "5"`:                                    "without quotes",
		`input.tool.name < 5`:                                      "compare a number",
		`"5" > input.txn.calls`:                                    "without quotes",
		`"a/b" in input.access.resource.segments`:                  "compare input.access.resource.path",
		`{ some s in input.access.resource.segments; s == "a/b" }`: "compare input.access.resource.path",
		`input.tool.name in data.pairs`:                            "some row in data.pairs",
		`data.names[input.tool.name]`:                              "some row in data.names",
		`data.twin == 1`:                                           "there is",
		`input.access.resource == "x"`:                             "compare a field of it",
		"input.txn.calls ==\n\t\"5\"":                              "match error",
		`"x" == input.principal.roles`:                             "write VALUE in LIST",
	} {
		t.Run(condition, func(t *testing.T) {
			_, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": of(condition)}, Timeout: longTimeout, Data: map[string]any{
				"a": map[string]any{"twin": 1}, "b": map[string]any{"twin": 2}, "names": []any{"x"}, "pairs": []any{map[string]any{}},
			}})
			require.ErrorContains(t, err, want)
		})
	}
	for _, fine := range []string{
		`input.access.resource.host == "[::1]"`, `input.access.resource.ext == ""`, `input.access.resource.root == "w"`, `input.access.resource.scheme == "https"`,
		`input.access.resource.text == "file://a/b"`, `input.access.resource.text == "exec:///bin/sh"`, `startswith(input.access.resource.text, "file://")`, `input.access.resource.statement == "drop"`, `startswith(input.access.resource.path, "a")`, `input.txn.calls > input.call.args.n`,
		`input.call.args.n > 5`, `"a" in input.principal.roles`, `"a" in input.call.args.list`, `startswith(input.call.args.x, "/")`, `regex.match("^a", input.tool.name)`,
		`input.tool.name in data.names`, `data.names[0] == input.tool.name`, `data.none[input.tool.name]`, `input.tool.name in data.none`, `input.tool.name in data.on`,
		`data.names[input.call.args.n] == "x"`, `input.tool.name in helper`,
	} {
		t.Run(fine, func(t *testing.T) {
			_, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": of(fine) + "\nhelper := {\"a\"}\n"}, Timeout: longTimeout, Data: map[string]any{
				"names": []any{"x"}, "none": []any{}, "on": true,
			}})
			require.NoError(t, err)
		})
	}
	_, err := load("package remit\n\nalow if input.call.declared\n")
	require.ErrorContains(t, err, "p.rego:3:1: no set has the name alow, and the policy defines no other rule (fix: did you mean allow?)")
}

// TestInputOfTests checks that a test must not set a field that no input has.
func TestInputOfTests(t *testing.T) {
	of := func(test string) error {
		e, err := rego.New(rego.Options{Timeout: longTimeout, Modules: map[string]string{"p.rego": control, "p_test.rego": "package remit_test\n\n" + test}})
		require.NoError(t, err)
		_, err = e.Test(t.Context())
		return err
	}
	require.ErrorContains(t, of(`test_a if count(data.remit.allow) == 1 with input as {"access": {"resorce": {}}}`), "did you mean resource?")
	require.ErrorContains(t, of(`test_a if count(data.remit.allow) == 1 with input.access.resorce as {}`), "did you mean resource?")
	require.NoError(t, of(`test_a if count(data.remit.allow) == 1 with input as {"access": {"resource": {}}, "call": {"args": {"any": {"x": 1}}}}`))
	require.NoError(t, of(`test_a if count(data.remit.allow) == 1 with input.call.args.any as {"x": 1}`))
}
