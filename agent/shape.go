package agent

import (
	"sync"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/origin"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// shapes holds the shapes of tools that were asked for, by their digests.
type shapes struct{ of sync.Map }

// shapeOf returns the shape of a tool of the runtime, or nil if there is no such
// tool with this declaration any more.
func (rt *Runtime) shapeOf(ref record.ToolRef) *shape {
	if known, is := rt.shapes.of.Load(ref.Digest); is {
		return known.(*shape) //nolint:errcheck,forcetypeassert // nothing else is stored
	}
	for _, t := range rt.tools.Load().Versions(ref.Name) {
		if t.Digest() == ref.Digest {
			made := shapeOf(t)
			rt.shapes.of.Store(ref.Digest, made)
			return made
		}
	}
	return nil
}

// shape is what a tool declares of the values of its arguments and results.
type shape struct {
	names  map[string]bool // members that the schema of the input knows
	roles  origin.Paths[provenance.Role]
	fields origin.Paths[provenance.Trust]
	whole  bool // results are trusted as a whole
	trusts bool // something of a result is trusted
}

func shapeOf(t tool.Tool) *shape {
	spec := t.Spec()
	s := &shape{names: map[string]bool{}, roles: origin.PathsOf(spec.Roles, provenance.Authority, provenance.Payload, provenance.Selector)}
	if schema, err := canon.Parse(spec.Input, canon.DefaultLimits()); err == nil {
		s.properties(schema)
	}
	if c := spec.OutputContent; c != nil {
		s.whole, s.fields = c.Trust == provenance.Trusted, origin.PathsOf(c.Fields, provenance.Untrusted, provenance.Trusted)
		s.trusts = s.whole || len(c.Fields) > 0
	}
	return s
}

// properties adds the names of members that a schema declares at any place.
func (s *shape) properties(schema canon.Value) {
	for name, member := range schema.Members() {
		if name == "properties" {
			for property := range member.Members() {
				s.names[property] = true
			}
		}
		s.properties(member)
	}
	for _, element := range schema.Elements() {
		s.properties(element)
	}
}

func (s *shape) trusted(leaf origin.Leaf) bool {
	if trust, is := s.fields.Find(leaf.Pointer); is && !leaf.Name {
		return trust == provenance.Trusted
	}
	return s.whole
}
