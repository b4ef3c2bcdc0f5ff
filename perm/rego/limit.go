package rego

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

// shapeLimit describes the form of an element of limit.
const shapeLimit = `write {"budget": "payments an hour", "max": 100, "sum": "spend", "per": "principal", "window": "1h", "tools": ["pay"]}; ` +
	`sum, per, window and tools may be left out`

// limitOf parses an element of limit that is an object: a budget, which the
// runtime checks against the counts of the session at the call. An element that
// is text denies.
func limitOf(object ast.Object) (perm.Limit, error) {
	var l perm.Limit
	var err error
	object.Foreach(func(name, value *ast.Term) {
		key, _ := name.Value.(ast.String)
		ok := false
		switch key {
		case "budget":
			ok = readText(&l.Budget, value)
		case "sum":
			ok = readText(&l.Sum, value) && l.Sum != ""
		case "per":
			ok = readText(&l.Per, value) && l.Per != ""
		case "window":
			ok = readText(&l.Window, value) && l.Window != ""
		case "max":
			var n ast.Number
			n, ok = value.Value.(ast.Number)
			l.Max = json.Number(n)
		case "tools":
			ok = readTexts(&l.Tools, value)
		default:
			err = fmt.Errorf("a limit has no field %s", name)
			return
		}
		if !ok {
			err = fmt.Errorf("the field %s of a limit has the wrong type", name)
		}
	})
	if err == nil {
		err = l.Check()
	}
	return l, err
}

func readText(to *string, term *ast.Term) bool {
	s, ok := term.Value.(ast.String)
	*to = string(s)
	return ok
}

// readTexts reads an array or a set. The texts of a set are in order.
func readTexts(to *[]string, term *ast.Term) bool {
	list, ok := term.Value.(*ast.Array)
	if set, isSet := term.Value.(ast.Set); isSet {
		list, ok = set.Sorted(), true
	}
	if !ok {
		return false
	}
	for i := range list.Len() {
		var s string
		if !readText(&s, list.Elem(i)) {
			return false
		}
		*to = append(*to, s)
	}
	return true
}

// compareLimits orders budgets of one name. Nil is no budget.
func compareLimits(a, b *perm.Limit) int {
	if a == nil || b == nil {
		return cmp.Compare(boolean(a != nil), boolean(b != nil))
	}
	return cmp.Or(
		strings.Compare(string(a.Max), string(b.Max)), strings.Compare(a.Sum, b.Sum), strings.Compare(a.Per, b.Per),
		strings.Compare(a.Window, b.Window), slices.Compare(a.Tools, b.Tools),
	)
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// limits returns the budgets among the elements of limit.
func (a setElements) limits() []perm.Limit {
	var out []perm.Limit
	for _, e := range a[setLimit] {
		if e.limit != nil {
			l := *e.limit
			l.At = e.at
			out = append(out, l)
		}
	}
	return out
}
