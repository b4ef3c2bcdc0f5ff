package rego

import (
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

// shapeAsk describes the form of an element of ask that is an object.
const shapeAsk = `write {"reason": "why", "remember": "session", "keys": {"what the call does"}}, or {"reason": "why", "remember": "never"}`

// askOf parses an element of ask that is an object: a reason, and what an
// approval covers beside the call.
func askOf(object ast.Object) (reason string, r perm.Remember, err error) {
	object.Foreach(func(name, value *ast.Term) {
		key, _ := name.Value.(ast.String)
		ok := false
		switch key {
		case "reason":
			ok = readText(&reason, value)
		case "remember":
			ok = readText(&r.Scope, value)
		case "keys":
			ok = readTexts(&r.Keys, value)
		default:
			err = fmt.Errorf("an ask has no field %s", name)
			return
		}
		if !ok {
			err = fmt.Errorf("the field %s of an ask has the wrong type", name)
		}
	})
	slices.Sort(r.Keys)
	r.Keys = slices.Compact(r.Keys)
	switch {
	case err != nil:
	case reason == "":
		err = fmt.Errorf("an ask names its reason")
	default:
		err = r.Check()
	}
	return reason, r, err
}

// checkAsk checks the parts of an element of ask that its rule determines alone. A
// part that depends on the request counts as valid.
func checkAsk(object ast.Object) error {
	keys := object.Get(ast.StringTerm("keys")) != nil
	valid := map[ast.String]*ast.Term{"reason": ast.StringTerm("x"), "remember": ast.StringTerm(perm.RememberNever)}
	if keys {
		valid["remember"], valid["keys"] = ast.StringTerm(perm.RememberSession), ast.ArrayTerm(ast.StringTerm("x"))
	}
	known, computed := ast.NewObject(), false
	object.Foreach(func(key, value *ast.Term) {
		name, text := key.Value.(ast.String)
		computed = computed || !text
		switch {
		case !text:
		case !ast.IsConstant(value.Value) && valid[name] != nil:
			known.Insert(key, valid[name])
		default:
			known.Insert(key, value)
		}
	})
	if computed { // its name can be any of the missing ones
		return nil
	}
	_, _, err := askOf(known)
	return err
}

// remember returns what an approval covers if there is a reason to ask: nothing
// beside the call, unless each reason says so and the call is not held.
func (a setElements) remember() perm.Remember {
	out := a[setAsk][0].remember
	for _, e := range a[setAsk][1:] {
		out = out.Join(e.remember)
	}
	if len(a[setHold]) > 0 {
		out = out.Join(perm.Remember{})
	}
	return out
}
