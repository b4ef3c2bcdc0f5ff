package rego_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
)

// rules writes n rules about n tools, in the shape of a policy of that size.
func rules(n int, condition string) string {
	var b strings.Builder
	b.WriteString(control)
	for i := range n - 1 {
		set := []string{"deny", "allow", "ask", "hint"}[i%4]
		fmt.Fprintf(&b, `
%s contains "rule %d" if {
	`+condition+`
	input.access.action == "write"
	"admin" in input.principal.roles
}
`, set, i, i)
	}
	return b.String()
}

const (
	indexed   = `input.tool.name == "tool_%d"`
	unindexed = `contains(input.tool.version, "tool_%d")`
)

// unindexedRules returns rules that the index of rules cannot select.
func unindexedRules(n int) string {
	text := rules(n, unindexed)
	return strings.ReplaceAll(strings.ReplaceAll(text, "\tinput.access.action == \"write\"\n", ""), "\t\"admin\" in input.principal.roles\n", "")
}

func uncached(b *testing.B, text string) *rego.Engine {
	b.Helper()
	e, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": text}, Timeout: longTimeout, CacheSize: -1})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		for name, text := range map[string]string{"indexed": rules(n, indexed), "unindexed": unindexedRules(n)} {
			b.Run(fmt.Sprintf("rules=%d/%s/fresh", n, name), func(b *testing.B) { benchmark(b, uncached(b, text), request()) })
			b.Run(fmt.Sprintf("rules=%d/%s/memoised", n, name), func(b *testing.B) { benchmark(b, engine(b, text), request()) })
		}
	}
	source := rego.Source{FS: policies.Workspace()}
	for name, memo := range map[string]int{"fresh": -1, "memoised": 0} {
		e, err := rego.New(rego.Options{Sources: []rego.Source{source}, CacheSize: memo, Timeout: longTimeout})
		if err != nil {
			b.Fatal(err)
		}
		b.Run("workspace/"+name, func(b *testing.B) { benchmark(b, e, request()) })
	}
}

func benchmark(b *testing.B, e *rego.Engine, r perm.Request) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if d, err := e.Decide(context.Background(), r); err != nil || d.Effect() != perm.Allow {
			b.Fatal(d.Reasons(), err)
		}
	}
}

// TestCacheRatio prints the gain of the decision cache. It alternates the two
// engines, so that a machine that becomes slower affects both.
func TestCacheRatio(t *testing.T) {
	if !statcheck.Whole() {
		t.Skip("REMIT_LONG is not set")
	}
	for _, n := range []int{10, 100, 1000} {
		for name, text := range map[string]string{"indexed": rules(n, indexed), "unindexed": unindexedRules(n)} {
			memoised := engine(t, text)
			fresh, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": text}, Timeout: longTimeout, CacheSize: -1})
			require.NoError(t, err)
			slow, fast := evalSlots(t, fresh, memoised)
			t.Logf("%4d rules, %-9s fresh %8v, memoised %7v, ratio %.1f", n, name, slow, fast, float64(slow)/float64(fast))
		}
	}
}

// evalSlots returns the median time of a decision of each engine.
func evalSlots(t *testing.T, a, b *rego.Engine) (ofA, ofB time.Duration) {
	t.Helper()
	var times [2][]time.Duration
	for range 7 {
		for i, e := range []*rego.Engine{a, b} {
			begin, count := time.Now(), 0
			for time.Since(begin) < 50*time.Millisecond {
				decide(t, e, request())
				count++
			}
			times[i] = append(times[i], time.Since(begin)/time.Duration(count))
		}
	}
	slices.Sort(times[0])
	slices.Sort(times[1])
	return times[0][3], times[1][3]
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
	text := rules(100, indexed)
	for b.Loop() {
		if _, err := load(text); err != nil {
			b.Fatal(err)
		}
	}
}
