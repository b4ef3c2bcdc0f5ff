package rego

import (
	"strings"
	"unicode"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/remit-dev/remit/internal/suggest"
)

const fixEmpty = "begin the file with package remit, or remove it"

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
	case e.Code == ast.ParseErr:
		return "see the line for a misplaced or missing word, bracket or quote"
	case e.Code == ast.UnsafeVarErr && strings.HasPrefix(e.Message, "var _ "):
		return "under not nothing is gone through: write not VALUE in LIST, or a helper rule that goes through it"
	case e.Code == ast.UnsafeVarErr:
		return "give the variable a value in the rule, declare it with some, or quote it if it is a text"
	case e.Code == ast.RecursionErr:
		return "a rule cannot depend on itself; break the circle with a helper rule"
	case e.Code == ast.TypeErr && strings.HasPrefix(e.Message, "and: "):
		return "& takes two sets: write some x in LIST, and x in {…}"
	case e.Code == ast.TypeErr && detail(e) != "":
		return detail(e)
	case e.Code == ast.TypeErr:
		return "the two sides can never be of one type; compare like with like"
	default:
		return ""
	}
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
	if near := suggest.Name(name, sortedKeys(all)); near != "" {
		return "did you mean " + strings.TrimPrefix(near, "data.") + "?"
	}
	return "define the function, or import the package that does"
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
