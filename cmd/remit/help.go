package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// helpGroup is a group of verbs in the help. Every verb is in one group.
type helpGroup struct {
	id, title string
	verbs     []string
}

// helpExample has the examples of a verb, one on each line.
type helpExample struct{ verb, Example string }

func helpGroups() []helpGroup {
	return []helpGroup{
		{"agents", "Let agents act:", []string{"run", "exec", "connect", "disconnect", "serve", "gateway", "init", "token", "hook", "daemon"}},
		{"see", "See what happened, and take it back:", []string{"log", "show", "diff", "revert", "redo", "watch", "console", "feedback"}},
		{"answer", "Answer what waits:", []string{"pending", "approve", "deny", "approval", "resume", "resolve", "grants"}},
		{"rules", "Tools, rules and secrets:", []string{"tools", "policy", "secret"}},
		{"journal", "Keep the journal:", []string{"doctor", "recover", "fsck", "prune", "erase", "nodes"}},
	}
}

// groupHelp puts the verbs into groups of the help.
func groupHelp(root *cobra.Command) {
	for _, g := range helpGroups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range root.Commands() {
			if slices.Contains(g.verbs, c.Name()) {
				c.GroupID = g.id
			}
		}
	}
	for _, of := range helpExamples() {
		if c, _, err := root.Find(strings.Fields(of.verb)); err == nil {
			c.Example = "  " + strings.ReplaceAll(of.Example, "\n", "\n  ")
		}
	}
}

// helpExamples returns the examples of verbs, in the words of a shell.
func helpExamples() []helpExample {
	return []helpExample{
		{verb: "run", Example: "remit run script.jsonl\n" +
			"remit run --on-ask wait --policy policy.rego script.jsonl\n" +
			`echo '{"tool":"file_list","args":{"path":"."}}' | remit run -`},
		{verb: "exec", Example: "remit exec -- make test"},
		{verb: "log", Example: "remit log -n 5\n" +
			"remit log --since 2h --tool shell\n" +
			"remit log --path src/main.go --outcome denied\n" +
			"remit log --pending"},
		{verb: "show", Example: "remit show c_0h3k5"},
		{verb: "diff", Example: "remit diff\n" +
			"remit diff t_0h3k5 | git apply -R"},
		{verb: "revert", Example: "remit revert --preview\n" +
			"remit undo\n" +
			"remit revert --file src/main.go\n" +
			"remit revert c_0h3k5"},
		{verb: "redo", Example: "remit redo\nremit redo t_0h3k5"},
		{verb: "approve", Example: "remit approve c_0h3k5\nremit approve c_0h3k5 --remember session"},
		{verb: "deny", Example: `remit deny c_0h3k5 --why "use the other branch"`},
		{verb: "pending", Example: "remit pending\nremit pending c_0h3k5"},
		{verb: "resume", Example: "remit resume t_0h3k5 --at-end commit"},
		{verb: "connect", Example: "remit connect claude-code"},
		{verb: "tools", Example: "remit tools file_write\nremit tools --why http_fetch"},
		{verb: "policy check", Example: "remit policy check policy.rego"},
		{verb: "policy fmt", Example: "remit policy fmt -w policy.rego\nremit policy fmt --fail -l policies"},
		{verb: "policy eval", Example: `remit policy eval --line '{"tool":"file_read","args":{"path":"a"}}' policy.rego` + "\nremit policy eval --call c_0h3k5 policy.rego"},
		{verb: "policy explain", Example: "remit policy explain c_0h3k5"},
	}
}
