package rego

import (
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

func (d *document) prompt(r *perm.Request) *ast.Term {
	p := r.Call.Prompt
	return d.object(
		field{ast.StringTerm("client"), ast.StringTerm(p.Client)},
		field{ast.StringTerm("id"), ast.StringTerm(p.ID)},
		field{ast.StringTerm("text"), ast.StringTerm(p.Text)},
	)
}

func promptKey(r *perm.Request, key []byte) []byte {
	p := r.Call.Prompt
	return appendText(appendText(appendText(key, p.Client), p.ID), p.Text)
}
