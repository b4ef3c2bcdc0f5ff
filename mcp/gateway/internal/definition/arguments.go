package definition

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/gateway/internal/naming"
)

// TakesAll checks the arguments of a template against those that the tool
// declares.
func (d Definition) TakesAll(template json.RawMessage) error {
	args, err := canon.Parse([]byte(cmp.Or(string(template), "{}")), canon.DefaultLimits())
	if err != nil {
		return err
	}
	if _, from := args.Get("$from"); from {
		return nil // only a call determines them
	}
	for name := range args.Members() {
		if err := d.Takes(name); err != nil {
			return err
		}
	}
	required, _ := d.input.Get("required")
	for _, r := range required.Elements() {
		if _, given := args.Get(r.Text()); !given {
			return fmt.Errorf("%s needs the argument %q", d.Name, canon.Printable(r.Text(), 256))
		}
	}
	return nil
}

// wider lists the members of a schema that can allow more members than
// "properties" lists.
var wider = []string{
	"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "dependencies", "patternProperties", "additionalProperties", "unevaluatedProperties",
}

// Takes returns an error for an argument that the tool does not declare, if the
// tool declares its arguments.
func (d Definition) Takes(name string) error {
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
	return errors.New(naming.Unknown("argument", name, "tool "+d.Name, names))
}
