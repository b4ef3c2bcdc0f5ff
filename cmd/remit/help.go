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
	for verb, lines := range helpExamples() {
		if c, _, err := root.Find(strings.Fields(verb)); err == nil {
			c.Example = "  " + strings.ReplaceAll(lines, "\n", "\n  ")
		}
	}
}

// helpExamples returns the examples of verbs, in the words of a shell.
func helpExamples() map[string]string {
	return map[string]string{
		"run": "remit run script.jsonl\n" +
			"remit run --on-ask wait --policy policy.rego script.jsonl\n" +
			`echo '{"tool":"file_list","args":{"path":"."}}' | remit run -`,
		"exec": "remit exec -- make test",
		"log": "remit log -n 5\n" +
			"remit log --since 2h --tool shell\n" +
			"remit log --path src/main.go --outcome denied\n" +
			"remit log --pending",
		"show": "remit show c_0h3k5",
		"diff": "remit diff\n" +
			"remit diff t_0h3k5 | git apply -R",
		"revert": "remit revert --preview\n" +
			"remit undo\n" +
			"remit revert --file src/main.go\n" +
			"remit revert c_0h3k5",
		"redo":           "remit redo\nremit redo t_0h3k5",
		"approve":        "remit approve c_0h3k5\nremit approve c_0h3k5 --remember session",
		"deny":           `remit deny c_0h3k5 --why "use the other branch"`,
		"pending":        "remit pending\nremit pending c_0h3k5",
		"resume":         "remit resume t_0h3k5 --at-end commit",
		"connect":        "remit connect claude-code",
		"tools":          "remit tools file_write\nremit tools --why http_fetch",
		"policy check":   "remit policy check policy.rego",
		"policy fmt":     "remit policy fmt -w policy.rego\nremit policy fmt --fail -l policies",
		"policy eval":    `remit policy eval --line '{"tool":"file_read","args":{"path":"a"}}' policy.rego` + "\nremit policy eval --call c_0h3k5 policy.rego",
		"policy explain": "remit policy explain c_0h3k5",
	}
}
