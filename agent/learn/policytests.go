package learn

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/remit-dev/remit/perm"
)

// testInput is the part of a request that the rules read.
type testInput struct {
	Purpose perm.Purpose `json:"purpose"`
	Tool    struct {
		Name        string `json:"name"`
		Confinement string `json:"confinement"`
	} `json:"tool"`
	Call struct {
		Args        json.RawMessage   `json:"args"`
		EffectClass string            `json:"effect_class"`
		Script      *perm.ScriptFacts `json:"script,omitempty"`
	} `json:"call"`
	Access perm.AccessFacts `json:"access"`
}

// testOf returns the input of a test from a request: the arguments that the
// rules read, and no content.
func testOf(r perm.Request) string {
	var in testInput
	in.Purpose, in.Access = r.Purpose, r.Access
	in.Tool.Name, in.Tool.Confinement, in.Call.EffectClass = r.Tool.Name, r.Tool.Confinement, r.Call.EffectClass
	in.Call.Args, in.Call.Script = json.RawMessage("{}"), r.Call.Script
	var args map[string]any
	if json.Unmarshal(r.Call.Args, &args) == nil {
		short := map[string]any{}
		for name, v := range args {
			if text, ok := v.(string); ok && (shortName.MatchString(text) || name == "command" || name == "script") {
				short[name] = text
			}
		}
		in.Call.Args, _ = json.Marshal(short) // texts always marshal
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("\t", "\t")
	_ = e.Encode(in) // it has only texts and numbers
	return strings.TrimSpace(b.String())
}

// tests returns the module with the tests of the policy.
func (p *Policy) tests() string {
	var b strings.Builder
	b.WriteString("# Each rule of the learned policy has a test from a call that it comes from.\npackage remit_test\n\nimport data.remit\n")
	for i, r := range p.Rules {
		call := r.Calls[0]
		holds := quote(r.Reason) + " in remit.learned"
		if r.head != "" {
			holds = fmt.Sprintf("remit.%s with input as doc", strings.Replace(r.head, "(command)", "(doc.call.script.commands[0])", 1))
			fmt.Fprintf(&b, "\n# %s, call %s.\ntest_rule_%d if {\n\tdoc := %s\n\t%s\n}\n", comment(r.Reason), comment(call), i+1, testOf(r.test), holds)
			continue
		}
		fmt.Fprintf(&b, "\n# %s, call %s.\ntest_rule_%d if {\n\tdoc := %s\n\t%s with input as doc\n\tcount(remit.allow) > 0 with input as doc\n\tcount(remit.ask) == 0 with input as doc\n}\n",
			comment(r.Reason), comment(call), i+1, testOf(r.test), holds)
	}
	b.WriteString("\ntest_other_calls_ask if {\n\tdoc := {\"purpose\": \"run\", \"tool\": {\"name\": \"no_such_tool\"}, \"access\": {\"action\": \"call\", \"resource\": {\"kind\": \"tool\"}}}\n" +
		"\tcount(remit.ask) == 1 with input as doc\n}\n\n" +
		"test_secrets_are_masked if \"file://*/**/.env/**\" in remit.mask\n")
	b.WriteString(p.helperTests())
	return b.String()
}

// helperTests reach what no call reaches.
func (p *Policy) helperTests() string {
	var b strings.Builder
	if p.uses("usual_path") {
		b.WriteString("\ntest_wide_rules_skip_what_is_hidden if not remit.usual_path with input as {\"access\": {\"action\": \"read\", \"resource\": {\"path\": \".env\", \"name\": \".env\"}}}\n\n" +
			"test_wide_rules_cover_reads if remit.usual_path with input as {\"access\": {\"action\": \"read\", \"resource\": {\"path\": \"a/Makefile\", \"name\": \"Makefile\"}}}\n\n" +
			"test_wide_rules_cover_changes if remit.usual_path with input as {\"access\": {\"action\": \"write\", \"resource\": {\"path\": \"a/b.txt\", \"name\": \"b.txt\"}}}\n\n" +
			"test_starters_ask if not remit.usual_path with input as {\"access\": {\"action\": \"write\", \"resource\": {\"path\": \"Makefile\", \"name\": \"Makefile\"}}}\n")
	}
	if p.uses("in_folder(") {
		b.WriteString("\ntest_below_a_folder if remit.in_folder({\"a\"}) with input as {\"access\": {\"resource\": {\"path\": \"a/b\"}}}\n\n" +
			"test_at_the_top if remit.in_folder({\"\"}) with input as {\"access\": {\"resource\": {\"path\": \"b\"}}}\n")
	}
	if p.uses("known_script") {
		constants, folders, sets := p.known()
		b.WriteString("\ntest_paths_outside_are_not_plain if not remit.plain(\"/etc/passwd\")\n\ntest_unknown_words_are_not_plain if not remit.plain(null)\n")
		if len(constants) > 0 {
			fmt.Fprintf(&b, "\ntest_constants_are_plain if remit.plain(%s)\n", quote(constants[0]))
		}
		if len(folders) > 0 {
			fmt.Fprintf(&b, "\ntest_folders_are_plain if {\n\tremit.plain(%s)\n\tnot remit.plain(%s)\n}\n", quote(folders[0]+"a"), quote(folders[0]+"../a"))
		}
		known := []string{"a"}
		for _, s := range sets {
			if len(assignments(s)) == 1 {
				known = append(known, s)
				break
			}
		}
		fmt.Fprintf(&b, "\ntest_redirects_and_assignments if remit.known_script with input as {\"call\": {\"args\": {\"command\": %s},\n\t\"script\": {\"commands\": [{}], \"redirects\": [{\"path\": \"out.txt\"}]}}}\n",
			quote(strings.Join(known, " ")))
	}
	if p.uses("textual(") || p.uses("printed(") {
		b.WriteString("\ntest_texts if remit.textual(\"two words\")\n")
	}
	if p.uses("printed(") {
		b.WriteString("\ntest_printed if {\n\tremit.printed(null)\n\tremit.printed(\"a\")\n}\n")
	}
	if p.uses("option_in(") {
		b.WriteString("\ntest_options if {\n\tremit.option_in(\"-a\", {\"-a\"})\n\tremit.option_in(\"a\", {\"-a\"})\n\tnot remit.option_in(\"-b\", {\"-a\"})\n}\n")
	}
	return b.String()
}
