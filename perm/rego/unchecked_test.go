package rego_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm/rego"
)

func TestUnchecked(t *testing.T) {
	tests := []struct {
		name, text string
		want       []rego.UncheckedRef
	}{
		{"nothing", `deny contains "x" if input.access.action == "delete"`, nil},
		{"function that gets a value", "f(x) if startswith(x, \"a\")\ndeny contains \"x\" if f(input.tool.name)", nil},
		{"computed key of a map", `deny contains "x" if input.session.tools[input.tool.name].run > 3`, nil},
		{"free form", `deny contains "x" if input.call.args[input.tool.name] == "y"`, nil},
		{"list", `deny contains "x" if { some i; input.session.recent[i].tool == "y" }`, nil},
		{"some in a closed object", `deny contains "x" if { some part in input.tool; part == "y" }`, []rego.UncheckedRef{
			{At: "p.rego:4", Text: "input.tool[_]: a computed key of input is not checked"},
		}},
		{"parameter", "f(r) if r.rot == \"x\"\ndeny contains \"x\" if f(input.access.resource)", []rego.UncheckedRef{
			{At: "p.rego:4", Text: "r.rot: fields of a function's parameter are not checked"},
		}},
		{"value of a parameter", "f(c) if c == \"reversble\"\ndeny contains \"x\" if f(input.call.effect_class)", []rego.UncheckedRef{
			{At: "p.rego:4", Text: "a value compared with a function's parameter is not checked"},
		}},
		{"value in a head", "f(\"reversble\")\ndeny contains \"x\" if f(input.call.effect_class)", []rego.UncheckedRef{
			{At: "p.rego:4", Text: "a value compared with a function's parameter is not checked"},
		}},
		{"computed key", "deny contains \"x\" if {\n\tsome k in [\"nme\"]\n\tinput.tool[k] == \"x\"\n}", []rego.UncheckedRef{
			{At: "p.rego:6", Text: "input.tool[k]: a computed key of input is not checked"},
		}},
		{"computed key of object.get", `deny contains "x" if object.get(input.tool, input.call.args.key, "") == "y"`, []rego.UncheckedRef{
			{At: "p.rego:4", Text: "a computed key of object.get is not checked"},
		}},
		{"walk", `deny contains "x" if { walk(input.call, [_, v]); v == "y" }`, []rego.UncheckedRef{
			{At: "p.rego:4", Text: "what walk picks from input.call is not checked"},
		}},
		{"whole input", `deny contains "x" if json.filter(input, ["acess"]) == {}`, []rego.UncheckedRef{
			{At: "p.rego:4", Text: "what json.filter picks from input is not checked"},
		}},
		{"another input", "x if input.call.declared\ndeny contains \"x\" if not x with input as {\"cal\": {}}", []rego.UncheckedRef{
			{At: "p.rego:5", Text: "a document that takes the place of input is not checked"},
		}},
		{"time zone", `deny contains "x" if time.clock([0, input.call.args.zone])[0] > 3`, []rego.UncheckedRef{
			{At: "p.rego:4", Text: "a time zone that is not written out is not checked"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			notes := engine(t, control+tt.text).UncheckedRefs()
			require.Equal(t, tt.want, notes)
		})
	}
}
