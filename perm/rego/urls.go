package rego

import (
	"encoding/binary"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

func (d *document) urls(r *perm.Request) *ast.Term {
	list := make([]*ast.Term, len(r.Call.URLs))
	for i, u := range r.Call.URLs {
		list[i] = d.object(field{ast.StringTerm("url"), ast.StringTerm(u.URL)}, field{ast.StringTerm("user_provided"), ast.InternedTerm(u.UserProvided)})
	}
	return ast.ArrayTerm(list...)
}

func urlsKey(r *perm.Request, key []byte) []byte {
	key = binary.AppendUvarint(key, uint64(len(r.Call.URLs)))
	for _, u := range r.Call.URLs {
		given := byte(0)
		if u.UserProvided {
			given = 1
		}
		key = append(appendText(key, u.URL), given)
	}
	return key
}
