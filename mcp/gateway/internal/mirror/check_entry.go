package mirror

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/mcp/gateway/internal/binding"
	"github.com/remit-dev/remit/mcp/gateway/internal/definition"
	"github.com/remit-dev/remit/mcp/gateway/internal/naming"
)

// checkEntry returns an error if an entry names arguments or tools that do not
// exist. No call has a misspelled argument, so the entry would add no access
// and no snapshot for it.
func (m mirroredTool) checkEntry(others []definition.Definition) error {
	for _, a := range slices.Concat(m.entry.Needs, m.undo.Accesses()) {
		for _, name := range binding.Parameters(a.Resource) {
			if err := m.def.Takes(name); err != nil {
				return fmt.Errorf("%s: %w", a.Resource, err)
			}
		}
	}
	e := m.entry
	if err := m.def.CheckPlaces(slices.Sorted(maps.Keys(e.Roles)), e.TrustedFields); err != nil {
		return err
	}
	if err := m.invokes(`"before"`, e.ReadBefore, others); err != nil {
		return err
	}
	if err := m.invokes(`"compensate"`, e.Compensate, others); err != nil || e.Verify == nil {
		return err
	}
	if err := m.checkPointers(e.Verify.Equals); err != nil {
		return fmt.Errorf(`"verify": %w`, err)
	}
	return m.invokes(`"verify"`, &e.Verify.ToolCallTemplate, others)
}

// invokes checks a call of another tool.
func (m mirroredTool) invokes(member string, i *config.ToolCallTemplate, others []definition.Definition) error {
	if i == nil {
		return nil
	}
	var names []string
	for _, other := range others {
		names = append(names, other.Name)
		if other.Name != i.Tool {
			continue
		}
		err := m.checkPointers(i.Args)
		if err == nil {
			err = other.TakesAll(i.Args)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", member, err)
		}
		return nil
	}
	return fmt.Errorf("%s: %w", member, errors.New(naming.Unknown("tool", i.Tool, "the server", names)))
}

// checkPointers checks that the start of each pointer of a template exists.
func (m mirroredTool) checkPointers(template json.RawMessage) error {
	all, err := binding.Pointers(template)
	if err != nil {
		return err
	}
	for _, p := range all {
		tokens := strings.Split(p, "/")[1:]
		switch {
		case tokens[0] == "before" && m.entry.ReadBefore == nil:
			return fmt.Errorf(`%s: the entry has no "before" that would ask for it`, p)
		case tokens[0] == "input" && len(tokens) > 1:
			if err := m.def.Takes(binding.Unescaped(tokens[1])); err != nil {
				return fmt.Errorf("%s: %w", p, err)
			}
		}
	}
	return nil
}
