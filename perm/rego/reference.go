package rego

import "github.com/open-policy-agent/opa/v1/ast"

// reference compiles a reference into the input, the data, a helper rule or a
// variable. A part that is a free variable iterates.
func (c *bodyCompiler) reference(ref ast.Ref) (operand, []link, bool) {
	of, rest, ok := c.head(ref)
	if !ok {
		return operand{}, nil, false
	}
	var links []link
	for _, part := range rest {
		if v, free := c.free(part); free {
			key, value := c.slot(), c.slot()
			links = append(links, each(of, key, value))
			c.bind(v, slotOperand(key))
			of = slotOperand(value)
			continue
		}
		key, more, ok := c.value(part)
		if !ok || len(more) > 0 {
			return operand{}, nil, false
		}
		from := of
		of = operand{term: func(s *decisionState) *ast.Term {
			list, at := from.term(s), key.term(s)
			if at == nil || !s.charge(hashed(at)) {
				return nil
			}
			return elementOf(list, at)
		}}
	}
	return of, links, true
}

// head compiles the beginning of a reference, and returns the parts below it.
func (c *bodyCompiler) head(ref ast.Ref) (of operand, rest []*ast.Term, ok bool) {
	switch {
	case ref[0].Equal(ast.InputRootDocument):
		n := 1
		for n < len(ref) && ast.IsScalar(ref[n].Value) {
			n++
		}
		return placeOf(c.all, ref[1:n]), ref[n:], true
	case ref[0].Equal(ast.DefaultRootDocument):
		return c.document(ref)
	}
	of, _, ok = c.value(ref[0])
	if _, variable := ref[0].Value.(ast.Var); !variable {
		return operand{}, nil, false
	}
	return of, ref[1:], ok
}

// each goes on with each key and value of a list, an object or a set.
func each(of operand, key, value int) link {
	return func(next step) step {
		return func(s *decisionState) {
			visit := func(k, v *ast.Term) {
				if s.charge(0) {
					s.slots[s.base+key], s.slots[s.base+value] = k, v
					next(s)
				}
			}
			t := of.term(s)
			if t == nil {
				return
			}
			switch list := t.Value.(type) {
			case *ast.Array:
				for i := range list.Len() {
					visit(ast.InternedTerm(i), list.Elem(i))
				}
			case ast.Set:
				for _, e := range list.Slice() {
					visit(e, e)
				}
			case ast.Object:
				list.Foreach(visit)
			}
		}
	}
}
