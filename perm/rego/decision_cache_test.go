package rego_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

func TestReads(t *testing.T) {
	for rule, want := range map[string][]string{
		`deny contains "x"`:                                                                            {},
		`deny contains "x" if input.tool.name == "a"`:                                                  {"input.tool.name"},
		`deny contains input.tool.name`:                                                                {"input.tool.name"},
		`deny contains "x" if input["tool"]["name"] == "a"`:                                            {"input.tool.name"},
		`deny contains "x" if input.call.args[0].x == "a"`:                                             {"input.call.args"},
		`deny contains "x" if input.call.args[input.tool.name].x`:                                      {"input.call.args", "input.tool.name"},
		"deny contains \"x\" if { k := \"tool\"; input[k].name }":                                      {"input"},
		`deny contains "x" if count(input) == 1`:                                                       {"input"},
		"f(x) if x.tool\ndeny contains \"x\" if f(input)":                                              {"input"},
		`deny contains "x" if object.get(input, ["tool", "name"], "") == "a"`:                          {"input"},
		`deny contains "x" if { walk(input, [_, v]); v == 1 }`:                                         {"input"},
		"h := input.tool\ndeny contains \"x\" if h.name == \"a\"":                                      {"input.tool"},
		"deny contains \"x\" if data.remit.h\nh if input.tool.name == \"a\"":                           {"input.tool.name"},
		"unused if input.time == \"2026-01-02T03:04:05Z\"\ndeny contains \"x\" if input.call.declared": {"input.call.declared"},
		"h if input.tool.name\ndeny contains \"x\" if h with input.tool.name as input.call.args.n":     {"input.call.args.n", "input.tool.name"},
		"deny contains \"x\" if data.t.x with data.t as input.txn.id":                                  {"input.txn.id"},
		"p[input.tool.name] := 1\ndeny contains \"x\" if p.a == 1":                                     {"input.tool.name"},
		"h := 1 if input.call.declared\nelse := 2 if input.txn.id\ndeny contains \"x\" if h == 1":      {"input.call.declared", "input.txn.id"},
		"default h := false\nh if input.txn.id\ndeny contains \"x\" if data[\"remit\"].h":              {"input.txn.id"},
		`deny contains "x" if every s in input.tool.tags { s != input.txn.id }`:                        {"input.tool.tags", "input.txn.id"},
		`deny contains "x" if count({s | s := input.tool.tags[_]; not input.txn.id}) > 1`:              {"input.tool.tags", "input.txn.id"},
		"f(x) := 1\ng(x) := input.txn.id\ndeny contains \"x\" if f(1) == 1 with f as g":                {"input.txn.id"},
		`ensure contains "x" if input.output.exit == 1`:                                                {},
	} {
		got := rego.Reads(engine(t, control+rule))
		require.Equal(t, want, append([]string{}, got...), rule)
	}
}

func TestSlow(t *testing.T) {
	notes := engine(t, control+`
limit contains "often" if input.session.tools.file_read.run > 3
deny contains "late" if { ns := time.parse_rfc3339_ns(input.time); ns > 3 }
deny contains "whole" if { c := input.call; c.id == "x" }
ensure contains "asked for another purpose" if input.time == "2026-01-02T03:04:05Z"
`).SlowRules()
	require.Equal(t, []rego.UncheckedRef{
		{At: "p.rego:5", Text: "answers are not remembered: input.session.tools.file_read.run differs from call to call"},
		{At: "p.rego:6", Text: "answers are not remembered: input.time differs from call to call"},
		{At: "p.rego:7", Text: "answers are not remembered: input.call is read whole, and input.call.id differs from call to call"},
	}, remembering(notes))
	require.Empty(t, remembering(engine(t, control+`deny contains "x" if input.call.args.n > 1`).SlowRules()))
	require.Empty(t, (&rego.Engine{}).SlowRules())
}

func remembering(notes []rego.UncheckedRef) []rego.UncheckedRef {
	var out []rego.UncheckedRef
	for _, n := range notes {
		if strings.HasPrefix(n.Text, "answers are not remembered") {
			out = append(out, n)
		}
	}
	return out
}

func TestCacheHits(t *testing.T) {
	e := engine(t, control+`deny contains "x" if input.call.args.n == 8`)
	for i := range 5 {
		r := request()
		r.Call.ID = fmt.Sprint(i)
		r.Call.Args = json.RawMessage(fmt.Sprintf(`{"path":"%d","n":7}`, i))
		require.Equal(t, perm.Allow, decide(t, e, r).Effect())
	}
	require.Equal(t, 1, rego.Remembered(e), "what the policy does not read makes no difference")
	r := request()
	r.Call.Args = json.RawMessage(`{"n":8}`)
	require.Equal(t, perm.Deny, decide(t, e, r).Effect())
	r.Call.Args = json.RawMessage(`{"n":8.0}`)
	require.Equal(t, perm.Deny, decide(t, e, r).Effect())
	require.Equal(t, 3, rego.Remembered(e), "numbers are compared as written")
	r.Call.Args = json.RawMessage(`{"n":null}`)
	decide(t, e, r)
	r.Call.Args = json.RawMessage(`{}`)
	decide(t, e, r)
	require.Equal(t, 5, rego.Remembered(e), "absent is not null")
}

func TestCacheNeverKeepsFailures(t *testing.T) {
	e := engine(t, failing()["built-in in deny"])
	for range 2 {
		_, err := e.Decide(context.Background(), request())
		require.ErrorIs(t, err, rego.ErrEvaluation)
	}
	require.Zero(t, rego.Remembered(e))

	e = engine(t, control)
	_, err := e.Decide(doneLate{new(int)}, request())
	require.Error(t, err)
	require.Zero(t, rego.Remembered(e))

	decide(t, e, request())
	require.Equal(t, 1, rego.Remembered(e))
	r := request()
	r.Tool.Version = "\xff" // no rule reads it
	d, err := e.Decide(context.Background(), r)
	require.ErrorIs(t, err, rego.ErrInput)
	require.Equal(t, perm.Deny, d.Effect())
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = e.Decide(gone, request())
	require.ErrorIs(t, err, context.Canceled, "also when the answer is known")
}

func TestCacheIsBounded(t *testing.T) {
	text := control + `deny contains "x" if input.call.args.n == "x"`
	e, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": text}, Timeout: longTimeout, CacheSize: 3})
	require.NoError(t, err)
	r := request()
	for i := range 10 {
		r.Call.Args = json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))
		decide(t, e, r)
	}
	require.Equal(t, 3, rego.Remembered(e))

	e = engine(t, text)
	r.Call.Args = json.RawMessage(`{"n":"` + strings.Repeat("y", 8<<10) + `"}`)
	require.Equal(t, perm.Allow, decide(t, e, r).Effect())
	require.Zero(t, rego.Remembered(e), "a long argument would take too much")

	e, err = rego.New(rego.Options{Modules: map[string]string{"p.rego": text}, Timeout: longTimeout, CacheSize: -1})
	require.NoError(t, err)
	require.Equal(t, perm.Allow, decide(t, e, r).Effect())
}

func TestMember(t *testing.T) {
	for _, tt := range []struct{ text, path, want string }{
		{`{"a":1}`, "a", "1"},
		{` { "a" : [1, 2] , "b":3}`, "a", "[1, 2]"},
		{`{"a":{"b":{"c":1.0}}}`, "a.b.c", "1.0"},
		{`{"a":1,"a":2}`, "a", "2"},
		{`{"a":{"b":1},"a":{"c":2}}`, "a.b", ""},
		{`{"\u0061":null}`, "a", "null"},
		{`{"A":1}`, "a", ""},
		{`[{"a":1}]`, "a", ""},
		{`"a"`, "a", ""},
		{``, "a", ""},
		{`null`, "a", ""},
		{`{"a":"b"}`, "a.b", ""},
	} {
		got, err := rego.Member(tt.text, strings.Split(tt.path, "."))
		require.NoError(t, err)
		require.Equal(t, tt.want, string(got), "%s of %s", tt.path, tt.text)
	}
	_, err := rego.Member(`{"a":1`, []string{"a"})
	require.Error(t, err)
}

// TestEveryTextIsChecked finds a text that was added to Request but not to
// check.
func TestEveryTextIsChecked(t *testing.T) {
	count := 0
	var spoil func(v reflect.Value, check func(string), name string)
	spoil = func(v reflect.Value, check func(string), name string) {
		switch {
		case v.Kind() == reflect.Struct && v.Type().String() != "time.Time":
			for i := range v.NumField() {
				spoil(v.Field(i), check, name+"."+v.Type().Field(i).Name)
			}
		case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			spoil(v.Index(0), check, name)
			v.SetZero()
		case v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct && v.Type() != reflect.TypeFor[*perm.ScriptFacts](): // made of the checked arguments
			v.Set(reflect.New(v.Type().Elem()))
			spoil(v.Elem(), check, name)
			v.SetZero()
		case v.Kind() == reflect.String:
			v.SetString("\xff")
			check(name)
			v.SetString("")
		}
	}
	var r perm.Request
	spoil(reflect.ValueOf(&r).Elem(), func(name string) {
		count++
		_, err := rego.Document(r)
		require.ErrorIs(t, err, rego.ErrInput, name)
	}, "")
	require.Greater(t, count, 40)
}

func TestSlowRules(t *testing.T) {
	var places []string
	for _, n := range engine(t, control+`deny contains "compared" if input.tool.name == "x"
deny contains "count" if count(input.tool.tags) > 1
deny contains "helper" if h
h if not input.call.declared
deny contains "with" if h with input.call.declared as true
deny contains "every" if { every s in input.tool.tags { s == "x" } }
deny contains "variables" if input.tool.name in {input.tool.version, "x"}
hint contains "always" if true with input as {}
hide contains "another purpose" if { every s in input.tool.tags { s == "x" } }
`).SlowRules() {
		require.Contains(t, n.Text, "OPA's interpreter evaluates it for every request")
		places = append(places, n.At)
	}
	require.Equal(t, []string{"p.rego:10", "p.rego:8", "p.rego:9"}, places)
}

// TestHugeNumbersBesideACachedDecision: a request with a number that no decision can read is refused, also if an earlier one differs from
// it only in that number.
func TestHugeNumbersBesideACachedDecision(t *testing.T) {
	e := engine(t, "package remit\n\nallow contains \"x\" if input.call.args.n == 2\n")
	for _, huge := range []string{"1e99999", "1e-99999", "1e99999999999999999999"} {
		r := request()
		r.Call.Args = json.RawMessage(`{"n":2}`)
		d, err := e.Decide(context.Background(), r)
		require.NoError(t, err)
		require.Equal(t, perm.Allow, d.Effect())
		r.Call.Args = json.RawMessage(`{"n":2,"z":` + huge + `}`)
		d, err = e.Decide(context.Background(), r)
		require.ErrorIs(t, err, rego.ErrInput, huge)
		require.Equal(t, perm.Deny, d.Effect())
		r.Call.Args, r.Output = json.RawMessage(`{"n":2}`), json.RawMessage(huge)
		_, err = e.Decide(context.Background(), r)
		require.ErrorIs(t, err, rego.ErrInput, huge)
	}
}
