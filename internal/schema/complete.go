package schema

import (
	"github.com/remit-dev/remit/internal/canon"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// mostFilled bounds the work of completing one value: visited members and
// elements, once for each subschema that judges them.
const mostFilled = 1_000_000

// Complete returns the value with the schema's defaults for missing members:
// declared members of the value itself, of its members and of its elements. It
// does not fill in members that only an alternative or a condition declares, or
// members of a default. The schema still has to judge the result.
func (s *Schema) Complete(v canon.Value) (canon.Value, error) {
	if s == nil || s.root == nil || !s.presets {
		return v, nil
	}
	f := defaultFiller{left: mostFilled}
	whole, changed := f.fill(s.root, v.Any())
	switch {
	case f.left < 0:
		return v, &invalidError{text: "the input is too large for its schema, which would take too long to fill in"}
	case !changed:
		return v, nil
	}
	return canon.From(whole)
}

// defaultFiller completes one value.
type defaultFiller struct{ left int }

// fill returns the value with its defaults, and whether it changed. It may
// change the value in place, because the value was made for it.
func (f *defaultFiller) fill(p *part, v any) (filled any, changed bool) {
	if f.left--; p == nil || f.left < 0 {
		return v, false
	}
	switch v := v.(type) {
	case map[string]any:
		changed = f.members(p, v)
	case []any:
		for i, e := range v {
			to := p.items
			if i < len(p.prefix) {
				to = p.prefix[i]
			}
			one, other := f.fill(to, e)
			v[i], changed = one, changed || other
		}
	}
	for _, q := range p.included {
		_, other := f.fill(q, v)
		changed = changed || other
	}
	return v, changed
}

func (f *defaultFiller) members(p *part, object map[string]any) (changed bool) {
	for name, to := range p.properties {
		member, there := object[name]
		switch {
		case there:
			_, other := f.fill(to, member)
			changed = changed || other
		case to.preset != nil:
			object[name] = *to.preset
			changed = true
		}
	}
	return changed
}

// defaultValue is a default, and the schema that it must satisfy.
type defaultValue struct {
	part *part
	of   *jsonschema.Schema
}

// usable reports whether there are defaults to fill in. It ignores a default
// that its own schema rejects, such as null for a text: descriptions by other
// authors have such defaults, and a call without the member is valid.
func usable(all []defaultValue) (some bool) {
	for _, one := range all {
		v, err := canon.From(*one.part.preset)
		w := walk{}
		if err != nil || !w.all(one.part, v) || one.of.Validate(*one.part.preset) != nil {
			one.part.preset = nil
			continue
		}
		some = true
	}
	return some
}
