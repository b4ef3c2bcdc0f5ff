package rego

import (
	"encoding/binary"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

func (d *document) client(r *perm.Request) *ast.Term {
	c := r.Session.Client
	of := func(name string, value *ast.Term) field { return field{ast.StringTerm(name), value} }
	fields := []field{
		of("surface", ast.StringTerm(c.Surface)), of("model", ast.StringTerm(c.Model)),
		of("capabilities", d.list(c.Capabilities)), of("confidence", ast.InternedTerm(c.ProviderTrust)), of("off", d.list(c.Disabled)),
	}
	if c.Selected != nil {
		fields = append(fields, of("selected", d.list(c.Selected)))
	}
	return d.object(fields...)
}

// clientKey distinguishes an empty selection from a missing one.
func clientKey(r *perm.Request, key []byte) []byte {
	c := r.Session.Client
	key = appendText(appendText(key, c.Surface), c.Model)
	key = binary.AppendVarint(key, int64(c.ProviderTrust))
	for i, list := range [][]string{c.Capabilities, c.Disabled, c.Selected} {
		if i == 2 && list == nil {
			return append(key, 0)
		}
		key = binary.AppendUvarint(key, uint64(len(list))+1)
		for _, s := range list {
			key = appendText(key, s)
		}
	}
	return key
}
