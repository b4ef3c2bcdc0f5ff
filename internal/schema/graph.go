package schema

import (
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// part is one subschema, with the subschemas that the validator checks next.
// The validator does not expose this, and two uses need it: the declared names
// of a place, and the work that a value needs.
type part struct {
	rank       int     // higher than the rank of every part beside it
	beside     []*part // parts that judge the same value
	included   []*part // those of beside that must all accept it
	properties map[string]*part
	patterns   []pattern
	additional *part // nil: any value
	rest       *part // unevaluatedProperties
	names      *part
	prefix     []*part
	items      *part
	contains   *part
	restItems  *part
	types      []string
	refuses    bool   // accepts nothing
	open       bool   // says that it accepts members that it does not declare
	preset     *any   // the default; nil: none
	location   string // URL of the subschema, as the validator's errors name it
}

type pattern struct {
	re jsonschema.Regexp
	to *part
}

// graph makes the parts of a compiled schema, each once.
type graph struct {
	parts map[*jsonschema.Schema]*part
	busy  map[*jsonschema.Schema]bool
	next  []*jsonschema.Schema // found inside values, to be finished after those beside
	rank  int

	presets []defaultValue
}

// newGraph returns the part of the root, and whether any part has a default. It
// rejects a schema that judges a value by judging the same value again.
func newGraph(root *jsonschema.Schema) (top *part, presets bool, err error) {
	g := graph{parts: map[*jsonschema.Schema]*part{}, busy: map[*jsonschema.Schema]bool{}}
	g.next = append(g.next, root)
	for len(g.next) > 0 {
		s := g.next[len(g.next)-1]
		g.next = g.next[:len(g.next)-1]
		if err := g.finish(s); err != nil {
			return nil, false, err
		}
	}
	return g.parts[root], usable(g.presets), nil
}

// part returns the part of a schema that judges values inside, and queues it
// for finish.
func (g *graph) part(s *jsonschema.Schema) *part {
	if s == nil {
		return nil
	}
	p := g.parts[s]
	if p == nil {
		p = &part{rank: -1}
		g.parts[s] = p
		g.next = append(g.next, s)
	}
	return p
}

// finish fills in a part, after every part beside it.
func (g *graph) finish(s *jsonschema.Schema) error {
	p := g.part(s)
	if g.busy[s] {
		return schemaError(location(s.Location), "refers to itself without end")
	}
	if p.rank >= 0 {
		return nil
	}
	if !strings.HasPrefix(s.Location, home+"#") { // the compiler contains the drafts' own schemas and would use them
		return outside()
	}
	g.busy[s] = true
	included, others := beside(s)
	for _, t := range append(slices.Clone(included), others...) {
		if err := g.finish(t); err != nil {
			return err
		}
		p.beside = append(p.beside, g.parts[t])
	}
	p.included = p.beside[:len(included)]
	g.inside(p, s)
	g.busy[s] = false
	p.rank = g.rank
	g.rank++
	return nil
}

// beside returns the schemas that judge the same value: those that must all
// accept it, and the others.
func beside(s *jsonschema.Schema) (included, others []*jsonschema.Schema) {
	if s.Ref != nil {
		included = append(included, s.Ref)
	}
	if s.DynamicRef != nil {
		included = append(included, s.DynamicRef.Ref)
	}
	included = append(included, s.AllOf...)
	others = append(others, s.AnyOf...)
	others = append(others, s.OneOf...)
	for _, t := range []*jsonschema.Schema{s.Not, s.If, s.Then, s.Else} {
		if t != nil {
			others = append(others, t)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.DependentSchemas)) {
		others = append(others, s.DependentSchemas[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
		if t, ok := s.Dependencies[name].(*jsonschema.Schema); ok {
			others = append(others, t)
		}
	}
	return included, others
}

// inside adds the schemas that judge members, names and elements.
func (g *graph) inside(p *part, s *jsonschema.Schema) {
	p.location = s.Location
	p.refuses = s.Bool != nil && !*s.Bool
	if p.preset = s.Default; p.preset != nil {
		g.presets = append(g.presets, defaultValue{part: p, of: s})
	}
	if s.Types != nil {
		p.types = s.Types.ToStrings()
	}
	if len(s.Properties) > 0 {
		p.properties = make(map[string]*part, len(s.Properties))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p.properties[name] = g.part(s.Properties[name])
	}
	for re, t := range s.PatternProperties {
		p.patterns = append(p.patterns, pattern{re: re, to: g.part(t)})
	}
	switch additional := s.AdditionalProperties.(type) {
	case bool:
		if p.open = additional; !additional {
			p.additional = &part{refuses: true}
		}
	case *jsonschema.Schema:
		p.additional = g.part(additional)
	}
	p.rest = g.part(s.UnevaluatedProperties)
	p.names = g.part(s.PropertyNames)
	for _, t := range s.PrefixItems {
		p.prefix = append(p.prefix, g.part(t))
	}
	p.items = g.part(s.Items2020)
	p.contains = g.part(s.Contains)
	p.restItems = g.part(s.UnevaluatedItems)
}

// closed reports whether no object with an undeclared member is accepted.
func (p *part) closed() bool {
	if len(p.patterns) == 0 && (p.additional != nil && p.additional.refuses || p.rest != nil && p.rest.refuses) {
		return true
	}
	return slices.ContainsFunc(p.included, (*part).closed)
}
