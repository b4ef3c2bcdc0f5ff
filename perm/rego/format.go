package rego

import (
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"
)

// Format returns the text of a policy file in the form of opa fmt. It returns a
// LoadError if the text is not a policy file.
func Format(name string, text []byte) ([]byte, error) {
	opts := ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: capabilities()}
	formatted, err := format.SourceWithOpts(name, text, format.Opts{RegoVersion: ast.RegoV1, ParserOptions: &opts})
	if err != nil {
		var found problems
		found.addOPA(err, (&modules{}).fix(string(text)))
		return nil, found.err()
	}
	return formatted, nil
}
