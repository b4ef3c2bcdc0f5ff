package rego_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
)

// rules writes n rules about n tools, as policies of some size look.
func rules(n int) string {
	var b strings.Builder
	b.WriteString(control)
	for i := range n - 1 {
		set := []string{"deny", "allow", "ask", "hint"}[i%4]
		fmt.Fprintf(&b, `
%s contains "rule %d" if {
	input.tool.name == "tool_%d"
	input.access.action == "write"
	"admin" in input.principal.roles
}
`, set, i, i)
	}
	return b.String()
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		e := engine(b, rules(n))
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) { benchmark(b, e, request()) })
	}
	e, err := rego.Load(rego.Source{FS: policies.Workspace()})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("workspace", func(b *testing.B) { benchmark(b, e, request()) })
}

func benchmark(b *testing.B, e *rego.Engine, r perm.Request) {
	b.ReportAllocs()
	for b.Loop() {
		if d, err := e.Decide(context.Background(), r); err != nil || d.Effect() != perm.Allow {
			b.Fatal(d.Reasons(), err)
		}
	}
}

func BenchmarkDocument(b *testing.B) {
	b.ReportAllocs()
	r := request()
	for b.Loop() {
		if _, err := rego.Document(r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	text := rules(100)
	for b.Loop() {
		if _, err := load(text); err != nil {
			b.Fatal(err)
		}
	}
}
