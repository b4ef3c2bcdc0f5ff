package rego_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	opa "github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// formPolicies are written by hand: forms that a compiled rule could get wrong.
func formPolicies() []string {
	return []string{
		`hint contains "x" if { some i; input.access.resource.segments[i] == "a"; input.access.resource.segments[i+1] == "b" }`,
		`hint contains "x" if { input.access.resource.segments[i] == input.principal.roles[i] }`,
		`hint contains "x" if { some k, v in input.call.args; k == v }`,
		`hint contains v if { some v in ["a", "b", "a"] }`,
		`hint contains sprintf("%d %v %s", [n, n, "q"]) if { some n in [1, 1.0, 2] }`,
		`hint contains "x" if { a := [y | some z in input.principal.roles; y := [w | some w in input.access.resource.segments; w == z]]; count(a) == 2 }`,
		`f(x) := y if { y := x.a }
hint contains "x" if { f(input.call.args) == 1 }`,
		`f([a, b]) := a if b == 1
hint contains "x" if { f(["q", 1]) == "q" }`,
		`f("a", x) := x
f("b", _) := "z"
hint contains y if { y := f(input.principal.roles[_], "w") }`,
		`p := true if input.txn.calls > 100
hint contains "no" if not p
hint contains "yes" if p`,
		`p := false if input.txn.depth == 0
hint contains "notp" if not p
hint contains "undefq" if not p == true`,
		`hint contains "x" if { not input.call.args.nothing; not input.call.args.f }`,
		`s contains [a, b] if { some a in input.principal.roles; some b in input.access.resource.segments }
hint contains concat("-", x) if some x in s`,
		`hint contains "x" if { x := {"a": {"b": [1, {"c": 2}]}}; x.a.b[1].c == 2 }`,
		`o := {"k": input.tool.name, "n": null}
hint contains k if { some k, v in o; v == null }
hint contains "o" if o.k`,
		`hint contains "x" if { x := input.access.resource.segments; count(x) > 1; y := x[count(x)-1]; y == "c" }`,
		`hint contains "x" if 1 == 1.0
hint contains "y" if { {1, 1.0} == {1} }
hint contains "z" if { [1] == [1.0] }
hint contains "w" if { {1: "a"}[1.0] == "a" }`,
		`hint contains "x" if { every s in input.access.resource.segments { s != "z" } }`,
		`hint contains "x" if { some s in input.access.resource.segments; not s in {"a", "b", "c"} }
hint contains "all" if { count({s | some s in input.access.resource.segments; s in {"a", "b", "c"}}) == 3 }`,
		`hint contains "x" if { glob.match("*", [], "a.b") }
hint contains "y" if { glob.match("*", null, "a/b") }
hint contains "z" if { glob.match("a/**", ["/"], "a/b/c") }`,
		`hint contains t if { some x in [1, "a", null, true, [1], {"k": 1}]; t := type_name(x) }`,
		`hint contains "x" if { max(input.call.args.nums) == 3; min(input.call.args.nums) == 1; sum(input.call.args.nums) == 6; sort(["b","a"]) == ["a","b"] }`,
		`hint contains "x" if { substring("hello", 1, 3) == "ell"; indexof("hello", "l") == 2; split("a,b", ",")[1] == "b"; replace("aa", "a", "b") == "bb"; trim(" a ", " ") == "a" }`,
		`hint contains x if { x := object.get(input.call.args, ["deep", "x"], "none") }
hint contains y if { y := object.get(input.call.args, "missing", "none2") }`,
		`a := b + 1 if b := 2
hint contains sprintf("%v", [a])`,
		`hint contains x if { x := sprintf("%s", [{"b", "a"}]) }
hint contains y if { y := sprintf("%v", [{"b": 1, "a": [true, null]}]) }
hint contains z if { z := sprintf("%5.2f|%x|%q|%t", [1.5, 255, "q", true]) }
hint contains w if { w := sprintf("%d", ["a"]) }`,
		`default lvl := "low"
lvl := "high" if input.tool.name == "t"
lvl := "mid" if input.tool.name == "u"
hint contains lvl`,
		`hint contains "x" if { some x in input.principal.roles; some y in input.principal.roles; x != y; x < y }`,
		`hint contains "x" if { x := [1, 2, 3]; y := x[_]; y > 2 }
hint contains "k" if { x := {"a": 1}; x[k] == 1; k == "a" }`,
		`r contains x if { x := input.access.resource.segments[_] }
q contains x if { r[x]; x != "a" }
hint contains x if q[x]`,
		`hint contains "x" if { input.call.args.t == true }
hint contains "f" if { input.call.args.f == false }
hint contains "nf" if { not input.call.args.f }
hint contains "ff" if { input.call.args.f }
hint contains "n" if { input.call.args["null"] == null }`,
		`hint contains "div" if { 1 / input.call.args.zero > 0 }`,
		`hint contains "x" if { x := {y | y := input.principal.roles[_]} - {"a"}; count(x) == 1 }
hint contains "u" if { {"a"} | {"b"} == {"a", "b"} }
hint contains "i" if { {"a", "b"} & {"b"} == {"b"} }`,
		`hint contains "x" if { time.clock([time.parse_rfc3339_ns(input.time), "UTC"])[0] >= 0; time.weekday(time.parse_rfc3339_ns(input.time)) in {"Monday","Tuesday","Wednesday","Thursday","Friday","Saturday","Sunday"} }`,
		`f(x) := "one" if x == 1
f(x) := "two" if x == 2
hint contains f(n) if some n in [1, 2, 3]`,
		`g(x) if { not h(x) }
h(x) if { x in input.principal.roles }
hint contains "g" if g("zzz")
hint contains "h" if g("a")`,
		`hint contains concat("", [a, b]) if { [a, b] := input.call.args.pair }`,
		`t := {x: y | some i, x in input.access.resource.segments; y := i}
hint contains "x" if t.b == 1`,
		`hint contains "x" if { numbers.range(1, 3)[_] == 2 }
hint contains "y" if { to_number("12") == 12; is_string("a"); is_array([]); not is_set([]) }`,
		`a contains 1 if input.tool.name == "t"
a contains "1" if input.tool.name == "t"
a contains 1.0
hint contains sprintf("%d", [count(a)])`,
		`hint contains "or" if { some x in {input.tool.name, input.access.resource.root}; x == "workspace" }`,
		`hint contains "in3" if { "a", "b" in {"a": "b"} }
hint contains "i3" if { 1, "b" in input.access.resource.segments }`,
		`p(x) := x * 2
hint contains "x" if p(input.txn.calls) == 4
hint contains "y" if { p(p(1)) == 4 }`,
		`k := input.call.args.missing
hint contains "u" if not k
hint contains "uu" if { not k == 1; not f2(k) }
f2(x) if x == 1`,
		`hint contains upper(x) if { x := ["a","b"][_] }`,
		`hint contains "abs" if abs(-1) == 1
hint contains "rem" if 5 % 3 == 2
hint contains "conc" if array.concat([1],[2]) == [1,2]
hint contains "slice" if array.slice([1,2,3], 1, 9) == [2,3]
hint contains "slice2" if array.slice([1,2,3], 2, 1) == []`,
		`m[x] := 1 if some x in ["a", "b"]
m.c := 2 if input.tool.name == "t"
hint contains "x" if m.c == 2
hint contains "y" if not m.c`,
		`m[x] contains y if { some x in ["a", "b"]; y := "q" }
m.a contains input.tool.name
hint contains x if some x in m.a`,
		`default f := {y | some y in ["a"]}
f := {"q"} if input.tool.name == "t"
hint contains "x" if "a" in f
hint contains "q" if "q" in f`,
		`default f := [1 | true]
f := [2] if input.tool.name == "nope"
hint contains "x" if not f[0] == 1`,
		`hint contains "x" if count([1 | some e in {input.tool.name, input.access.action}]) == 2
hint contains "y" if count([1 | some e in {input.tool.name, input.tool.name}]) == 1`,
		`hint contains concat(",", [e | some e in {input.access.resource.path, input.tool.name, "m"}])`,
		`hint contains "x" if not data.names[input.call.args.c]
hint contains "y" if data.names[input.call.args.c]
hint contains k if { some k in ["1", "+1", "7"]; data.names[k] }`,
		`hint contains "x" if { some k; input.call.args.own[k] == k }
hint contains "y" if { some k; k = input.call.args.own[k] }
hint contains "z" if { some i; i == input.call.args.nums[i] }`,
		`same if { some k; input.call.args.own[k] == k }
hint contains "x" if not same
hint contains "y" if same`,
		`f(o) if { some k; o[k] == k }
hint contains "x" if f(input.call.args.own)
hint contains "y" if { count([k | input.call.args.own[k] == k]) > 0 }
hint contains "z" if { "a" in {k | some k; input.call.args.own[k] = k} }`,
		`owners := {"a": "b", "b": "c"}
hint contains "x" if { owners[k] == k; input.tool.name }
hint contains "y" if { some i; i = [input.call.args.nums[i]] }
hint contains "z" if { some i; i = input.call.args.deep[_][i] }`,
		`hint contains "x" if input.call.args.same in {input.call.args.null, input.call.args.same, "root"}
hint contains "y" if input.tool.name in {"k": input.tool.name, "l": "root"}
hint contains "z" if { input.tool.name in {input.tool.name, "root"}; every q in [1] { q == 1 } }
hint contains "w" if { x := input.call.args.same; input.call.args.same in [x, 2] }
g(x) if x in {input.tool.name, "root"}
hint contains "v" if g(input.tool.name)`,
		`hint contains "x" if data.names[1] == input.tool.name
hint contains "v" if { data.nested[0].a[1] == input.tool.name; data.nested[1][0] == "b" }`,
		`hint contains "x" if { some k; data.rows[k].y == input.tool.name }
hint contains k if { some k, _ in data.rows; not data.rows[k].y }`,
	}
}

func formData() map[string]any {
	return map[string]any{
		"names":  []any{"a", "t", "q"},
		"nested": []any{map[string]any{"a": []any{"a", "t"}}, []any{"b"}},
		"rows":   map[string]any{"a": map[string]any{"y": "q"}, "t": map[string]any{"z": "q"}, "b": map[string]any{"y": "t"}},
	}
}

// TestFormsAgainstOPA compares the hints of policies with what OPA's own API
// finds for the same text and the JSON of the request, without OPA's index of
// rules, which takes a variable in a literal collection for a value.
func TestFormsAgainstOPA(t *testing.T) {
	r := request()
	r.Access.Resource.Segments, r.Access.Resource.Path, r.Access.Resource.Root = []string{"a", "b", "c"}, "a/b/c", "workspace"
	r.Principal.Roles, r.Tool.Name, r.Txn.Calls = []string{"a", "b"}, "t", 2
	r.Call.Args = json.RawMessage(`{"a":1,"same":"same","f":false,"t":true,"null":null,"zero":0,"nums":[1,2,3],"pair":["p","q"],"deep":{"x":"dx"},"list":["a"],"c":"1","own":{"a":"b","b":"a"}}`)
	requests := []perm.Request{r}
	for _, r := range randomRequests(rand.New(rand.NewPCG(3, 4)), 40) {
		if _, err := json.Marshal(r); err == nil { // the checker needs the JSON
			requests = append(requests, r)
		}
	}
	compiled, failures := 0, 0
	for _, rules := range formPolicies() {
		module := "package remit\n\n" + rules + "\n"
		e, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": module}, Data: formData(), CacheSize: -1, Timeout: longTimeout})
		require.NoError(t, err, rules)
		query, err := opa.New(opa.Query("x = data.remit.hint"), opa.Module("p.rego", module), opa.Store(inmem.NewFromObject(formData())), opa.StrictBuiltinErrors(true)).PrepareForEval(context.Background())
		require.NoError(t, err, rules)
		for _, r := range requests {
			if sure, all := rego.CompiledAnswer(e, r); sure && all {
				compiled++
			}
			d, failed := e.Decide(context.Background(), r)
			want, wantErr := hintsByOPA(t, query, r)
			require.Equal(t, wantErr == nil, failed == nil, "%s\n%v\n%v", rules, wantErr, failed)
			if failed != nil {
				failures++
				continue
			}
			got := append([]string{}, d.Details().Hints...)
			slices.Sort(got)
			require.Equal(t, want, got, rules)
		}
	}
	t.Logf("%d policies, %d requests each; %d without topdown, %d failed", len(formPolicies()), len(requests), compiled, failures)
	require.Greater(t, compiled, len(formPolicies())*len(requests)/2)
}

func hintsByOPA(t *testing.T, query opa.PreparedEvalQuery, r perm.Request) ([]string, error) {
	t.Helper()
	text, err := json.Marshal(r.Filled())
	require.NoError(t, err)
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var doc any
	require.NoError(t, dec.Decode(&doc))
	found, err := query.Eval(context.Background(), opa.EvalInput(doc), opa.EvalRuleIndexing(false))
	if err != nil {
		return nil, err
	}
	require.Len(t, found, 1)
	list, ok := found[0].Bindings["x"].([]any)
	require.True(t, ok)
	all := []string{}
	for _, hint := range list {
		if _, text := hint.(string); !text {
			return nil, errors.New("an element is not text")
		}
		all = append(all, fmt.Sprint(hint))
	}
	slices.Sort(all)
	return all, nil
}
