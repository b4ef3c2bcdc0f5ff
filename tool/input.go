package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/toolaccess"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
)

// admit decodes, completes and validates an input, and computes all that it
// determines.
func (t Tool) admit(input any, limits canon.Limits) (in toolaccess.Input, err error) {
	value, text, err := t.t.read(input, limits)
	if err != nil {
		return in, err
	}
	in.Canonical = text
	if in.Exact, in.Bound, err = t.t.accesses(value); err != nil {
		return in, err
	}
	if in.Sums, err = t.t.sums(value); err != nil {
		return in, err
	}
	in.Class, in.Script = t.classOf(in.Canonical), t.scriptOf(in.Canonical)
	return in, nil
}

// scriptOf returns what the script of one call runs. It returns nil if the
// tool's function panics.
func (t Tool) scriptOf(input []byte) (script *perm.ScriptFacts) {
	defer func() {
		if recover() != nil {
			script = &perm.ScriptFacts{Commands: []perm.CommandFacts{}, Redirects: []perm.RedirectFacts{}, Dynamic: true, Error: "reading it panicked"}
		}
	}()
	if t.t.spec.ParseScript == nil {
		return nil
	}
	return t.t.spec.ParseScript(slices.Clone(input))
}

// classOf returns the effect class of one call. If the tool's function panics
// or returns no class, it returns the tool's class.
func (t Tool) classOf(input []byte) (class effect.Class) {
	defer func() {
		if recover() != nil {
			class = t.Class()
		}
	}()
	f := t.t.spec.ClassOf
	if f == nil {
		return t.Class()
	}
	switch class = f(slices.Clone(input)); {
	case !class.Valid():
		return t.Class()
	case class == effect.Pure && t.t.spec.holds != "":
		return effect.Reversible // the state of the tool is a change
	default:
		return class
	}
}

// read decodes an input, fills in the defaults of omitted arguments, and
// validates it. It also returns the canonical form, which the caller owns.
func (t *tool) read(input any, limits canon.Limits) (canon.Value, []byte, error) {
	given, text, err := toolaccess.Decode(input, limits)
	value := given
	if err == nil {
		value, err = t.input.Complete(given)
	}
	if err == nil {
		err = t.input.Validate(value)
	}
	if err != nil {
		return value, nil, err
	}
	if !value.Is(given) {
		text = value.Canonical()
	}
	return value, text, nil
}

// ClassFor returns the effect class of a call with this input: Class, or a
// milder one.
func (t Tool) ClassFor(input json.RawMessage) (effect.Class, error) {
	if t.t == nil {
		return effect.Pivot, fmt.Errorf("a tool that was never made: %w", ErrInvalid)
	}
	_, text, err := t.t.read(input, canon.Limits{Bytes: len(input), Depth: toolaccess.MaxDepth})
	if err != nil {
		return t.Class(), fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return t.classOf(text), nil
}

// Accesses returns the exact accesses that a call with this input requests
// before it runs. If there are none, the runtime authorizes the call of the
// tool itself. Accesses that the call requests while it runs are not included.
func (t Tool) Accesses(input json.RawMessage) ([]perm.ResourceAccess, error) {
	if t.t == nil {
		return nil, fmt.Errorf("a tool that was never made touches nothing: %w", ErrInvalid)
	}
	value, _, err := t.t.read(input, canon.Limits{Bytes: len(input), Depth: toolaccess.MaxDepth}) // the caller already holds the input in memory
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	exact, _, err := t.t.accesses(value)
	return exact, err
}

// NormalizeInput returns an input as the tool's code receives it: validated,
// canonical, and with the defaults of omitted arguments.
func (t Tool) NormalizeInput(input json.RawMessage) (json.RawMessage, error) {
	if t.t == nil {
		return nil, fmt.Errorf("a tool that was never made takes no input: %w", ErrInvalid)
	}
	_, text, err := t.t.read(input, canon.Limits{Bytes: len(input), Depth: toolaccess.MaxDepth})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return text, nil
}

// accesses computes the exact accesses of one call: each need whose parameters
// the input fills in, and the result of the tool's AccessFor.
func (t *tool) accesses(in canon.Value) (exact []perm.ResourceAccess, bound perm.Set, err error) {
	argument := func(name string) (string, bool) {
		v, ok := in.Get(name)
		if !ok || v.Kind() != canon.String {
			return "", false
		}
		return v.Text(), true
	}
	var limits []perm.ResourceAccess
	for _, n := range t.needs {
		if !filled(n.params, argument) {
			continue // an omitted optional argument names no resource
		}
		p, err := n.pattern.BindPattern(argument)
		if err != nil {
			return nil, bound, n.badPath(argument, err)
		}
		a := n.access
		a.Resource = p.String()
		limits = append(limits, a)
		if r, ok := p.Exact().Get(); ok && t.spec.parts == nil {
			a.Resource = r.String()
			exact = append(exact, a)
		}
	}
	if t.spec.AccessFor != nil {
		own, err := t.ownAccesses(in)
		if err != nil {
			return nil, bound, err
		}
		for _, a := range own {
			if !slices.Contains(exact, a) {
				exact = append(exact, a)
			}
		}
		limits = append(limits, own...)
	}
	if t.spec.Bound != nil {
		own, err := computed(in, t.spec.Bound)
		if err != nil {
			return nil, bound, err
		}
		limits = append(slices.DeleteFunc(own, func(a perm.ResourceAccess) bool { return !t.bound.Allows(a) }), exact...)
	}
	if t.spec.parts != nil { // the arguments are not those of the parts
		return exact, t.bound, nil
	}
	bound, err = perm.NewSet(limits...)
	return exact, bound, err
}

func (t *tool) ownAccesses(in canon.Value) ([]perm.ResourceAccess, error) {
	own, err := computed(in, t.spec.AccessFor)
	for i, a := range own {
		if !t.bound.Allows(a) {
			return nil, fmt.Errorf("access %d, %s, lies outside what the tool declares to need", i+1, a.Action)
		}
	}
	return own, err
}

// computed returns the accesses that a function of the tool computes for one
// call, in canonical form.
func computed(in canon.Value, f func(json.RawMessage) ([]perm.ResourceAccess, error)) (own []perm.ResourceAccess, err error) {
	defer func() {
		if p := recover(); p != nil {
			own, err = nil, fmt.Errorf("computing the accesses panicked (%T)", p)
		}
	}()
	if own, err = f(in.Canonical()); err != nil {
		return nil, err
	}
	own = slices.Clone(own) // the tool can keep its slice
	for i, a := range own {
		r, err := perm.ParseResource(a.Resource)
		if err != nil {
			return nil, fmt.Errorf("access %d: %w", i+1, err)
		}
		own[i].Resource = r.String()
	}
	return own, nil
}

func filled(params []string, argument func(string) (string, bool)) bool {
	for _, p := range params {
		if _, ok := argument(p); !ok {
			return false
		}
	}
	return true
}

// badPath returns the argument that a need cannot be filled in with: the one
// that is wrong even if all others are harmless.
func (n need) badPath(argument func(string) (string, bool), err error) error {
	name := strings.Join(n.params, ", ")
	for _, p := range n.params {
		_, alone := n.pattern.BindPattern(func(other string) (string, bool) {
			if other == p {
				return argument(p)
			}
			return "x", true
		})
		if alone != nil {
			name, err = p, alone
			break
		}
	}
	if errors.Is(err, perm.ErrOutside) {
		return fmt.Errorf("argument %q: the path leaves its root; valid is a relative path inside it, without \"..\"", name)
	}
	if rest, ok := strings.CutPrefix(err.Error(), "argument "+name); ok {
		return fmt.Errorf("argument %q%s", name, rest)
	}
	return fmt.Errorf("argument %q: %w", name, err)
}

func (t *tool) parseNeeds() error {
	var all []perm.ResourceAccess
	for i, a := range t.spec.Needs {
		if !a.Action.Valid() {
			return fmt.Errorf("need %d: action %q: %w", i+1, a.Action, new(perm.Action).UnmarshalText([]byte(a.Action)))
		}
		p, err := perm.ParsePattern(a.Resource)
		if err != nil {
			return fmt.Errorf("need %d: %w", i+1, err)
		}
		n := need{access: a, pattern: p, params: p.Params()}
		if err := t.checkParams(n.params); err != nil {
			return fmt.Errorf("need %d: %w", i+1, err)
		}
		t.needs, all = append(t.needs, n), append(all, a)
	}
	var err error
	t.bound, err = perm.NewSet(all...)
	return err
}

// checkParams refuses a need that no argument can fill in. Otherwise the
// runtime would authorize less than the call does.
func (t *tool) checkParams(params []string) error {
	doc, err := canon.Parse(t.input.Canonical(), canon.DefaultLimits())
	if err != nil {
		return err
	}
	properties, _ := doc.Get("properties")
	for _, p := range params {
		argument, ok := properties.Get(p)
		if !ok {
			return fmt.Errorf("parameter {%s} is no argument of the tool", p)
		}
		// Only a string can be filled in. The runtime would not authorize the
		// access that another type names.
		if kind, _ := argument.Get("type"); kind.Text() != "string" {
			return fmt.Errorf("parameter {%s} names an argument whose schema does not say \"type\": \"string\"", p)
		}
	}
	return nil
}
