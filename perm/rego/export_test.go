package rego

import (
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

// Document shows tests the input document of a request.
func Document(r perm.Request) (ast.Value, error) {
	k := newKeys()
	term, err := k.request(r)
	if err != nil {
		return nil, err
	}
	return term.Value, nil
}

// SetNames shows tests the names of the sets.
func SetNames() []string { return setNames() }

// Capabilities shows tests which built-ins are left.
func Capabilities() *ast.Capabilities { return capabilities() }
