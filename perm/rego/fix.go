package rego

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/internal/nearest"
)

const fixEmpty = "begin the file with package remit, or remove it"

// fixFor says what to write instead, for an error of OPA's.
func fixFor(e *ast.Error) string {
	if d, ok := e.Details.(*ast.RefErrInvalidDetail); ok && len(d.OneOf) > 0 && d.Pos < len(d.Ref) {
		return fixName(plain(d.Ref[d.Pos].Value), names(d.OneOf))
	}
	if name, found := strings.CutPrefix(e.Message, "undefined function "); found {
		return fixFunction(name)
	}
	switch {
	case strings.Contains(e.Message, "keyword is required"):
		return `write rules as: allow contains "why" if { conditions }`
	case strings.Contains(e.Message, "empty module"):
		return fixEmpty
	case e.Code == ast.ParseErr:
		return "see the line for a misplaced or missing word, bracket or quote"
	case e.Code == ast.UnsafeVarErr:
		return "give the variable a value in the rule, declare it with some, or quote it if it is a text"
	case e.Code == ast.RecursionErr:
		return "a rule cannot depend on itself; break the circle with a helper rule"
	case e.Code == ast.TypeErr:
		return "the two sides can never be of one type; compare like with like"
	default:
		return ""
	}
}

func fixFunction(name string) string {
	if why := cutBuiltin(name); why != "" {
		return name + " is not available (" + why + "); what a decision depends on has to be in the input, such as input.time"
	}
	return "define the function, or import the package that does"
}

// fixName suggests the closest name, or lists what there is.
func fixName(name string, known []string) string {
	if c := nearest.Name(name, known); c != "" {
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

// plain writes a value as its author would say it: texts without quotes.
func plain(v ast.Value) string {
	if s, ok := v.(ast.String); ok {
		return string(s)
	}
	return v.String()
}
