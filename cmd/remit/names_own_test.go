package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// The calls of a wave tell of themselves at once, on both outputs.
func TestNamesOfWritersAtOnce(t *testing.T) {
	names := loadNames(t.TempDir())
	var one, two strings.Builder
	out, errs := names.writer(&one), names.writer(&two)
	var wg sync.WaitGroup
	for i := range 16 {
		for _, w := range []*lineWriter{out, errs} {
			wg.Go(func() { _, _ = fmt.Fprintf(w, "call c_%012d waits\n", i) })
		}
	}
	wg.Wait()
	require.Len(t, names.short, 16)
	for _, text := range []string{one.String(), two.String()} {
		for i := range 16 {
			require.Equal(t, 1, strings.Count(text, fmt.Sprintf("call c_%d waits\n", i+1)), text)
		}
	}
}
