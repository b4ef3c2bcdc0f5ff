package definition

import "encoding/json"

// Declared holds the definitions of a server. The gateway replaces it and never
// changes it.
type Declared struct {
	Known     bool // the server has responded
	Identity  string
	Defs      []Definition // tools, prompts and resource templates
	Resources []Resource
	Partial   bool // prompts or templates are unreadable: the server has none for now

	Prompts, Reads, Completes bool // its capabilities: prompts, resources, completions
}

// Resource is a listed resource of a server.
type Resource struct {
	URI string
	Raw json.RawMessage
}

// Of returns the definitions of one kind.
func (d Declared) Of(k Kind) (some []Definition) {
	for _, def := range d.Defs {
		if def.Kind == k {
			some = append(some, def)
		}
	}
	return some
}
