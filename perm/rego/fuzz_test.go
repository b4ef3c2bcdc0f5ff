package rego_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// FuzzLoad loads arbitrary text. Loading must not panic, and must give a reason
// for a refusal. An accepted policy decides with a reason, or with an error and
// a denial.
func FuzzLoad(f *testing.F) {
	f.Add(control)
	for _, text := range failing() {
		f.Add(text)
	}
	paths, err := filepath.Glob("../../policies/workspace/*.rego")
	if err != nil || len(paths) == 0 {
		f.Fatal("no policies to begin with", err)
	}
	for _, text := range []string{
		"package remit\n", "package remit.deny\nx := 1", control + "deny if true", control + "a if b\nb if a",
		control + `deny contains "x" if input.call.effect_class in {"a"}`,
		control + "f(x) := y if { some y in x }\ndeny contains a if { a := f(input.tool.tags); every t in input.tool.tags { t != a } }",
		control + `deny contains "x" if object.get(input, ["call", "id"], {}) with input.call.id as "b"`,
		control + "import input.call as c\nimport data.x[y]",
		"package remit\nallow contains `x` if { x := {1: [y | y := 1]}; x[_][_] }",
	} {
		f.Add(text)
	}
	r := request()
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "numbers.range") || len(text) > 4096 {
			return // another test covers slow policies
		}
		e, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": text}, Timeout: 50 * time.Millisecond})
		if err != nil {
			var bad *rego.LoadError
			if e != nil || !errors.As(err, &bad) || len(bad.Problems) == 0 || bad.Problems[0].Text == "" {
				t.Fatalf("not a problem of the policy: %v", err)
			}
			return
		}
		d, err := e.Decide(context.Background(), r)
		if (err != nil && d.Effect() != perm.Deny) || len(d.Reasons()) == 0 {
			t.Fatalf("%v with %v and error %v", d.Effect(), d.Reasons(), err)
		}
	})
}
