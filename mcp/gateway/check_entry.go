package gateway

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/mcp/gateway/internal/binding"
	"github.com/remit-dev/remit/mcp/gateway/internal/naming"
)

// checkEntry returns an error if an entry names arguments or tools that do not
// exist. No call has a misspelled argument, so the entry would add no access
// and no snapshot for it.
func (m mirroredTool) checkEntry(others []definition) error {
	for _, a := range slices.Concat(m.entry.Needs, m.snapshots()) {
		for _, name := range binding.Parameters(a.Resource) {
			if err := m.def.takes(name); err != nil {
				return fmt.Errorf("%s: %w", a.Resource, err)
			}
		}
	}
	e := m.entry
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
func (m mirroredTool) invokes(member string, i *config.ToolCallTemplate, others []definition) error {
	if i == nil {
		return nil
	}
	var names []string
	for _, other := range others {
		names = append(names, other.name)
		if other.name != i.Tool {
			continue
		}
		err := m.checkPointers(i.Args)
		if err == nil {
			err = other.takesAll(i.Args)
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
			if err := m.def.takes(binding.Unescaped(tokens[1])); err != nil {
				return fmt.Errorf("%s: %w", p, err)
			}
		}
	}
	return nil
}

// takesAll checks the arguments of a template against those that the tool
// declares.
func (d definition) takesAll(template json.RawMessage) error {
	args, err := canon.Parse([]byte(cmp.Or(string(template), "{}")), canon.DefaultLimits())
	if err != nil {
		return err
	}
	if _, from := args.Get("$from"); from {
		return nil // only a call determines them
	}
	for name := range args.Members() {
		if err := d.takes(name); err != nil {
			return err
		}
	}
	required, _ := d.input.Get("required")
	for _, r := range required.Elements() {
		if _, given := args.Get(r.Text()); !given {
			return fmt.Errorf("%s needs the argument %q", d.name, canon.Printable(r.Text(), 256))
		}
	}
	return nil
}

// wider lists the members of a schema that can allow more members than
// "properties" lists.
var wider = []string{
	"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "dependencies", "patternProperties", "additionalProperties", "unevaluatedProperties",
}

// takes returns an error for an argument that the tool does not declare, if the
// tool declares its arguments.
func (d definition) takes(name string) error {
	properties, ok := d.input.Get("properties")
	if !ok || properties.Kind() != canon.Object {
		return nil
	}
	var names []string
	for known := range properties.Members() {
		names = append(names, known)
	}
	open := slices.ContainsFunc(wider, func(member string) bool {
		v, there := d.input.Get(member)
		return there && (v.Kind() != canon.Bool || v.Bool())
	})
	if open || slices.Contains(names, name) {
		return nil
	}
	return errors.New(naming.Unknown("argument", name, "tool "+d.name, names))
}

// unknownArguments warns about entries for tools that a server does not have:
// they have no effect.
func (b *builder) unknownArguments(u *upstream, has []definition) {
	var names []string
	for _, d := range has {
		names = append(names, d.name)
	}
	for name := range sorted(u.cfg.Tools) {
		if !slices.Contains(names, name) && !u.told[name] {
			u.told[name] = true
			b.g.log.Warn("an entry is of no tool", "server", u.cfg.Name, "why", naming.Unknown("tool", name, "the server", slices.Clone(names)))
		}
	}
}
