package rego

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// capabilities returns the built-ins that policies may call: those whose result
// depends only on their operands. Without network, clock, randomness and
// environment a decision can be replayed from its input.
func capabilities() *ast.Capabilities {
	caps := ast.CapabilitiesForThisVersion()
	kept := make([]*ast.Builtin, 0, len(caps.Builtins))
	for _, b := range caps.Builtins {
		if whyCut(b) == "" {
			kept = append(kept, b)
		}
	}
	for _, b := range pastBuiltins() {
		kept = append(kept, b.Decl)
	}
	caps.Builtins = kept
	caps.AllowNet = []string{} // also prevents fetching schemas
	return caps
}

// whyCut returns why a built-in is not available, or "" if it is.
func whyCut(b *ast.Builtin) string {
	switch {
	case b.Name == "json.match_schema", b.Name == "json.verify_schema":
		return "a schema can name a document on the network"
	case strings.HasPrefix(b.Name, "crypto.x509.parse_and_verify_certificates"):
		return "it verifies at the current time"
	case b.Name == "rego.metadata.rule", b.Name == "rego.metadata.chain":
		return "annotations are not read when a request is decided"
	case b.Nondeterministic:
		return "its answer can differ from call to call"
	default:
		return ""
	}
}

// cutBuiltin returns why a call by this name is refused, or "" if the name is
// not that of a removed built-in.
func cutBuiltin(name string) string {
	if b, known := ast.BuiltinMap[name]; known {
		return whyCut(b)
	}
	return ""
}
