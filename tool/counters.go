package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/remit-dev/remit/internal/canon"
)

// checkCounters refuses a counter that no argument can add to, because a budget
// on it would never be exhausted.
func (t *tool) checkCounters() error {
	if len(t.spec.Counters) == 0 {
		return nil
	}
	doc, err := canon.Parse(t.input.Canonical(), canon.DefaultLimits())
	if err != nil {
		return err
	}
	properties, _ := doc.Get("properties")
	for _, name := range slices.Sorted(maps.Keys(t.spec.Counters)) {
		if len(name) > 64 || !nameOK.MatchString(name) {
			return fmt.Errorf("counter %q: a name is lower-case letters, digits and underscores between them, begins with a letter and has at most 64 characters", name)
		}
		argument, ok := properties.Get(t.spec.Counters[name])
		if !ok {
			return fmt.Errorf("counter %q: %q is no argument of the tool", name, t.spec.Counters[name])
		}
		if kind, _ := argument.Get("type"); kind.Text() != "number" && kind.Text() != "integer" {
			return fmt.Errorf("counter %q: the schema of argument %q does not say \"type\": \"number\" or \"integer\"", name, t.spec.Counters[name])
		}
	}
	return nil
}

// sums returns the amount that one call adds to each counter. A negative amount
// would refill a budget.
func (t *tool) sums(in canon.Value) (map[string]json.Number, error) {
	if len(t.spec.Counters) == 0 {
		return nil, nil
	}
	sums := make(map[string]json.Number, len(t.spec.Counters))
	for name, argument := range t.spec.Counters {
		v, ok := in.Get(argument)
		if !ok {
			sums[name] = "0"
			continue
		}
		a, err := canon.ParseAmount(v.Text())
		if err != nil || v.Kind() != canon.Number || a.Sign() < 0 {
			return nil, fmt.Errorf("argument %q: it is counted as %q, so valid is a number that is not negative", argument, name)
		}
		sums[name] = json.Number(v.Text())
	}
	return sums, nil
}
