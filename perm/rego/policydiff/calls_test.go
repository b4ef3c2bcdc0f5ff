package policydiff_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/remit-dev/remit/perm"
)

// call is one request in the terms of this test. The test knows nothing of how
// policydiff builds requests: it has its own tools, files and hosts.
type call struct {
	tool, class, confinement, action, resource, purpose string
	tags, labels, roles, argv                           []string
	args                                                map[string]any
	run, lastHour                                       map[string]int
	txnCalls                                            int
}

func words() map[string][]string {
	return map[string][]string{
		"tool":        {"read_page", "file_write", "file_edit", "mail_send", "mail_read", "pay_invoice", "db_query", "shell_run", "deploy", "ticket_close"},
		"dir":         {"src", "docs", "src/app", "config", "config/prod", "data/raw", "secrets", "build"},
		"file":        {"main.go", "README.md", ".env", "site.ini", "key.pem", "users.csv", "Makefile"},
		"ext":         {".go", ".md", ".ini", ".pem", ".csv", ".env"},
		"host":        {"api.github.com", "hooks.slack.com", "pay.example.org", "internal.corp", "wiki.internal.corp", "localhost"},
		"suffix":      {".corp", ".internal.corp", ".org", ".com", ".slack.com"},
		"program":     {"git", "npm", "rm", "curl", "make", "psql"},
		"flag":        {"--force", "-rf", "push", "install", "--global", "status"},
		"label":       {"untrusted", "private", "customer", "secret"},
		"tag":         {"network", "money", "destructive", "read"},
		"role":        {"maintainer", "intern", "auditor"},
		"class":       {"pure", "reversible", "compensable", "deferrable", "pivot"},
		"action":      {"read", "list", "write", "delete", "execute", "connect", "call"},
		"mode":        {"fast", "full", "dry-run", "force"},
		"address":     {"ann@corp.example", "bob@corp.example", "eve@other.example", "list@news.example"},
		"confinement": {"sandbox", "handles", "trusted"},
	}
}

func (w *sampler) word(kind string) string {
	return w.vocabulary[kind][w.IntN(len(w.vocabulary[kind]))]
}

// some returns n different words.
func (w *sampler) some(kind string, n int) []string {
	all := w.vocabulary[kind]
	out := make([]string, 0, n)
	for _, i := range w.Perm(len(all))[:min(n, len(all))] {
		out = append(out, all[i])
	}
	return out
}

type sampler struct {
	*rand.Rand
	vocabulary map[string][]string
}

func (w *sampler) call() *call {
	c := &call{
		tool: w.word("tool"), class: w.word("class"), confinement: w.word("confinement"), purpose: "run",
		args: map[string]any{}, run: map[string]int{}, lastHour: map[string]int{}, txnCalls: w.IntN(8),
	}
	switch w.IntN(4) {
	case 0, 1:
		c.file(w.word("dir") + "/" + w.word("file"))
		c.action = []string{"read", "list", "write", "delete"}[w.IntN(4)]
	case 2:
		c.host(w.word("host"))
	default:
		c.program(w.word("program"))
		c.argv = append(c.argv, w.some("flag", w.IntN(3))...)
	}
	c.labels, c.tags, c.roles = w.some("label", w.IntN(2)), w.some("tag", w.IntN(2)), w.some("role", w.IntN(2))
	if w.IntN(2) == 0 {
		c.args["amount"] = w.IntN(120)
	}
	if w.IntN(2) == 0 {
		c.args["mode"] = w.word("mode")
	}
	if w.IntN(2) == 0 {
		c.args["to"] = w.word("address")
	}
	return c
}

func (c *call) file(path string) {
	c.resource, c.argv = "file://workspace/"+path, nil
	if c.action == "" || strings.Contains("execute connect call", c.action) {
		c.action = "write"
	}
}

func (c *call) host(name string) { c.resource, c.action, c.argv = "https://"+name, "connect", nil }

func (c *call) program(name string) {
	c.resource, c.action, c.argv = "exec://"+name, "execute", []string{name}
}

func (c *call) path() string {
	path, is := strings.CutPrefix(c.resource, "file://workspace/")
	if !is {
		return ""
	}
	return path
}

func (c *call) request() perm.Request {
	r, err := perm.ParseResource(c.resource)
	if err != nil {
		panic(fmt.Sprint(c.resource, err))
	}
	args, err := json.Marshal(c.args)
	if err != nil {
		panic(err)
	}
	tools := map[string]perm.ToolCounts{}
	for name, n := range c.run {
		tools[name] = perm.ToolCounts{Counts: perm.Counts{Run: n}}
	}
	for name, n := range c.lastHour {
		t := tools[name]
		t.Windows = map[string]perm.Counts{"1h": {Run: n}}
		tools[name] = t
	}
	facts := r.Facts()
	facts.Argv = c.argv
	return perm.Request{
		Purpose: perm.Purpose(c.purpose), Time: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC),
		Principal: perm.Principal{ID: "p", Kind: "agent", Roles: c.roles},
		Session:   perm.SessionFacts{ID: "s", Labels: c.labels, Tools: perm.NewCountsByTool(tools)},
		Txn:       perm.TxnFacts{ID: "t", Calls: c.txnCalls},
		Tool: perm.ToolFacts{
			Name: c.tool, Version: "1", Tags: c.tags, Provenance: "builtin", CanVerify: true, CanRevert: true, Confinement: c.confinement, Coverage: "confined",
			Destination: "none", Grade: "ungraded", Risk: perm.RiskLow,
		},
		Call:   perm.CallFacts{ID: "c", Args: args, EffectClass: c.class, Declared: true, Batch: perm.BatchFacts{Count: 1}},
		Access: perm.AccessFacts{Action: perm.Action(c.action), Resource: facts},
	}
}
