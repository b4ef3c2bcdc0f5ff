package rego

import "github.com/open-policy-agent/opa/v1/ast"

// operand is a compiled value of an expression: a constant or a place of the
// input. Texts and lists of texts can be read without the cost of a term.
type operand struct {
	term func(*decisionState) *ast.Term              // nil result: undefined
	text func(*decisionState) (s string, there bool) // nil: no text, or one inside a larger part
	list func(*decisionState) (list []string, there bool)
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

// operand compiles a constant, a variable that has a value, or a place of the
// input.
func (c *bodyCompiler) operand(t *ast.Term) (operand, bool) {
	switch v := t.Value.(type) {
	case ast.Var:
		of, known := c.locals[v]
		return of, known
	case ast.Ref:
		if !v[0].Equal(ast.InputRootDocument) || !v.IsGround() {
			return operand{}, false
		}
		if !isText(v) {
			c.long++
		}
		return placeOf(c.all, v[1:]), true
	case ast.Call, *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
		return operand{}, false
	}
	return fixedOperand(t), ast.IsConstant(t.Value)
}

func fixedOperand(t *ast.Term) operand {
	o := operand{term: func(*decisionState) *ast.Term { return t }}
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

// placeOf compiles a place of the input.
func placeOf(all *plan, path []*ast.Term) operand {
	n, below := all.root.at(path)
	switch {
	case n == nil:
		return operand{term: func(*decisionState) *ast.Term { return nil }}
	case n.part == nil:
		return operand{term: func(s *decisionState) *ast.Term { return s.build(n) }}
	case len(below) > 0:
		return operand{term: func(s *decisionState) *ast.Term { return valueAt(s.part(n.part), below) }}
	}
	o := operand{term: func(s *decisionState) *ast.Term { return s.part(n.part) }}
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
		if t == nil {
			return nil
		}
		switch v := t.Value.(type) {
		case ast.Object:
			t = v.Get(name)
		case *ast.Array:
			t = v.Get(name)
		default:
			return nil
		}
	}
	return t
}
