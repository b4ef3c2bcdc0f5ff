package rego

import (
	"strings"
	"unicode"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/remit-dev/remit/internal/suggest"
)

const (
	fixEmpty  = "begin the file with package remit, or remove it"
	fixSyntax = "see the line for a misplaced or missing word, bracket or quote"
)

// fix returns a function that suggests a replacement for an OPA error about a
// text.
func (m *modules) fix(text string) func(*ast.Error) string {
	lines := strings.Split(text, "\n")
	return func(e *ast.Error) string {
		line := ""
		if e.Location != nil && e.Location.Row > 0 && e.Location.Row <= len(lines) {
			line = strings.TrimSpace(lines[e.Location.Row-1])
		}
		return m.fixFor(e, line)
	}
}

// fixFor suggests a replacement for the text of a line.
func (m *modules) fixFor(e *ast.Error, line string) string {
	if d, ok := e.Details.(*ast.RefErrInvalidDetail); ok && len(d.OneOf) > 0 && d.Pos < len(d.Ref) {
		return fixName(plain(d.Ref[d.Pos].Value), names(d.OneOf))
	}
	if name, found := strings.CutPrefix(e.Message, "undefined function "); found {
		return m.fixFunction(name)
	}
	set := strings.FieldsFunc(line, func(r rune) bool { return !unicode.IsLetter(r) })
	if len(set) == 0 || !isSet(set[0]) {
		set = []string{"allow"}
	}
	switch {
	case strings.Contains(e.Message, "keyword is required"):
		return `write rules as: ` + set[0] + ` contains "why" if { conditions }`
	case strings.Contains(e.Message, "unexpected if keyword") && strings.HasPrefix(line, set[0]):
		return `write ` + set[0] + ` contains "why" if { conditions }`
	case strings.Contains(e.Message, "empty module"):
		return fixEmpty
	case e.Code == ast.ParseErr && otherWords(e.Message, line) != "":
		return otherWords(e.Message, line)
	case e.Code == ast.ParseErr:
		return fixSyntax
	case e.Code == ast.UnsafeVarErr && strings.HasPrefix(e.Message, "var _ "):
		return "under not nothing is gone through: write not VALUE in LIST, or a helper rule that goes through it"
	case e.Code == ast.UnsafeVarErr && (strings.HasPrefix(e.Message, "var undefined ") || strings.HasPrefix(e.Message, "var nil ")):
		return "a missing field is undefined: write not FIELD if it must be missing, and FIELD alone if it must be there"
	case e.Code == ast.UnsafeVarErr:
		return "give the variable a value in the rule, declare it with some, or quote it if it is a text"
	case e.Code == ast.RecursionErr:
		return "a rule cannot depend on itself; break the circle with a helper rule"
	case e.Code == ast.TypeErr && strings.HasPrefix(e.Message, "and: "):
		return "& takes two sets: write some x in LIST, and x in {…}"
	case e.Code == ast.TypeErr && m.arity(e) != "":
		return m.arity(e)
	case e.Code == ast.TypeErr && detail(e) != "":
		return detail(e)
	case e.Code == ast.TypeErr && called(e) != "":
		return called(e)
	case e.Code == ast.TypeErr:
		return "the two sides can never be of one type; compare like with like"
	default:
		return ""
	}
}

// otherWords suggests what to write instead of an operator or a quote of another
// language.
func otherWords(message, line string) string {
	switch {
	case strings.Contains(message, "else keyword cannot be used"):
		return "write a second rule instead of else"
	case strings.Contains(message, "escape sequence"):
		return "write a pattern between backquotes, or each backslash twice"
	case strings.Contains(message, "illegal ! character"):
		return "write not and the condition"
	case strings.Contains(message, "unexpected or token"), strings.Contains(line, "||"), strings.Contains(message, "var cannot be used for rule name") && strings.Contains(line, " or "):
		return "write a rule for each case, or VALUE in {…}"
	case strings.Contains(message, "unexpected and token"), strings.Contains(line, "&&"), strings.Contains(message, "var cannot be used for rule name") && strings.Contains(line, " and "):
		return "write each condition on a line of its own: all of them must hold"
	case strings.Contains(message, "illegal token") && strings.Contains(line, "'"):
		return `write texts in double quotes`
	}
	return ""
}

// arity names the parameters of a function that got another number of values.
func (m *modules) arity(e *ast.Error) string {
	after, found := strings.CutPrefix(e.Message, "function ")
	name, _, wrong := strings.Cut(after, " has arity ")
	if !found || !wrong {
		return ""
	}
	for _, file := range m.names {
		for _, rule := range m.parsed[file].Rules {
			if len(rule.Head.Args) == 0 || "data."+packageName(m.parsed[file])+"."+headName(rule) != name {
				continue
			}
			var params []string
			for _, arg := range rule.Head.Args {
				params = append(params, arg.String())
			}
			return "write " + strings.TrimPrefix(name, "data.remit.") + "(" + strings.Join(params, ", ") + ")"
		}
	}
	return "give the function as many values as it takes"
}

// called suggests arguments for a function, or how to reach the elements of a
// list.
func called(e *ast.Error) string {
	name, _, _ := strings.Cut(e.Message, ": ")
	switch {
	case name == "contains" || name == "startswith" || name == "endswith":
		return name + " takes two texts: write VALUE in LIST for a list, and a field of an object"
	case name == "sprintf":
		return `the values of sprintf are a list: write sprintf("…", [VALUE])`
	case strings.HasPrefix(name, "time."):
		return name + " takes nanoseconds: write time.parse_rfc3339_ns(input.time), or lib.hours and lib.on"
	}
	d, ok := e.Details.(*ast.RefErrInvalidDetail)
	if !ok || d.Pos <= 0 || d.Pos >= len(d.Ref) {
		return ""
	}
	if _, ofList := d.Want.(types.Number); !ofList {
		return ""
	}
	list, part := d.Ref[:d.Pos].String(), d.Ref[d.Pos].Value
	if name, isName := part.(ast.String); isName {
		return list + " is a list: write " + name.String() + " in " + list + " for an element, or some x in " + list + " and x." + string(name) + " for a field of one"
	}
	return list + " is a list that counts from 0: write " + list + "[count(" + list + ") - 1] for its last element"
}

// detail suggests how to compare values of two types.
func detail(e *ast.Error) string {
	d, ok := e.Details.(*ast.UnificationErrDetail)
	if !ok {
		return ""
	}
	is := func(a, b string) bool {
		left, right := types.Sprint(d.Left), types.Sprint(d.Right)
		return strings.HasPrefix(left, a) && strings.HasPrefix(right, b) || strings.HasPrefix(left, b) && strings.HasPrefix(right, a)
	}
	switch {
	case is("array", "string"):
		one, other, _ := strings.Cut(strings.Trim(string(e.Location.Text), " "), " == ")
		if strings.HasPrefix(one, "input.") && strings.HasPrefix(types.Sprint(d.Left), "array") {
			return "it is a list: write " + other + " in " + one
		}
		return "it is a list: write VALUE in LIST"
	case is("number", "string") && strings.HasSuffix(strings.TrimSpace(string(e.Location.Text)), `"`):
		return "write the number without quotes"
	case is("string", "set"):
		return "write in instead of ==: VALUE in {…}"
	case strings.HasPrefix(types.Sprint(d.Left), "null"), strings.HasPrefix(types.Sprint(d.Right), "null"):
		return "a missing field is undefined and never null: write not FIELD"
	case is("object", "string") && strings.HasPrefix(string(e.Location.Text), "input.access.resource "):
		return "it is an object: compare a field of it, such as input.access.resource.text for the whole resource"
	case is("object", "string"):
		return "it is an object: compare a field of it, such as some x in LIST; x.program == VALUE"
	}
	return ""
}

// functions returns the names of functions, with the positions of those that
// are rules.
func (m *modules) functions() map[string]string {
	all := map[string]string{}
	for name, b := range ast.BuiltinMap {
		if whyCut(b) == "" {
			all[name] = ""
		}
	}
	for _, file := range m.names {
		for _, rule := range m.parsed[file].Rules {
			if len(rule.Head.Args) > 0 {
				all["data."+packageName(m.parsed[file])+"."+headName(rule)] = at(rule.Loc())
			}
		}
	}
	return all
}

func (m *modules) fixFunction(name string) string {
	all := m.functions()
	for full, where := range all {
		if strings.HasSuffix(full, "."+name) && where != "" {
			return "add import " + full[:strings.LastIndexByte(full, '.')] + ": it is at " + where
		}
	}
	if why := cutBuiltin(name); why != "" {
		return name + " is not available (" + why + "); what a decision depends on has to be in the input, such as input.time"
	}
	if right := otherNames()[name]; right != "" {
		return "write " + right
	}
	if near := suggest.Name(name, sortedKeys(all)); near != "" {
		return "did you mean " + strings.TrimPrefix(near, "data.") + "?"
	}
	return "define the function, or import the package that does"
}

// otherNames returns functions of other languages, and those of Rego for them.
func otherNames() map[string]string {
	return map[string]string{
		"len": "count", "length": "count", "size": "count", "toLower": "lower", "toUpper": "upper", "match": "regex.match",
		"matches": "regex.match", "includes": "VALUE in LIST", "has": "VALUE in LIST", "any": "some x in LIST", "all": "every x in LIST",
	}
}

// fixName suggests the closest name, or lists the known names.
func fixName(name string, known []string) string {
	if c := suggest.Name(name, known); c != "" {
		return "did you mean " + c + "?"
	}
	return "there is " + strings.Join(known, ", ")
}

func names(values []ast.Value) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = plain(v)
	}
	return out
}

// plain writes a value for people: texts without quotes.
func plain(v ast.Value) string {
	if s, ok := v.(ast.String); ok {
		return string(s)
	}
	return v.String()
}
