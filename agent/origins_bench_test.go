//go:build unix

package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
)

// pageText is text like that of pages: words of a vocabulary, some numbers and addresses.
func pageText(rnd *rand.Rand, size int) string {
	var b strings.Builder
	for b.Len() < size {
		switch rnd.IntN(40) {
		case 0:
			fmt.Fprintf(&b, "user%d@host%d.example ", rnd.IntN(1e5), rnd.IntN(1e3))
		case 1:
			fmt.Fprintf(&b, "%d\n", rnd.IntN(1e6))
		default:
			fmt.Fprintf(&b, "word%x ", int(rnd.ExpFloat64()*2000))
		}
	}
	return b.String()
}

// originsBench is a session with a durable journal whose policy reads the origins of values, or not.
func originsBench(b *testing.B, origins bool, page *string) *agent.Txn {
	text := "package remit\n\nallow contains \"all\"\n"
	if origins {
		text += "\nask contains \"made up\" if {\n\tsome v in input.call.values\n\tv.role == \"content\"\n\tsome id in v.identifiers\n\tid.kind == \"url\"\n}\n"
	}
	e, err := rego.New(rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": text}})
	require.NoError(b, err)
	j, err := sqlite.Open(context.Background(), b.TempDir())
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, j.Close()) })
	read, err := tool.Create("read", "", func(context.Context, string) (string, error) { return *page, nil }, tool.Pure())
	require.NoError(b, err)
	act, err := tool.FromSpec(tool.Spec{
		Name: "act", EffectClass: effect.Pivot,
		Input: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"number"},"d":{"type":"string"},"e":{"type":"string"},"f":{"type":"string"},"g":{"type":"number"},"h":{"type":"boolean"}},"additionalProperties":false}`),
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text("done"), nil
		},
	})
	require.NoError(b, err)
	rt, err := agent.New(quiet(), agent.Tools(read, act), agent.Policy(e), agent.Journal(j))
	require.NoError(b, err)
	s, err := rt.Session(context.Background(), perm.Principal{ID: "coder"}, agent.Heard("Write to anna@example.com about the report of march, in 3 copies."))
	require.NoError(b, err)
	tx, err := s.Begin(context.Background())
	require.NoError(b, err)
	return tx
}

// processorTime reports the processor time of an operation, which a busy machine changes least.
func processorTime(b *testing.B, run func()) {
	var before, after syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &before))
	run()
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &after))
	used := func(u syscall.Rusage) float64 { return float64(u.Utime.Nano()+u.Stime.Nano()) / 1000 }
	b.ReportMetric((used(after)-used(before))/float64(b.N), "cpu-us/op")
}

func eachWay(b *testing.B, run func(b *testing.B, origins bool)) {
	b.Run("without", func(b *testing.B) { run(b, false) })
	b.Run("origins", func(b *testing.B) { run(b, true) })
}

// BenchmarkOriginsRead reads 10 MB in pages of 100 KB.
func BenchmarkOriginsRead(b *testing.B) {
	eachWay(b, func(b *testing.B, origins bool) {
		rnd := rand.New(rand.NewPCG(1, 1))
		pages := make([]string, 100)
		for i := range pages {
			pages[i] = pageText(rnd, 100_000)
		}
		var page string
		processorTime(b, func() {
			for b.Loop() {
				tx := originsBench(b, origins, &page)
				for i := range pages {
					page = pages[i]
					if _, err := tx.Invoke(context.Background(), "read", fmt.Sprint(i)); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	})
}

// BenchmarkOriginsCall is a call of eight arguments in a session that has read 10 MB.
func BenchmarkOriginsCall(b *testing.B) {
	eachWay(b, func(b *testing.B, origins bool) {
		rnd := rand.New(rand.NewPCG(1, 1))
		var page string
		tx := originsBench(b, origins, &page)
		for i := range 100 {
			page = pageText(rnd, 100_000)
			if _, err := tx.Invoke(context.Background(), "read", fmt.Sprint(i)); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportAllocs()
		b.ResetTimer()
		processorTime(b, func() {
			for i := 0; b.Loop(); i++ {
				in := tool.Args{"a": "anna@example.com", "b": fmt.Sprintf("order_%d", i), "c": 3, "d": "the report", "e": "march", "f": "word7f", "g": 120, "h": true}
				if _, err := tx.Invoke(context.Background(), "act", in); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}
