package rego

import (
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

// effects returns the effects of a transaction that commits.
func (d *document) effects(r *perm.Request) *ast.Term {
	terms := make([]*ast.Term, len(r.Txn.Effects))
	for i, e := range r.Txn.Effects {
		terms[i] = d.object(
			d.text(kKind, e.Kind), d.is(kResource, d.resource(e.Resource)), d.text(kTool, e.Tool),
			commitField("class", ast.StringTerm(e.Class)), commitField("coverage", ast.StringTerm(e.Coverage)),
			commitField("call", ast.StringTerm(e.Call)), commitField("unknown", ast.InternedTerm(e.Unknown)),
		)
	}
	return ast.ArrayTerm(terms...)
}

// totals returns the counts of the effects of a transaction that commits.
func (d *document) totals(r *perm.Request) *ast.Term {
	t := r.Txn.Totals
	count := func(name string, n int) field { return commitField(name, ast.InternedTerm(n)) }
	return d.object(
		count("effects", t.Effects), count("reversible", t.Reversible), count("compensable", t.Compensable), count("deferrable", t.Deferrable),
		count("pivot", t.Pivot), count("unknown", t.Unknown), count("held", t.Held),
	)
}

func commitField(name string, value *ast.Term) field { return field{ast.StringTerm(name), value} }

// effects checks the effects of a transaction that commits.
func (c *requestCheck) effects(list []perm.EffectFacts) {
	for i := range list {
		e := &list[i]
		c.texts(e.Kind, e.Class, e.Coverage, e.Tool, e.Call)
		c.resource(&e.Resource)
	}
}
