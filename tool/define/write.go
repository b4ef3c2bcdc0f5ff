package define

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// fileJSON is a definition as it is written. Members that are empty are left out.
type fileJSON struct {
	SchemaVersion  int                     `json:"schemaVersion"`
	ID             string                  `json:"id"`
	Version        string                  `json:"version"`
	Implementation string                  `json:"implementation"`
	Icon           string                  `json:"icon,omitempty"`
	Visibility     []string                `json:"visibility,omitzero"`
	Deprecated     string                  `json:"deprecated,omitempty"`
	Tags           []string                `json:"tags,omitempty"`
	Settings       map[string]setting      `json:"settings,omitempty"`
	Function       function                `json:"function"`
	Needs          []need                  `json:"needs,omitempty"`
	EffectClass    string                  `json:"effectClass,omitempty"`
	Compensation   *compensation           `json:"compensation,omitempty"`
	Destination    string                  `json:"destination,omitempty"`
	Counters       map[string]string       `json:"counters,omitempty"`
	Hints          *hints                  `json:"hints,omitempty"`
	Sensitive      []string                `json:"sensitive,omitempty"`
	I18n           map[string]translations `json:"i18n,omitempty"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Usage       string          `json:"usage,omitempty"`
	Strict      bool            `json:"strict,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Returns     json.RawMessage `json:"returns,omitempty"`
}

type need struct {
	Action   string `json:"action"`
	Resource string `json:"resource"`
	Method   string `json:"method,omitempty"`
}

type setting struct {
	Type        string `json:"type"`
	Items       string `json:"items,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
	Default     any    `json:"default,omitempty"`
	Enum        []any  `json:"enum,omitempty"`
	Examples    []any  `json:"examples,omitempty"`
	Secret      bool   `json:"secret,omitempty"`
}

type compensation struct {
	UndoVersion string `json:"undoVersion"`
}

type hints struct {
	Idempotent bool      `json:"idempotent,omitempty"`
	Risk       perm.Risk `json:"risk,omitempty"`
	Approval   bool      `json:"approval,omitempty"`
	Concurrent bool      `json:"concurrent,omitempty"`
	Timeout    string    `json:"timeout,omitempty"`
}

type translations struct {
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
}

// Write writes the definition of a tool, for an implementation that has its code. Loaded
// again it is the same declaration, but for its provenance, which names the file.
func Write(t tool.Tool, id, implementation string) ([]byte, error) {
	if t.IsZero() {
		return nil, errors.New("the zero Tool has no definition")
	}
	s := t.Spec()
	w := fileJSON{
		SchemaVersion: 1, ID: id, Version: s.Version, Implementation: implementation, Icon: s.Display.Icon, Visibility: s.Display.Surfaces,
		Deprecated: s.Deprecated, Tags: s.Tags, EffectClass: string(s.EffectClass), Destination: string(s.Destination),
		Counters: s.Counters, Sensitive: s.Hints.Sensitive,
		Function: function{Name: s.Name, Description: s.Description, Usage: s.Usage, Parameters: s.Input, Returns: s.Output},
	}
	for _, a := range s.Needs {
		w.Needs = append(w.Needs, need{string(a.Action), a.Resource, a.Method})
	}
	if s.Revert != nil {
		w.Compensation = &compensation{s.UndoVersion}
	}
	h := hints{Idempotent: s.Hints.Idempotent, Risk: s.Hints.Risk, Approval: s.Hints.Approval, Concurrent: s.Hints.Concurrent}
	if s.Hints.Timeout > 0 {
		h.Timeout = s.Hints.Timeout.String()
	}
	if h != (hints{}) {
		w.Hints = &h
	}
	w.settings(s.Settings)
	w.translate(s.Display)
	text, err := json.MarshalIndent(w, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("tool %q: %w", s.Name, err)
	}
	return append(text, '\n'), nil
}

func (w *fileJSON) settings(all tool.Params) {
	if len(all) > 0 {
		w.Settings = map[string]setting{}
	}
	for _, p := range all {
		w.Settings[p.Name] = setting{
			Type: p.Type, Items: p.Items, Description: p.Description, Required: p.Required, Default: p.Default,
			Enum: p.Enum, Examples: p.Examples, Secret: p.Secret,
		}
	}
}

func (w *fileJSON) translate(d tool.Display) {
	if len(d.Names)+len(d.Descriptions) > 0 {
		w.I18n = map[string]translations{}
	}
	for language, name := range d.Names {
		w.I18n[language] = translations{Name: name}
	}
	for language, description := range d.Descriptions {
		tr := w.I18n[language]
		tr.Description = description
		w.I18n[language] = tr
	}
}
