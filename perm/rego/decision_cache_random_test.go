package rego_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// helpers are the rules that the conditions below refer to.
const helpers = `package remit

import input.access as access
import data.table

in_root(r) if r.root == "workspace"

first(args) := object.get(args, "n", 0)

other(_) := 7

roles := {role | some role in input.principal.roles}

named if input.tool.name == "a"

sees(x) if input.call.args.n == x

by_tool["a"] if input.access.dynamic

by_tool["b"] if access.action == "write"

level := 1 if input.tool.grade == "compensable"

else := 2 if input.tool.version == "a"

else := 3

default quiet := false

quiet if input.session.id == "a"

`

// conditions returns conditions that read the input in every way that Rego has.
func conditions() []string {
	return []string{
		`input.access.action == "read"`, `access.resource.root == "workspace"`, `input["tool"].name == "a"`,
		`input.call.args.n == 1`, `input.call.prompt.text == "a"`, `not input.call.prompt`, `input.call.args.n > 1`, `input.call.args.deep.x == 1`, `input.call.args == {}`, `not input.call.args.n`,
		`input.call.args[input.tool.name] == 1`, `input.call.args.list[0] == 1`, `input.call.args.list[_] == 2`, `input.call.args.n == null`,
		`object.get(input.call.args, "n", 5) == 5`, `object.get(input, ["call", "args", "n"], 0) == 1`, `json.marshal(input.call.args.n) == "1.0"`,
		`first(input.call.args) == 1`, `is_string(input.call.args)`, `{ walk(input.call.args, [path, v]); v == 1; path[0] == "deep" }`,
		`some role in input.principal.roles; role == "a"`, `every tag in input.tool.tags { tag != input.tool.name }`, `"b" in roles`,
		`count({s | some s in input.access.resource.segments; s != input.tool.name}) > 0`, `in_root(input.access.resource)`, `in_root(access.resource)`,
		`{ x := input.access; y := x.resource; y.root == "a" }`, `{ [a, b] := [input.tool.name, input.tool.version]; a == b }`,
		`{ {"index": i, "count": _} = input.call.batch; i == 0 }`, `by_tool[input.tool.name]`, `{ some k; by_tool[k]; k == "b" }`, `data.remit["by_tool"].b`,
		`not input.call.declared`, `input.call.declared`, `level == 2`, `level > 1`, `not quiet`, `quiet`, `named`,
		`named with input.tool.name as "a"`, `named with input.tool.name as input.tool.version`, `sees(1) with input.call.args.n as 1`,
		`sees(1) with input.call.args.deep.x as 1`, `first(input.call.args) == 7 with first as other`, `named with input as {"tool": {"name": input.tool.grade}}`,
		`level == 1 with input as input.call.args`, `table[input.tool.name] == 1`, `data.table.a == 2 with data.table.a as input.call.batch.count`,
		`count(data.table) == 3 with data.table as input.principal.roles`, `{ some i, v in input.session.labels; v == "a"; i == 0 }`,
		`input.session.tools[input.tool.name].run > 1`, `input.session.recent[_].tool == "a"`, `input.time < "2026-01-02T00:00:00Z"`, `input.call.id == "a"`,
		`{ k := "tool"; input[k].name == "a" }`, `json.filter(input, ["tool/name"]) == {"tool": {"name": "a"}}`, `input.txn.calls > 1`,
		`input.principal.chain[_] == "a"`, `not input.principal.chain`, `input.access.method == "a"`, `input.access.resource.port > 1`,
		`input.output.exit == 1`, `not input.output`, `input.changes[_].kind == "write"`, `input.purpose == "apply"`,
		`startswith(input.access.resource.path, "a")`, `glob.match("a*", [], input.access.resource.name)`, `input.tool.name in {"a", "b"}`,
		`{ some x in [y | y := input.tool.tags[_]]; x == "b" }`, `{ o := {k: v | some k, v in input.call.args}; o.n == 1 }`, `deny["1"]`, `count(deny) > 0`,
	}
}

// randomPolicy returns some rules with some conditions each.
func randomPolicy(rnd *rand.Rand, of []string) string {
	var b strings.Builder
	b.WriteString(helpers)
	sets := []string{"deny", "ask", "hold", "allow", "hint", "label"}
	for i := range 1 + rnd.IntN(4) {
		reason := fmt.Sprintf("%q", fmt.Sprint(i))
		if rnd.IntN(4) == 0 {
			reason = `sprintf("%v", [input.call.args.n])`
		}
		set := sets[rnd.IntN(len(sets))]
		fmt.Fprintf(&b, "%s contains %s if {\n", set, reason)
		for j := range 1 + rnd.IntN(2) {
			condition := of[rnd.IntN(len(of))]
			for strings.Contains(condition, "deny") && set == "deny" {
				condition = of[rnd.IntN(len(of))]
			}
			if inner, braced := strings.CutPrefix(condition, "{ "); braced {
				condition = strings.TrimSuffix(inner, " }")
			}
			if j > 0 { // with distinct variable names
				condition = "count([1 | " + condition + "]) > 0"
			}
			b.WriteString("\t" + condition + "\n")
		}
		b.WriteString("}\n\n")
	}
	b.WriteString("deny contains \"1\" if named\n\nallow contains \"1\" if quiet\n")
	return b.String()
}

func randomRequest(rnd *rand.Rand) perm.Request {
	pick := func(from ...string) string { return from[rnd.IntN(len(from))] }
	some := func() []string { return [][]string{nil, {}, {"a"}, {"a", "b"}, {"b"}}[rnd.IntN(5)] }
	r := request()
	r.Principal.Roles, r.Principal.Chain = some(), some()
	r.Session.ID, r.Session.Labels = pick("a", "b"), some()
	r.Session.Tools = perm.NewCountsByTool(map[string]perm.ToolCounts{"a": {Counts: perm.Counts{Run: rnd.IntN(3)}}})
	r.Session.Recent = [][]perm.RecentCall{nil, {{Tool: "a"}}}[rnd.IntN(2)]
	r.Txn.Calls = rnd.IntN(3)
	r.Tool.Name, r.Tool.Version, r.Tool.Grade, r.Tool.Tags = pick("a", "b", "n"), pick("a", "b"), pick("ungraded", "compensable"), some()
	r.Call.ID, r.Call.EffectClass, r.Call.Declared = pick("a", "b"), pick("pure", "pivot"), rnd.IntN(2) == 0
	r.Call.Batch = perm.BatchFacts{Index: rnd.IntN(2), Count: 1 + rnd.IntN(2)}
	r.Call.Prompt = []*perm.PromptFacts{nil, nil, {Client: "a", ID: "b", Text: pick("a", "n", "")}}[rnd.IntN(3)]
	r.Call.Args = json.RawMessage(pick(`{}`, `{"n":1}`, `{"n":1.0}`, `{"n":2,"a":1}`, `{"n":null}`, ``, `null`, `"n"`, `{"n":2,"n":1}`, `{"deep":{"x":1}}`,
		`{"list":[1,2],"deep":1}`, `{"n":{"deep":{"x":2}},"deep":{}}`, `{"n":"1"}`, `[1]`, ` { "n" : 1 , "list": [ 2 ] } `, `{"\u006e":1}`))
	r.Access.Action = perm.Action(pick("read", "write"))
	r.Access.Method, r.Access.Dynamic = pick("", "a"), rnd.IntN(2) == 0
	r.Access.Resource.Root, r.Access.Resource.Path = pick("", "a", "workspace"), pick("a/b", "b")
	r.Access.Resource.Segments, r.Access.Resource.Name = some(), pick("a", "b", "ab")
	r.Access.Resource.Port = rnd.IntN(3)
	r.Purpose = perm.Purpose(pick("run", "apply", "verify"))
	r.Output = json.RawMessage(pick("", `{"exit":1}`, `{"exit":0}`))
	r.Changes = [][]perm.ChangeFacts{nil, {{Kind: "write"}}}[rnd.IntN(2)]
	r.Time = r.Time.AddDate(0, 0, -rnd.IntN(2))
	return r
}

func randomEngine(t *testing.T, text string) *rego.Engine {
	t.Helper()
	e, err := rego.New(rego.Options{
		Modules: map[string]string{"p.rego": text}, Data: map[string]any{"table": map[string]any{"a": 1, "b": 2}}, Timeout: longTimeout,
	})
	require.NoError(t, err, text)
	return e
}

// differs sends one engine many requests twice, and evaluates each without the
// cache with the whole document. It returns the first difference and the number
// of cache hits.
func differs(e *rego.Engine, requests []perm.Request) (difference string, hits int) {
	for _, r := range requests {
		before := rego.Remembered(e)
		got, gotErr := e.Decide(context.Background(), r)
		want, wantErr := rego.DecideWhole(context.Background(), e, r)
		if gotErr == nil && before > 0 && rego.Remembered(e) == before {
			hits++
		}
		if wantErr != nil && gotErr != nil && wantErr.Error() == gotErr.Error() {
			continue
		}
		if a, b := fmt.Sprint(got, gotErr), fmt.Sprint(want, wantErr); a != b {
			return fmt.Sprintf("%+v\ngot  %s\nwant %s", r, a, b), hits
		}
	}
	return "", hits
}

func randomRequests(rnd *rand.Rand, n int) []perm.Request {
	list := make([]perm.Request, n)
	for i := range list {
		list[i] = randomRequest(rnd)
		if i > 0 && rnd.IntN(3) == 0 { // repeats a request, as agents do
			list[i] = list[rnd.IntN(i)]
		}
	}
	return list
}

// TestCacheAgrees compares cached decisions and partial documents with fresh
// evaluations of the whole document.
func TestCacheAgrees(t *testing.T) {
	policies, evaluations, hits := statcheck.Size(50, 3000), 0, 0
	for seed := range policies {
		rnd := rand.New(rand.NewPCG(uint64(seed), 7))
		text := randomPolicy(rnd, conditions())
		requests := randomRequests(rnd, 80)
		difference, n := differs(randomEngine(t, text), requests)
		require.Empty(t, difference, "%s", text)
		evaluations += len(requests)
		hits += n
	}
	t.Logf("%d evaluations of %d policies, %d remembered", evaluations, policies, hits)
	require.Greater(t, hits, evaluations/20)
}

// TestCacheAgreesOnEachCondition gives every way to read the input its own
// policy, so that none hides another.
func TestCacheAgreesOnEachCondition(t *testing.T) {
	for i, condition := range conditions() {
		rnd := rand.New(rand.NewPCG(uint64(i), 8))
		if strings.Contains(condition, "deny") {
			continue // adds to deny below
		}
		text := randomPolicy(rnd, []string{condition})
		difference, _ := differs(randomEngine(t, text), randomRequests(rnd, 60))
		require.Empty(t, difference, "%s", text)
	}
}

// TestCacheNeedsItsWholeKey removes each part of the key in turn. Wrong
// decisions must occur, or the tests above prove nothing.
func TestCacheNeedsItsWholeKey(t *testing.T) {
	tried := 0
	text := helpers + `
deny contains "1" if input.access.action == "read"

deny contains "2" if input.call.args.n == 1

deny contains "3" if { some role in input.principal.roles; role == "a" }

deny contains "4" if not input.principal.chain

hold contains "6" if input.purpose == "run"
`
	for i := range 100 {
		e := randomEngine(t, text)
		dropped, remembers := rego.DropFromKey(e, i)
		require.True(t, remembers)
		if !dropped {
			break
		}
		tried++
		difference, _ := differs(e, randomRequests(rand.New(rand.NewPCG(1, 9)), 800))
		require.NotEmpty(t, difference, "nothing misses part %d of the key", i)
	}
	require.Equal(t, 6, tried)
}
