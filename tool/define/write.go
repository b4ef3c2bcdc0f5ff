package define

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// fileJSON is a definition as Write writes it.
type fileJSON struct {
	SchemaVersion  int      `json:"schemaVersion"`
	ID             string   `json:"id"`
	Version        string   `json:"version"`
	Implementation string   `json:"implementation"`
	Function       function `json:"function"`
	Needs          []need   `json:"needs,omitempty"`
	EffectClass    string   `json:"effectClass,omitempty"`
	Destination    string   `json:"destination,omitempty"`
	Hints          hints    `json:"hints,omitzero"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Usage       string          `json:"usage,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

type need struct {
	Action   string `json:"action"`
	Resource string `json:"resource"`
	Method   string `json:"method,omitempty"`
}

type hints struct {
	Idempotent bool      `json:"idempotent,omitempty"`
	Risk       perm.Risk `json:"risk,omitempty"`
	Approval   bool      `json:"approval,omitempty"`
	Concurrent bool      `json:"concurrent,omitempty"`
	Timeout    string    `json:"timeout,omitempty"`
}

// Write returns a definition file for FromTool(t) under the given key. The file
// restricts nothing yet: it declares the tool t, and an author edits it.
func Write(t tool.Tool, implementation string) ([]byte, error) {
	if t.IsZero() {
		return nil, errors.New("the zero Tool has no definition")
	}
	s := t.Spec()
	w := fileJSON{
		SchemaVersion: 1, ID: s.Name, Version: cmp.Or(s.Version, "1"), Implementation: implementation,
		Function:    function{Name: s.Name, Description: s.Description, Usage: s.Usage, Parameters: s.Input},
		EffectClass: string(s.EffectClass), Destination: string(s.Destination),
		Hints: hints{Idempotent: s.Hints.Idempotent, Risk: s.Hints.Risk, Approval: s.Hints.Approval, Concurrent: s.Hints.Concurrent},
	}
	for _, a := range s.Needs {
		w.Needs = append(w.Needs, need{string(a.Action), a.Resource, a.Method})
	}
	if s.Hints.Timeout > 0 {
		w.Hints.Timeout = s.Hints.Timeout.String()
	}
	text, err := json.MarshalIndent(w, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("tool %q: %w", s.Name, err)
	}
	return append(text, '\n'), nil
}
