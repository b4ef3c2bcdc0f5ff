package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cedar-policy/cedar-go"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// decisions compares Rego with cedar-go: the same rules, one for each tool, of
// which one allows the request. Both get a new input for each call, and both
// report the rule that decided.
func decisions(c clock) ([]promiseRow, error) {
	var list []subject
	var broken error
	add := func(name string, n int, op func(int) error, err error) {
		list, broken = append(list, subject{name: fmt.Sprintf("%s/%d", name, n), op: op, cpu: true}), errors.Join(broken, err)
	}
	for _, n := range []int{10, 100, 1000} {
		fresh, err := regoOp(n, -1)
		add("fresh", n, fresh, err)
		memoised, err := regoOp(n, 0)
		add("memoised", n, memoised, err)
		peer, err := cedarOp(cedarRules(n), "read")
		add("cedar-go", n, peer, err)
		best, err := cedarOp(cedarBest(n), "file_read")
		add("cedar-go at its best", n, best, err)
	}
	if broken != nil {
		return nil, broken
	}
	t, err := interleave(c, list...)
	if err != nil {
		return nil, err
	}
	const s = "decide"
	return []promiseRow{
		most(s, "fresh decision to cedar-go, 100 rules", t, "fresh/100", "cedar-go/100", 0.7),
		most(s, "fresh decision to cedar-go, 1000 rules", t, "fresh/1000", "cedar-go/1000", 0.1),
		most(s, "the same where cedar-go has least to do, 100 rules", t, "fresh/100", "cedar-go at its best/100", 0.6),
		most(s, "the same where cedar-go has least to do, 1000 rules", t, "fresh/1000", "cedar-go at its best/1000", 0.2),
		most(s, "fresh decision, 1000 rules to 10", t, "fresh/1000", "fresh/10", 1.1),
		most(s, "memoised decision to cedar-go at its best, 100 rules", t, "memoised/100", "cedar-go at its best/100", 0.08),
	}, nil
}

const reading = `package remit

allow contains "reads stay in the workspace" if {
	input.tool.name == "file_read"
	input.access.action == "read"
	input.access.resource.root == "workspace"
	"editor" in input.principal.roles
}
`

// regoRules returns n rules, of which one concerns the requested tool.
func regoRules(n int) string {
	var b strings.Builder
	b.WriteString(reading)
	for i := range n - 1 {
		set := []string{"deny", "allow"}[i%2]
		fmt.Fprintf(&b, `
%s contains "rule %d" if {
	input.tool.name == "tool_%d"
	input.access.action == "read"
	input.access.resource.root == "workspace"
	"editor" in input.principal.roles
}
`, set, i, i)
	}
	return b.String()
}

// cedarRules returns the same rules as a Cedar policy: principal, action and
// resource in the scope, the tool in the condition.
func cedarRules(n int) string {
	return cedarText(n, `%s (principal in Role::"editor", action == Action::"read", resource in Root::"workspace")
when { context.tool == "%s" };
`)
}

// cedarBest returns the form with the least work for Cedar: the tool is the
// action, and the first comparison excludes most rules.
func cedarBest(n int) string {
	return cedarText(n, `%s (principal, action == Action::"%s", resource)
when { principal in Role::"editor" && context.access == "read" && resource in Root::"workspace" };
`)
}

func cedarText(n int, rule string) string {
	var b strings.Builder
	fmt.Fprintf(&b, rule, "permit", "file_read")
	for i := range n - 1 {
		fmt.Fprintf(&b, rule, []string{"forbid", "permit"}[i%2], fmt.Sprintf("tool_%d", i))
	}
	return b.String()
}

var errAnswer = errors.New("the answer is not the one that the rules give")

func regoOp(n, memo int) (func(int) error, error) {
	e, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": regoRules(n)}, CacheSize: memo, Timeout: time.Minute})
	if err != nil {
		return nil, err
	}
	turn := 0
	return func(int) error {
		turn++
		d, err := e.Decide(context.Background(), regoRequest(turn))
		if err != nil {
			return err
		}
		if r := d.Reasons(); d.Effect() != perm.Allow || len(r) != 1 || r[0].At != "p.rego:3" {
			return fmt.Errorf("%w: %v", errAnswer, r)
		}
		return nil
	}, nil
}

// callData is the part of a request that differs from call to call, and that no rule
// reads. Its texts are prepared, so formatting is not measured.
type callData struct {
	id, path, text, part string
	args                 json.RawMessage
}

var several = func() (list [64]callData) {
	for i := range list {
		part := fmt.Sprint("part", i)
		path := "src/" + part + "/main.go"
		list[i] = callData{
			id: fmt.Sprint("c_", i), path: path, text: "file://workspace/" + path, part: part,
			args: json.RawMessage(`{"limit":100,"n":7,"note":"n","offset":0,"path":"` + path + `","raw":false,"root":"workspace"}`),
		}
	}
	return list
}()

// regoRequest returns an input of the usual size: two roles, seven arguments, a
// path.
func regoRequest(turn int) perm.Request {
	c := &several[turn%len(several)]
	return perm.Request{
		Principal: perm.Principal{ID: "ada", Kind: "agent", Roles: []string{"editor", "coder"}},
		Session:   perm.SessionFacts{ID: "s_1"},
		Txn:       perm.TxnFacts{ID: "t_1", Calls: turn},
		Tool:      perm.ToolFacts{Name: "file_read", Version: "1.0.0", Tags: []string{"files"}, Digest: "sha256:00", Confinement: "handles", Destination: "none"},
		Call:      perm.CallFacts{ID: c.id, EffectClass: "pure", Declared: true, Batch: perm.BatchFacts{Count: 1}, Args: c.args},
		Access: perm.AccessFacts{Action: perm.Read, Resource: perm.ResourceFacts{
			Kind: "file", Text: c.text, Root: "workspace", Path: c.path,
			Segments: []string{"src", c.part, "main.go"}, Name: "main.go", Ext: ".go",
		}},
		Purpose: perm.PurposeRun,
		Time:    time.Unix(1700000000, 0).UTC(),
	}
}

func cedarOp(text, action string) (func(int) error, error) {
	set, err := cedar.NewPolicySetFromBytes("p.cedar", []byte(text))
	if err != nil {
		return nil, err
	}
	turn := 0
	return func(int) error {
		turn++
		entities, request := cedarRequest(turn, action)
		ok, why := cedar.Authorize(set, entities, request)
		if ok != cedar.Allow || len(why.Reasons) != 1 || why.Reasons[0].Position.Line != 1 {
			return fmt.Errorf("%w: %v", errAnswer, why)
		}
		return nil
	}, nil
}

func cedarRequest(turn int, action string) (cedar.EntityMap, cedar.Request) {
	c := &several[turn%len(several)]
	path := c.path
	role := func(name cedar.String) cedar.EntityUID { return cedar.NewEntityUID("Role", name) }
	who, file := cedar.NewEntityUID("Agent", "ada"), cedar.NewEntityUID("File", cedar.String(c.text))
	entities := cedar.EntityMap{
		who: cedar.Entity{UID: who, Parents: cedar.NewEntityUIDSet(role("editor"), role("coder"))},
		file: cedar.Entity{
			UID: file, Parents: cedar.NewEntityUIDSet(cedar.NewEntityUID("Root", "workspace")),
			Attributes: cedar.NewRecord(cedar.RecordMap{
				"path": cedar.String(path), "name": cedar.String("main.go"), "ext": cedar.String(".go"),
			}),
		},
	}
	args := cedar.NewRecord(cedar.RecordMap{
		"path": cedar.String(path), "root": cedar.String("workspace"), "offset": cedar.Long(0), "limit": cedar.Long(100),
		"raw": cedar.False, "note": cedar.String("n"), "n": cedar.Long(7),
	})
	return entities, cedar.Request{
		Principal: who, Action: cedar.NewEntityUID("Action", cedar.String(action)), Resource: file,
		Context: cedar.NewRecord(cedar.RecordMap{"tool": cedar.String("file_read"), "access": cedar.String("read"), "args": args}),
	}
}
