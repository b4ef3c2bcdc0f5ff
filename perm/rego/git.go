package rego

import (
	"encoding/binary"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

func (d *document) git(g *perm.GitFacts) *ast.Term {
	fields := []field{{ast.StringTerm("kind"), ast.StringTerm(g.Kind)}}
	if len(g.Keys) > 0 {
		fields = append(fields, field{ast.StringTerm("keys"), d.list(g.Keys)})
	}
	if g.New {
		fields = append(fields, field{ast.StringTerm("new"), ast.InternedTerm(true)})
	}
	return d.object(fields...)
}

func gitKey(r *perm.Request, key []byte) []byte {
	g := r.Access.Git
	key = binary.AppendUvarint(appendText(key, g.Kind), uint64(len(g.Keys)))
	for _, k := range g.Keys {
		key = appendText(key, k)
	}
	if g.New {
		return append(key, 1)
	}
	return append(key, 0)
}
