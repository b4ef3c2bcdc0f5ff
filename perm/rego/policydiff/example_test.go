package policydiff_test

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/perm/rego/policydiff"
)

// A changed bound is found, with the smallest number for which it matters.
func Example() {
	load := func(most int) *rego.Engine {
		text := fmt.Sprintf("package remit\n\nallow contains \"small payments\" if {\n\tinput.tool.name == \"pay\"\n\tinput.call.args.amount <= %d\n}\n", most)
		e, err := rego.New(rego.Options{Modules: map[string]string{"policy.rego": text}})
		if err != nil {
			panic(err)
		}
		return e
	}
	r, err := policydiff.Run(context.Background(), policydiff.Options{Old: load(20), New: load(10), Tries: 1000})
	if err != nil {
		panic(err)
	}
	for _, d := range r.Differences {
		fmt.Println(d.Before.Effect, "to", d.After.Effect)
		for _, f := range d.Fields {
			fmt.Println(f.Path, string(f.Value))
		}
	}
	// Output:
	// allow to deny
	// input.access.action "read"
	// input.access.resource.text "file://workspace/a.txt"
	// input.call.args.amount 11
	// input.tool.name "pay"
}
