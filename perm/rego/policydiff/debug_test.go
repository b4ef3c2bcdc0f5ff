package policydiff

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/remit-dev/remit/perm/rego"
)

func TestDebug(t *testing.T) {
	text := func(n int) string {
		return fmt.Sprintf(`package remit

import data.remit.lib

hold contains "rule 2" if {
	input.tool.name in data.tables.t0
	input.access.resource.host == "internal.corp"
	input.call.args.amount > %d
	not input.call.effect_class == "deferrable"
}

require contains "verify" if {
	helper_4_0
	input.access.resource.ext == ".ini"
}

require contains "verify" if {
	input.session.tools["file_write"].run >= 1
	input.session.tools[input.tool.name].windows["1h"].run >= 20
	not input.access.action in {"read", "write"}
	count(input.call.args.title) > 24
	input.call.effect_class == "compensable"
	lib.arg("mode", "fast") == "dry-run"
}
helper_4_0 if lib.below("workspace", "data/raw")
x if lib.role("a")
`, n)
	}
	load := func(n int) *rego.Engine {
		e, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": text(n)}, Data: map[string]any{"tables": map[string]any{"t0": []any{"a", "b"}}}})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	g := newGenerator(load(69), load(71), rand.New(rand.NewPCG(1, 1)))
	fmt.Println(g.changed)
	for _, x := range g.targets {
		fmt.Println(x.Set, x.Reads, x.Constants)
		for _, a := range x.Alternatives {
			t, _ := json.Marshal(a)
			fmt.Println("   ", string(t))
		}
	}
	g.targets = g.targets[:1]
	g.changed = []int{0}
	for range 12 {
		d := g.attempt().d
		t, _ := json.Marshal(d)
		fmt.Println(string(t))
	}
}
