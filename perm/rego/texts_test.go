package rego_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm/rego"
)

// TestTexts checks texts that a field or an argument of the library never has,
// beyond those of typical mistakes (cmd/remit TestTypicalMistakes).
func TestTexts(t *testing.T) {
	const lib = "import data.remit.lib\n"
	for text, says := range map[string]string{
		`deny contains "x" if lib.in_root("/home/me/shop")`:                                  "write the name that --root gives the folder",
		`deny contains "x" if lib.below("./shop", "docs")`:                                   "write the name that --root gives the folder",
		`deny contains "x" if lib.below("workspace", "docs/**")`:                             `write "docs"`,
		`deny contains "x" if lib.below("workspace", "")`:                                    "write lib.in_root(ROOT)",
		`deny contains "x" if lib.has_segment({"docs/customers"})`:                           `write lib.below(ROOT, "docs/customers")`,
		`deny contains "x" if lib.has_segment({"Docs."})`:                                    `write "docs"`,
		`deny contains "x" if lib.has_ext({"GO"})`:                                           `write ".go"`,
		`deny contains "x" if lib.https_to({"https://example.com/x"})`:                       `write "example.com"`,
		`deny contains "x" if lib.https_to({"*.example.com"})`:                               `write "example.com", which covers the names below it`,
		`deny contains "x" if lib.ran_within("a", "1d") > 3`:                                 `write "1m" or "1h" or "24h"`,
		`deny contains "x" if lib.on("UTC", {"weekend"})`:                                    `write "Sunday", "Monday"`,
		`deny contains "x" if lib.on("UTC", {"sun"})`:                                        `write "Sunday"`,
		`deny contains "x" if lib.hours(9, 17)`:                                              "(fix: write lib.hours(zone, from, to))",
		`redact contains "/input/token"`:                                                     `(fix: write "/args/token")`,
		`redact contains "token"`:                                                            `(fix: write "/args/token")`,
		`redact contains "args.token"`:                                                       `(fix: write "/args/token")`,
		`redact contains "/args/a~b"`:                                                        "(fix: write ~0 for ~",
		`mask contains "https://a.example/x"`:                                                "(fix: write a pattern such as",
		`deny contains "x" if { name := upper(input.tool.name); startswith(name, "file") }`:  `write "FILE"`,
		`deny contains "x" if { l := "x"; l in input.tool.name }`:                            "contains(input.tool.name",
		`deny contains "x" if len(input.tool.tags) > 3`:                                      "write count",
		`deny contains "x" if input.tool.tags[-1] == "x"`:                                    "counts from 0",
		`deny contains "x" if input.access.method == nil`:                                    "write not FIELD",
		`deny contains "x" if input.access.resource == "file://workspace/a"`:                 "input.access.resource.text",
		`deny contains "x" if contains(input.tool.tags, "x")`:                                "write VALUE in LIST",
		`deny contains "x" if time.clock(input.time)[0] > 3`:                                 "time.parse_rfc3339_ns(input.time)",
		`deny contains "x" if { input.call.declared && input.tool.approval }`:                "each condition on a line of its own",
		`deny contains "x" if !input.call.declared`:                                          "write not and the condition",
		"allow contains \"x\" if { input.call.declared } else { input.tool.approval }":       "a second rule instead of else",
		`deny contains "x" if input.call.declared or input.tool.approval`:                    "write a rule for each case",
		"deny contains \"x\" if input.call.declared and input.tool.approval":                 "each condition on a line of its own",
		"deny contains \"x\" if { input.call.declared; input.access.action = {\"write\"} }":  "write in instead of ==",
		"deny contains \"x\" if { input.call.declared; input.access.action <= \"execute\" }": "has no rank",
	} {
		t.Run(text, func(t *testing.T) {
			require.NotContains(t, says, "\n")
			err := refused(t, "package remit\n"+lib+text)
			require.Contains(t, err.Error(), says)
		})
	}
	own := "package remit.lib\nbelow(_, _) := true"
	_, err := rego.New(rego.Options{Timeout: longTimeout, Modules: map[string]string{
		"p.rego": "package remit\n" + lib + `deny contains "x" if lib.below("workspace", "/docs")`, "lib.rego": own,
	}})
	require.NoError(t, err, "a library of the policy's own has its own arguments")
}

// refused returns the error of a policy that does not load.
func refused(t *testing.T, text string) error {
	t.Helper()
	_, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": text}, Timeout: longTimeout})
	require.Error(t, err)
	return err
}

// TestTextWarnings checks warnings about texts and their order.
func TestTextWarnings(t *testing.T) {
	for text, says := range map[string]string{
		`deny contains "x" if endswith(input.access.resource.name, "*.pem")`:                          "* is not a pattern here",
		`deny contains "x" if input.access.resource.name in {"*.pem", "a"}`:                           "* is not a pattern here",
		`deny contains "x" if endswith("a.pem", input.access.resource.ext)`:                           `write endswith(input.access.resource.ext, "a.pem")`,
		`deny contains "x" if input.access.action != ["read", "list"][_]`:                             `write not input.access.action in ["read", "list"]`,
		`deny contains "x" if input.access.action != ["read"][_]`:                                     "",
		`deny contains "x" if contains(input.call.args.pattern, "*")`:                                 "",
		`deny contains "x" if startswith(input.call.args.a, input.call.args.b)`:                       "",
		`deny contains "x" if endswith(input.access.resource.host, "example.com")`:                    "",
		`allow contains "x" if endswith(input.access.resource.host, ".example.com")`:                  "",
		`deny contains "x" if glob.match("*.internal", [], input.access.resource.host)`:               "",
		`deny contains "x" if glob.match("/secrets/**", ["/"], input.access.resource.path)`:           `no input.access.resource.path matches "/secrets/**"`,
		`deny contains "x" if glob.match("./src/*", ["/"], input.access.resource.path)`:               "what is before the first name",
		`deny contains "x" if glob.match("secrets/**", ["/"], input.access.resource.path)`:            "",
		`deny contains "x" if glob.match("{/a,b}/**", ["/"], input.access.resource.path)`:             "",
		`deny contains "x" if glob.match("**/*.pem", ["/"], input.access.resource.name)`:              "leave out all up to the last /",
		`deny contains "x" if glob.match("*.pem", ["/"], input.access.resource.name)`:                 "",
		"deny contains \"x\" if regex.match(`^/secrets/`, input.access.resource.path)":                "no input.access.resource.path matches",
		"deny contains \"x\" if regex.match(`(^|/)secrets/`, input.access.resource.path)":             "",
		"deny contains \"x\" if regex.match(`^/a|^b`, input.access.resource.path)":                    "",
		`deny contains "x" if glob.match("/etc/**", ["/"], input.access.resource.text)`:               "no input.access.resource.text matches",
		`deny contains "x" if glob.match("/etc/**", ["/"], input.call.args.path)`:                     "",
		`deny contains "x" if endswith(input.access.resource.path, "/")`:                              `never ends with "/"`,
		`deny contains "x" if endswith(input.access.resource.path, "/a")`:                             "",
		`deny contains "x" if endswith(input.access.resource.text, "/")`:                              "",
		`deny contains "x" if input.session.tools.pya.run > 3`:                                        "did you mean pay?",
		`deny contains "x" if object.get(input.session.tools, ["pya", "run"], 0) > 3`:                 "did you mean pay?",
		`deny contains "x" if { some c in input.session.recent; c.tool == "pya" }`:                    "did you mean pay?",
		`deny contains "x" if data.remit.lib.ran("pya") > 3`:                                          "did you mean pay?",
		`deny contains "x" if data.remit.lib.recently("pay")`:                                         "",
		`deny contains "x" if { input.tool.name == "pay"; data.remit.lib.arg("amuont", 0) > 3 }`:      "did you mean amount?",
		`deny contains "x" if { input.tool.name == "pay"; data.remit.lib.arg("amount", 0) > 3 }`:      "",
		`deny contains "x" if { some name, counts in input.session.tools; counts.run > 3; name != 1}`: "",
	} {
		t.Run(text, func(t *testing.T) {
			got := warned(t, text, rego.Tool{Name: "pay", Version: "2", Args: []string{"amount"}})
			if says == "" {
				require.Empty(t, got)
			} else {
				require.Contains(t, got, says)
			}
		})
	}
}

// TestTestsOfSets checks tests whose condition is a set, which always holds.
func TestTestsOfSets(t *testing.T) {
	tests := func(pkg, imports, body string) string {
		t.Helper()
		e, err := rego.New(rego.Options{Timeout: longTimeout, Modules: map[string]string{
			"p.rego": control, "p_test.rego": "package " + pkg + "\n" + imports + "\ntest_x if { " + body + " }",
		}})
		require.NoError(t, err)
		text := ""
		for _, w := range e.Warnings() {
			text += w.String() + "\n"
		}
		return text
	}
	require.Contains(t, tests("remit", "", "deny"), "this test always passes (fix: write count(deny) > 0)")
	require.Contains(t, tests("remit_test", "import data.remit", "not remit.deny"), "not remit.deny never holds (fix: write count(remit.deny) == 0)")
	require.Contains(t, tests("remit_test", "import data.remit as policy", "policy.allow"), "this test always passes")
	require.Contains(t, tests("remit_test", "", "data.remit.allow"), "this test always passes")
	require.Empty(t, tests("remit_test", "import data.remit", `remit.allow["x"]`))
	require.Empty(t, tests("remit_test", "import data.remit", `some reason in remit.allow; deny := true; deny; reason`))
	require.Empty(t, tests("remit_test", "import data.remit", "count(remit.deny) == 0"))
}
