package rego_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// ruleMaker writes random rules of every form that an author uses: comparisons
// in any order, types that do not fit, built-ins that refuse their operands,
// variables, helpers, iterations.
type ruleMaker struct{ *rand.Rand }

func (m ruleMaker) one(of ...string) string { return of[m.IntN(len(of))] }

func (m ruleMaker) place() string {
	return m.one(
		"input.tool.name", "input.tool.version", "input.tool.grade", "input.access.action", "input.access.resource.root", "input.access.resource.path",
		"input.access.resource.name", "input.access.resource.port", "input.access.dynamic", "input.call.declared", "input.call.effect_class",
		"input.call.args.n", "input.call.args", "input.call.args.deep.x", "input.call.args.list[0]", "input.call.args.list", "input.call.args[\"n\"]",
		"input.principal.roles", "input.principal.roles[0]", "input.session.labels", "input.tool.tags", "input.txn.calls", "input.output.exit",
		"input.access.resource.segments", "input.access.resource.segments[1]", "input.principal.chain", "input.access.method", "input.purpose",
	)
}

func (m ruleMaker) constant() string {
	return m.one(`"a"`, `"b"`, `"n"`, `"read"`, `"workspace"`, `"a/b"`, `""`, "1", "1.0", "2", "0", "-1", "1e0", "true", "false", "null", `["a"]`, `["a", "b"]`, `{}`, `{"x": 1}`, `[]`, `{"a", "b"}`)
}

func (m ruleMaker) value() string {
	if m.IntN(2) == 0 {
		return m.place()
	}
	return m.constant()
}

func (m ruleMaker) list() string {
	return m.one(`{"a", "b", "read"}`, `["a", 1, null]`, `{"a": "read", "b": 1}`, `{1, 2}`, `{"workspace"}`, `input.principal.roles`, `input.call.args`, `input.call.args.list`, `input.tool.name`, `"ab"`)
}

// simple returns a condition without variables.
func (m ruleMaker) simple() string {
	switch m.IntN(14) {
	case 0, 1, 2:
		return m.place() + " == " + m.constant()
	case 3:
		return m.constant() + " == " + m.place()
	case 4:
		return m.place() + " == " + m.place()
	case 5:
		return m.place() + m.one(" != ", " < ", " <= ", " > ", " >= ") + m.value()
	case 6:
		return m.value() + " in " + m.list()
	case 7:
		return m.one("startswith", "endswith", "contains") + "(" + m.place() + ", " + m.one(`"a"`, `"b"`, `""`, "input.tool.name") + ")"
	case 8:
		return "glob.match(" + m.one(`"a*"`, `"**"`, `"a/**"`, `"[a"`, `"{a,b}"`, "input.tool.name") + ", " + m.one("[]", `["/"]`, "null") + ", " + m.place() + ")"
	case 9, 10:
		return m.place()
	case 11:
		return m.one("input.txn.calls", "input.access.resource.port", "input.call.args.n") + m.one(" < ", " <= ", " > ", " >= ") + m.one("0", "1", "1.0", "2")
	case 12:
		return m.one("input.tool.name", "input.tool.version") + " == " + m.one(`"a"`, `"b"`) + " with input.tool.name as " + m.one(`"a"`, `"b"`, "input.tool.version")
	default:
		return m.one("true", "helper", "count("+m.place()+") > 1", "is_string("+m.place()+")", "to_number(input.call.args.n) > 0", "upper(input.tool.name) == \"A\"",
			"some_a", "takes("+m.place()+")", `regex.match("^a", input.tool.name)`, "data.table.a == "+m.place(), "data.table[input.tool.name] == 1")
	}
}

func (m ruleMaker) condition(n int) string {
	switch m.IntN(8) {
	case 0, 1:
		return "not " + m.simple()
	case 2:
		x := fmt.Sprint("x", n)
		return x + " := " + m.place() + "\n\t" + m.one(x+" == "+m.constant(), "startswith("+x+", \"a\")", x+" in "+m.list(), "not "+x+" == "+m.value(), x)
	case 3:
		x := fmt.Sprint("x", n)
		return "some " + x + " in " + m.list() + "\n\t" + x + " == " + m.value()
	default:
		return m.simple()
	}
}

// rule returns one rule. Its element is a constant, or made of the input.
func (m ruleMaker) rule(n int) string {
	set := m.one("deny", "ask", "hold", "allow", "hint", "label")
	element, bound := fmt.Sprintf("%q", fmt.Sprint("rule ", n)), ""
	switch m.IntN(8) {
	case 0:
		element = `sprintf("%v", [` + m.place() + `])`
	case 1:
		element, bound = "why", "\twhy := "+m.one("input.tool.name", `"because"`, "input.call.args.n", `concat("", ["a", "b"])`)+"\n"
	}
	var b strings.Builder
	for i := range m.IntN(4) {
		b.WriteString("\t" + m.condition(i) + "\n")
	}
	body := b.String()
	if m.IntN(2) == 0 {
		body = bound + body
	} else {
		body += bound
	}
	if body == "" {
		return set + " contains " + element + "\n\n"
	}
	return set + " contains " + element + " if {\n" + body + "}\n\n"
}

// ruleHead is what the rules refer to.
const ruleHead = `package remit

helper if input.tool.name == "a"

some_a if { some role in input.principal.roles; role == "a" }

takes(x) if x == "a"

`
