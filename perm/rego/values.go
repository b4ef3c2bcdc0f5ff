package rego

import (
	"encoding/binary"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

func (d *document) values(r *perm.Request) *ast.Term {
	list := make([]*ast.Term, len(r.Call.Values))
	for i, v := range r.Call.Values {
		fields := []field{
			{ast.StringTerm("origins"), d.list(v.Origins)},
			{ast.StringTerm("pointer"), ast.StringTerm(v.Pointer)},
			{ast.StringTerm("role"), ast.StringTerm(v.Role)},
			{ast.StringTerm("short"), ast.InternedTerm(v.Short)},
		}
		if len(v.Identifiers) > 0 {
			ids := make([]*ast.Term, len(v.Identifiers))
			for j, id := range v.Identifiers {
				ids[j] = d.object(field{ast.StringTerm("kind"), ast.StringTerm(id.Kind)}, field{ast.StringTerm("origins"), d.list(id.Origins)}, field{ast.StringTerm("text"), ast.StringTerm(id.Text)})
			}
			fields = append(fields, field{ast.StringTerm("identifiers"), ast.ArrayTerm(ids...)})
		}
		list[i] = d.object(fields...)
	}
	return ast.ArrayTerm(list...)
}

func valuesKey(r *perm.Request, key []byte) []byte {
	key = binary.AppendUvarint(key, uint64(len(r.Call.Values)))
	for _, v := range r.Call.Values {
		key = appendTexts(appendText(appendText(key, v.Pointer), v.Role), v.Origins)
		short := byte(0)
		if v.Short {
			short = 1
		}
		key = binary.AppendUvarint(append(key, short), uint64(len(v.Identifiers)))
		for _, id := range v.Identifiers {
			key = appendTexts(appendText(appendText(key, id.Kind), id.Text), id.Origins)
		}
	}
	return key
}

func appendTexts(key []byte, list []string) []byte {
	key = binary.AppendUvarint(key, uint64(len(list)))
	for _, s := range list {
		key = appendText(key, s)
	}
	return key
}
