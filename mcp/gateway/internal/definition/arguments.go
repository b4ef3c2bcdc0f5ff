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

// CheckPlaces returns an error for a JSON pointer to no declared argument, or to
// no declared field of the structured content. * stands for each element or
// member. It accepts every pointer if the tool declares no such schema.
func (d Definition) CheckPlaces(arguments, fields []string) error {
	if err := checkPlaces(d.input, arguments); err != nil {
		return fmt.Errorf(`"roles": %w`, err)
	}
	if err := checkPlaces(d.output, fields); err != nil {
		return fmt.Errorf(`"trustedFields": %w`, err)
	}
	return nil
}

func checkPlaces(declared canon.Value, pointers []string) error {
	if len(pointers) == 0 {
		return nil
	}
	s := usable(declared)
	for _, pointer := range pointers {
		if err := s.CheckPointer(pointer); err != nil {
			return fmt.Errorf("%s: %w", pointer, err)
		}
	}
	return nil
}
