package schema

import (
	"errors"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// problem is one problem, at one place. The text follows the name of the place.
type problem struct {
	path []string
	text string
	// want holds the wanted types if the type is the only fault; it
	// distinguishes alternatives.
	want []string
	got  string
}

// maxProblems is the maximum number of problems in one error.
const maxProblems = 5

// tidy sorts problems and drops duplicates.
func tidy(problems []problem) []problem {
	slices.SortStableFunc(problems, func(a, b problem) int {
		if c := slices.Compare(a.path, b.path); c != 0 {
			return c
		}
		return strings.Compare(a.text, b.text)
	})
	return slices.CompactFunc(problems, func(a, b problem) bool {
		return a.text == b.text && slices.Equal(a.path, b.path)
	})
}

// refuse returns the error for a value: the members with a wrong case, and the
// problems that the validator found.
func (w messageText) refuse(root *part, v canon.Value, variants []problem, found error) error {
	d := describer{words: w, seen: map[string]place{}, flagged: map[string]bool{}}
	again := walk{seen: d.seen}
	again.all(root, v)
	for _, p := range variants {
		d.flagged[joined(p.path)] = true
	}
	problems := slices.Clone(variants)
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](found); ok {
		problems = append(problems, d.flatten(invalid)...)
	}
	problems = tidy(problems)
	if len(problems) == 0 { // only if the validator fails in an unknown way
		problems = []problem{{text: "does not match its schema"}}
	}
	return &invalidError{text: w.list(problems)}
}

// describer converts the validator's tree of errors into problems. It never
// uses the validator's own texts, because they contain values.
type describer struct {
	words messageText
	// seen holds the declarations for each object of the value, flagged the
	// members that are already a problem.
	seen    map[string]place
	flagged map[string]bool
}

func (d *describer) flatten(e *jsonschema.ValidationError) []problem {
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		return d.flattenAll(e.Causes)
	case *kind.AnyOf:
		return d.alternatives(e)
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			return one(e, "fits more than one of the allowed forms, want exactly one")
		}
		return d.alternatives(e)
	case *kind.Required:
		return d.missing(e.InstanceLocation, k.Missing, "")
	case *kind.DependentRequired:
		return d.missing(e.InstanceLocation, k.Missing, k.Prop)
	case *kind.Dependency:
		return d.missing(e.InstanceLocation, k.Missing, k.Prop)
	case *kind.AdditionalProperties:
		return d.unknown(e.InstanceLocation, k.Properties)
	case *kind.FalseSchema:
		return d.refused(e)
	case *kind.PropertyNames:
		return d.badName(e, k.Property)
	case *kind.Type:
		p := problem{path: e.InstanceLocation, got: k.Got, want: k.Want}
		p.text = p.typeText()
		return []problem{p}
	default:
		return one(e, textOf(e.ErrorKind))
	}
}

func (d *describer) flattenAll(causes []*jsonschema.ValidationError) []problem {
	var problems []problem
	for _, c := range causes {
		problems = append(problems, d.flatten(c)...)
	}
	return problems
}

func one(e *jsonschema.ValidationError, text string) []problem {
	return []problem{{path: e.InstanceLocation, text: text}}
}

func under(path []string, token string) []string { return append(slices.Clone(path), token) }

// badName describes a rejected member name. The validator's path in such an
// error is shared: later steps overwrite it. A schema rejects a name in every
// object that it judges, so badName names all of those.
func (d *describer) badName(e *jsonschema.ValidationError, name string) []problem {
	text := "has a name that is not allowed" + d.first(e.Causes)
	var problems []problem
	for _, at := range d.seen {
		_, there := at.value.Get(name)
		if there && slices.ContainsFunc(at.loads, func(l load) bool { return l.names != nil && l.names.location == e.SchemaURL }) {
			problems = append(problems, problem{path: under(at.path, name), text: text})
		}
	}
	return problems
}

// first returns the first problem of some causes, as the end of a longer text.
func (d *describer) first(causes []*jsonschema.ValidationError) string {
	problems := tidy(d.flattenAll(causes))
	if len(problems) == 0 {
		return ""
	}
	return ", it " + problems[0].text
}

// missing returns a problem for each missing member. because names the member
// that requires them, if there is one.
func (d *describer) missing(path []string, names []string, because string) []problem {
	var problems []problem
	for _, name := range names {
		text := "is missing"
		if types := d.typesOf(path, name); len(types) > 0 {
			text += ", want " + oneOf(types)
		}
		if because != "" {
			text += `, required because "` + cut(because) + `" is there`
		}
		problems = append(problems, problem{path: under(path, name), text: text})
	}
	return problems
}

// unknown returns a problem for each member that is not declared.
func (d *describer) unknown(path []string, names []string) []problem {
	known := d.declared(path)
	var problems []problem
	for _, name := range names {
		at := under(path, name)
		if !d.flagged[joined(at)] {
			problems = append(problems, problem{path: at, text: unknownText(name, known)})
		}
	}
	return problems
}

// refused describes a value whose schema is false. Below unevaluatedProperties
// that means an unknown name.
func (d *describer) refused(e *jsonschema.ValidationError) []problem {
	path := e.InstanceLocation
	if len(path) > 0 && strings.HasSuffix(e.SchemaURL, "/unevaluatedProperties") {
		return d.unknown(path[:len(path)-1], path[len(path)-1:])
	}
	return one(e, "is not allowed here")
}

// alternatives describes a value that fits none of several forms. It drops
// forms of another type than the value's. If one form remains, that one was
// meant.
func (d *describer) alternatives(e *jsonschema.ValidationError) []problem {
	var forms, near [][]problem
	var want []string
	got := ""
	for _, c := range e.Causes {
		form := tidy(d.flatten(c))
		if len(form) == 0 { // all of it is already flagged
			continue
		}
		forms = append(forms, form)
		i := slices.IndexFunc(form, func(p problem) bool { return p.want != nil && len(p.path) == len(e.InstanceLocation) })
		if i < 0 {
			near = append(near, form)
			continue
		}
		want, got = append(want, form[i].want...), form[i].got
	}
	switch {
	case len(forms) == 0:
		return nil
	case len(near) == 1:
		return near[0]
	case len(near) == 0:
		p := problem{path: e.InstanceLocation, got: got, want: dedupe(want)}
		p.text = p.typeText()
		return []problem{p}
	}
	return one(e, d.words.forms(near))
}

// declared returns the declared names of the object at a path, in order.
func (d *describer) declared(path []string) []string {
	var names []string
	for _, l := range d.seen[joined(path)].loads {
		for name := range l.properties {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// typesOf returns the declared types of a missing member.
func (d *describer) typesOf(path []string, name string) []string {
	_, inside := below(d.seen[joined(path)].loads, name)
	if len(inside) == 0 {
		return nil
	}
	for _, l := range expand(inside) {
		if len(l.types) > 0 {
			return l.types
		}
	}
	return nil
}
