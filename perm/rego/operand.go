package rego

import "github.com/open-policy-agent/opa/v1/ast"

// operand is a compiled value of an expression. Texts and lists of texts of the
// input can be read without the cost of a term.
type operand struct {
	term  func(*decisionState) *ast.Term              // nil result: undefined
	text  func(*decisionState) (s string, there bool) // nil: no text, or one inside a larger part
	list  func(*decisionState) (list []string, there bool)
	fixed bool // the same during a decision, and found at once
	size  int  // of a constant, as sizeOf gives it; 0: not known before the decision
}

// there reports whether the operand is defined.
func (o operand) there(s *decisionState) bool {
	switch {
	case o.text != nil:
		_, there := o.text(s)
		return there
	case o.list != nil:
		_, there := o.list(s)
		return there
	}
	return o.term(s) != nil
}

// textOf returns the operand as a text, or false if it is undefined or of
// another type.
func (o operand) textOf(s *decisionState) (string, bool) {
	if o.text != nil {
		return o.text(s)
	}
	t := o.term(s)
	if t == nil {
		return "", false
	}
	text, ok := t.Value.(ast.String)
	return string(text), ok
}

// slotOperand is a variable of the frame.
func slotOperand(at int) operand {
	return operand{term: func(s *decisionState) *ast.Term { return s.slots[s.base+at] }}
}

func fixedOperand(t *ast.Term) operand {
	o := operand{term: func(*decisionState) *ast.Term { return t }, fixed: true, size: max(1, sizeOf(t))}
	if text, ok := t.Value.(ast.String); ok {
		o.text = func(*decisionState) (string, bool) { return string(text), true }
	}
	if texts, ok := constantTexts(t); ok {
		o.list = func(*decisionState) ([]string, bool) { return texts, true }
	}
	return o
}

// constantTexts returns the elements of a constant array or set of texts.
func constantTexts(t *ast.Term) (texts []string, ok bool) {
	list, ok := t.Value.(interface {
		Until(func(*ast.Term) bool) bool
	})
	if !ok {
		return nil, false
	}
	other := list.Until(func(e *ast.Term) bool {
		text, isText := e.Value.(ast.String)
		texts = append(texts, string(text))
		return !isText
	})
	return texts, !other
}

// value compiles a value of an expression. The links find it if it can have
// several values, such as list[_].
func (c *bodyCompiler) value(t *ast.Term) (operand, []link, bool) {
	switch v := t.Value.(type) {
	case ast.Var:
		of, known := c.locals[v]
		return of, nil, known
	case ast.Ref:
		return c.reference(v)
	case *ast.ArrayComprehension:
		return c.comprehension(v.Term, v.Body, (*decisionState).arrayOf)
	case *ast.SetComprehension:
		return c.comprehension(v.Term, v.Body, (*decisionState).setOf)
	}
	if ast.IsConstant(t.Value) {
		return fixedOperand(t), nil, plainNumbers(t)
	}
	// Topdown goes over a set or an object with variables as it is written, so it
	// evaluates them.
	if v, array := t.Value.(*ast.Array); array {
		return c.composite(v)
	}
	return operand{}, nil, false
}

// composite compiles an array that is not constant.
func (c *bodyCompiler) composite(v *ast.Array) (operand, []link, bool) {
	parts := make([]*ast.Term, v.Len())
	for i := range parts {
		parts[i] = v.Elem(i)
	}
	elements, links, ok := c.values(parts)
	if !ok {
		return operand{}, nil, false
	}
	return operand{term: func(s *decisionState) *ast.Term {
		list := make([]*ast.Term, len(elements))
		for i, e := range elements {
			if list[i] = e.term(s); list[i] == nil {
				return nil
			}
		}
		return s.arrayOf(list)
	}}, links, true
}

// comprehension compiles [head | body] and {head | body}.
func (c *bodyCompiler) comprehension(head *ast.Term, body ast.Body, made func(*decisionState, []*ast.Term) *ast.Term) (operand, []link, bool) {
	in := c.inner(body)
	rule, ok := in.rule(nil, body, head, operand.adds)
	c.size = max(c.size, in.size)
	return operand{term: func(s *decisionState) *ast.Term {
		mark := s.query(rule.run)
		return made(s, s.drop(mark))
	}}, nil, ok
}

// adds returns the step that adds the value of the operand to what the innermost
// query finds.
func (o operand) adds() step {
	return func(s *decisionState) {
		if t := o.term(s); t != nil {
			s.found = append(s.found, t)
		}
	}
}

// placeOf compiles a place of the input.
func placeOf(all *plan, path []*ast.Term) operand {
	n, below := all.root.at(path)
	switch {
	case n == nil:
		return operand{term: func(*decisionState) *ast.Term { return nil }, fixed: true}
	case n.part == nil:
		return operand{term: func(s *decisionState) *ast.Term { return s.build(n) }}
	case len(below) > 0:
		return operand{term: func(s *decisionState) *ast.Term { return valueAt(s.part(n.part), below) }, fixed: true}
	}
	o := operand{term: func(s *decisionState) *ast.Term { return s.part(n.part) }, fixed: true}
	if get := n.part.text; get != nil {
		o.text = func(s *decisionState) (string, bool) { return get(&s.request) }
	}
	if get := n.part.list; get != nil {
		o.list = func(s *decisionState) ([]string, bool) { return get(&s.request) }
	}
	return o
}

// valueAt returns the value at a path below a value, or nil if there is none.
func valueAt(t *ast.Term, path []*ast.Term) *ast.Term {
	for _, name := range path {
		t = elementOf(t, name)
	}
	return t
}

// elementOf returns the value of a key of an object, of an index of an array, or
// the element itself of a set; or nil.
func elementOf(t, key *ast.Term) *ast.Term {
	if t == nil || key == nil {
		return nil
	}
	switch v := t.Value.(type) {
	case ast.Object:
		return v.Get(key)
	case *ast.Array:
		return v.Get(key)
	case ast.Set:
		if v.Contains(key) {
			return key
		}
	}
	return nil
}
