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
		"input.call.prompt.text", "input.call.prompt.client", "input.call.prompt",
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
	return m.one(`{"a", "b", "read"}`, `["a", 1, null]`, `{"a": "read", "b": 1}`, `{1, 2}`, `{"workspace"}`, `input.principal.roles`, `input.call.args`, `input.call.args.list`, `input.tool.name`, `"ab"`,
		`{input.tool.name, "b"}`, `[input.tool.version, "a"]`, `{"k": input.tool.name, "l": "a"}`, `{input.call.args.n, input.tool.version, 2}`)
}

// simple returns a condition without variables.
func (m ruleMaker) simple() string {
	switch m.IntN(20) {
	case 14, 15, 16:
		return m.helper()
	case 17, 18, 19:
		return m.built()
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

// helper returns a condition about what other rules define.
func (m ruleMaker) helper() string {
	if m.IntN(2) == 0 { // those that contradict each other, or hold for one argument
		text := m.one("input.tool.name", "input.tool.version", "input.access.resource.root", "input.access.resource.path", "input.call.args.n")
		if m.IntN(2) == 0 { // those that topdown reads in its own way
			return m.one("parts.c == 2", "parts[input.tool.name]", "not parts.c", `"a" in listed`, `"b" in listed`, "over({input.tool.name, input.tool.version}) == 1",
				"count([1 | some _ in {"+text+", "+text+"}]) == 2", "data.list["+text+"]", `data.list["1"] == "b"`, "data.list[1] == "+text)
		}
		return m.one("clash("+text+")", "clash("+text+") == 2", "only_b("+text+")", "not only_b("+text+")", "chosen == \"b\"", "kind == \"b\"", "picky("+text+") == \"b\"", "fallen("+text+") == \"b\"", "count([k | some k; names[k] == "+text+"; k == "+text+"]) == 1", "twice("+text+") == [\"a\", \"a\"]")
	}
	return m.one(
		m.constant()+" in names", `names["a"]`, "kind == "+m.constant(), "level == 1", "kind", "flag", "level", "mixed == "+m.constant(),
		"pick("+m.place()+", "+m.value()+") == "+m.value(), "pick("+m.place()+", "+m.value()+")", "first("+m.list()+") == "+m.constant(),
		"size_of("+m.place()+") > 1", "bounds[input.tool.name]", "bounds.b.c == 2", "bounds[input.tool.name] == "+m.constant(),
		"data.table[input.tool.version] == "+m.place(), "count(names) > 1", "count(allow) == 0", "constant == "+m.place(), "apart("+m.place()+")",
		"twice("+m.place()+")[1] == "+m.constant(), "segments[1] == "+m.constant(), "members[input.tool.name] == 1", "nested("+m.place()+") == "+m.constant(),
		"under(\"workspace\", "+m.one(`"a"`, `"b"`, "input.tool.name")+")", "clash("+m.place()+") == 1", "only_b("+m.place()+")", "failing == 1", "not_a", "has_names", "chosen == "+m.constant(), "chosen == \"b\"", "chosen",
	)
}

// built returns a condition about what a built-in or a comprehension makes.
func (m ruleMaker) built() string {
	return m.one(
		"lower("+m.place()+") == "+m.constant(), "concat(\"/\", ["+m.place()+", \"b\"]) == \"a/b\"", "count("+m.list()+") == 2",
		"count([x | some x in "+m.list()+"; x == "+m.constant()+"]) > 0", "{x | some x in "+m.list()+"} == {\"a\", \"b\"}",
		"array.slice(input.access.resource.segments, 0, 1)[0] == "+m.constant(), "object.get(input.call.args, \"n\", 0) == "+m.constant(),
		"trim_right("+m.place()+", \". \") == "+m.constant(), "sum([1, input.txn.calls]) > 2", "input.txn.calls + 1 == 2", "input.call.args.n * 2 == 2",
		"split(input.access.resource.path, \"/\")[0] == "+m.constant(), "strings.any_prefix_match("+m.place()+", {\"a\", \"b\"})",
		"replace("+m.place()+", \"a\", \"b\") == \"b\"", "max("+m.list()+") == "+m.constant(), "is_array("+m.place()+")", "sort("+m.list()+") == [\"a\", \"b\"]",
		"(input.tool.name == \"a\") == "+m.one("true", "false"), "["+m.place()+", 1] == [\"a\", 1]", "{\"k\": "+m.place()+"} == {\"k\": \"a\"}", "{"+m.one("input.tool.name", "input.tool.version")+": 1, "+m.one("input.tool.name", "input.access.resource.root", "input.call.args.n")+": 2}[\"a\"] == "+m.one("1", "2"), "[y | y := "+m.place()+"] == "+m.one("[]", `["a"]`),
		"count({x | some x in names; not x in "+m.list()+"}) == "+m.one("0", "1"), "sprintf(\"%v\", ["+m.place()+"]) == "+m.constant(),
	)
}

func (m ruleMaker) condition(n int) string {
	switch m.IntN(12) {
	case 8:
		return fmt.Sprintf("some i%d, x%d in %s\n\ti%d %s %s\n\tx%d == %s", n, n, m.list(), n, m.one("==", "<", ">"), m.one("0", "1", `"a"`), n, m.value())
	case 9:
		return fmt.Sprintf("some p%d in pairs\n\tp%d[%s] == %s", n, n, m.one("0", "1"), m.value())
	case 10:
		return fmt.Sprintf("some k%d\n\t%s[k%d] == %s", n, m.one("input.call.args", "input.access.resource.segments", "names", "bounds", "data.table", "segments"), n, m.one(m.value(), fmt.Sprint("k", n))) +
			m.one("", fmt.Sprintf("\n\tk%d == %s", n, m.value()), fmt.Sprintf("\n\tk%d in names", n))
	case 11:
		return fmt.Sprintf("y%d := %s\n\t%s", n, m.one("lower("+m.place()+")", "twice("+m.place()+")", "["+m.place()+"]", "names", "kind"),
			m.one(fmt.Sprintf("y%d == %s", n, m.constant()), fmt.Sprintf("%s in y%d", m.value(), n), fmt.Sprintf("y%d[0] == %s", n, m.constant()), fmt.Sprintf("not y%d", n), fmt.Sprintf("y%d[_] == %s", n, m.value())))
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
	set := m.one("deny", "ask", "hold", "allow", "hint", "label", "limit")
	element, bound := fmt.Sprintf("%q", fmt.Sprint("rule ", n)), ""
	if set == "limit" && m.IntN(4) > 0 {
		return m.limit(n)
	}
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

// limit returns a rule of a budget. Several elements can have one name.
func (m ruleMaker) limit(n int) string {
	return fmt.Sprintf("limit contains {\"budget\": %q, \"max\": m, \"tools\": %s} if {\n\tsome m in %s\n\t%s\n}\n\n", m.one("calls", fmt.Sprint("calls ", n)),
		m.one(`["a"]`, `{"b", "a"}`, `["a", "b"]`, "[input.tool.name]"), m.one("[1, 2, 2]", "{1, 1.0}", "[3]", "input.call.args.list", "input.call.args"), m.condition(n))
}

// ruleHead is what the rules refer to.
const ruleHead = `package remit

helper if input.tool.name == "a"

some_a if { some role in input.principal.roles; role == "a" }

takes(x) if x == "a"

names contains lower(x) if some x in input.access.resource.segments

names contains input.tool.name if input.call.declared

has_names if count(names) > 2

kind := "a" if input.tool.name == "a"

kind := "b" if input.tool.version == "b"

default level := 0

level := 1 if input.call.declared

default flag := false

flag if input.access.dynamic

mixed := input.call.args.n if input.tool.name == "a"

pick(x, y) := x if x == y

pick(x, y) := "b" if x != y

first(list) := list[0]

size_of(x) := count(x)

twice(x) := [x, x]

apart(x) if not takes(x)

apart("b") if input.tool.name == "b"

only_b("b") if input.call.declared

picky(x) := "a" if { x == "a" } else := "b"

default fallen(_) := "b"

fallen(x) := "a" if x == "a"

nested(x) := pick(y, "a") if y := lower(x)

under(root, dir) if {
	input.access.resource.root == root
	startswith(input.access.resource.path, concat("", [dir, "/"]))
}

segments := [lower(s) | some s in input.access.resource.segments]

members[role] := 1 if some role in input.principal.roles

bounds := {"a": 1, "b": {"c": 2}, "n": false}

pairs := {["a", "b"], ["b", 1], ["workspace", "read"]}

constant := concat("/", ["a", "b"])

clash(x) := 1 if x == "a"

clash(x) := 2 if startswith(x, "a")

parts[x] := 1 if some x in ["a", "b"]

parts.c := 2 if input.tool.name == "a"

default listed := {y | some y in ["a"]}

listed := {"b"} if input.call.declared

over(s) := count([1 | some _ in s])

failing := to_number("x")

not_a if not input.tool.name == "a"

chosen := "a" if { input.tool.name == "a" } else := "b"

`
