package rego

import (
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

// decisionState is what one decision needs: the request, its key, and the parts
// of its input document, each built once and only if a rule asks for it. A
// decision takes the state from a pool, and nothing of it stays in the result.
type decisionState struct {
	document
	request perm.Request
	key     []byte
	plan    *plan
	terms   []*ast.Term // by the number of the part
	built   []bool
	whole   *ast.Term
}

var states = sync.Pool{New: func() any { return &decisionState{} }}

// newState returns the state for a decision. The parts are those of the document.
func newState(k *keys, parts []inputField, r *perm.Request) *decisionState {
	s := states.Get().(*decisionState) //nolint:forcetypeassert // the pool holds nothing else
	s.request, s.keys = r.Filled(), k
	if len(s.terms) < len(parts) {
		s.terms, s.built = make([]*ast.Term, len(parts)), make([]bool, len(parts))
	}
	return s
}

// checkedInput returns the checked document for a plan.
func (s *decisionState) checkedInput(p *plan) (*ast.Term, error) {
	s.plan = p
	if err := check(p, &s.request); err != nil {
		return nil, err
	}
	return s.input()
}

// release returns the state to the pool.
func (s *decisionState) release() {
	clear(s.terms)
	clear(s.built)
	*s = decisionState{key: s.key[:0], terms: s.terms, built: s.built}
	if cap(s.key) <= 2*maxKey {
		states.Put(s)
	}
}

// part returns a part of the document, or nil if it is missing.
func (s *decisionState) part(p *inputField) *ast.Term {
	if !s.built[p.number] {
		s.terms[p.number], s.built[p.number] = p.term(&s.document, &s.request), true
	}
	return s.terms[p.number]
}

// input returns the document: the parts that the rules of the plan read.
func (s *decisionState) input() (*ast.Term, error) {
	if s.whole == nil {
		s.whole = s.build(s.plan.root)
	}
	return s.whole, s.err
}

func (s *decisionState) build(n *planNode) *ast.Term {
	if n.part != nil {
		return s.part(n.part)
	}
	fields := make([]field, 0, len(n.below))
	for _, b := range n.below {
		if t := s.build(b); t != nil {
			fields = append(fields, field{b.name, t})
		}
	}
	return s.object(fields...)
}
