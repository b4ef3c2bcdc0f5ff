package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/internal/canon"
)

// ToolChoice says which tools a model may or must call in its next turn. The zero Choice leaves it to the model, and says nothing
// on the wire: several servers that speak a provider's format know no choice.
type ToolChoice struct {
	Mode Mode
	Tool string // with Required: this one
	// Single asks for at most one call in a turn. Providers that can be asked otherwise allow several.
	Single bool
}

// Mode is the general part of a choice.
type Mode string

// The modes.
const (
	Auto     Mode = "auto"     // the model decides
	Required Mode = "required" // at least one call
	None     Mode = "none"     // no call; the model still knows the tools that the history speaks of
)

// Request returns the members of a request that are about tools, to be put into its body: the definitions, and the choice in
// the format's own words. It refuses a choice that the format cannot express, rather than to send a milder one.
func (a Adapter) Request(c ToolChoice) (map[string]json.RawMessage, error) {
	list, err := a.Definitions()
	if err != nil {
		return nil, err
	}
	if err := a.check(c); err != nil {
		return nil, fmt.Errorf("wire: %w", err)
	}
	if len(a.tools) == 0 {
		return map[string]json.RawMessage{}, nil // an empty list of tools is refused by some
	}
	members, err := a.shape.request(list, c)
	if err != nil {
		return nil, fmt.Errorf("wire: %w", err)
	}
	out := map[string]json.RawMessage{}
	for name, value := range members {
		if value == nil {
			continue
		}
		if out[name], err = canon.Marshal(value); err != nil {
			return nil, fmt.Errorf("wire: member %q of the request: %w", name, err)
		}
	}
	return out, nil
}

func (a Adapter) check(c ToolChoice) error {
	switch {
	case !slices.Contains([]Mode{"", Auto, Required, None}, c.Mode):
		return fmt.Errorf("unknown mode %q of choice; valid are auto, required, none", c.Mode)
	case c.Tool != "" && c.Mode != Required:
		return fmt.Errorf("the choice of tool %q wants the mode required", c.Tool)
	case c.Tool != "" && !slices.ContainsFunc(a.tools, func(o wireTool) bool { return o.tool.Name() == c.Tool }):
		return fmt.Errorf("the choice is tool %q, which is not offered; %s", c.Tool, a.there())
	case c.Mode == Required && len(a.tools) == 0:
		return fmt.Errorf("a call is required, and no tool is offered")
	case c.Mode == None && c.Single:
		return fmt.Errorf("at most one call, and none at all: leave Single out")
	}
	return nil
}

// ErrToolChoice says that the format has no word for a choice of tools.
var ErrToolChoice = errors.New("it has no word for this choice of tools")

// cannot is the error of a format that has no word for a choice.
func cannot(f Format, what, instead string) error {
	return fmt.Errorf("the format %s cannot ask for %s; %s: %w", f, what, instead, ErrToolChoice)
}
