package rego_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// generation returns a policy whose decisions identify it.
func generation(t *testing.T, n int) *rego.Engine {
	effect := []string{"allow", "deny"}[n%2]
	e, err := rego.New(rego.Options{Modules: map[string]string{
		fmt.Sprintf("gen%d.rego", n): fmt.Sprintf(`package remit
%s contains "gen %d" if input.access.action in {"write", "read", "list"}
hint contains word if { some word in data.words; some role in input.principal.roles; role in data.roles }
`, effect, n),
	}, Data: map[string]any{"words": []string{fmt.Sprintf("gen %d", n)}, "roles": map[string]any{"a": "dev", "b": "ops"}}, Timeout: longTimeout})
	require.NoError(t, err)
	return e
}

// whole returns an error if a decision mixes two engines.
func whole(d perm.Decision, n map[string]int) error {
	gen, known := n[d.Revision()]
	if !known {
		return errors.New("an unknown revision")
	}
	want := fmt.Sprintf("gen %d", gen)
	effect := []perm.Effect{perm.Allow, perm.Deny}[gen%2]
	r := d.Reasons()
	if d.Effect() != effect || len(r) != 1 || r[0].Text != want || r[0].At != fmt.Sprintf("gen%d.rego:2", gen) {
		return fmt.Errorf("%s %v, want %s", d.Effect(), r, want)
	}
	if h := d.Details().Hints; len(h) != 1 || h[0] != want {
		return fmt.Errorf("hints %v, want %s", h, want)
	}
	return nil
}

func TestSwapUnderLoad(t *testing.T) {
	const generations = 6
	engines := make([]*rego.Engine, generations)
	byRevision := map[string]int{}
	for i := range engines {
		engines[i] = generation(t, i)
		byRevision[engines[i].Revision()] = i
	}
	live := rego.NewSwappableEngine(engines[0])
	done := make(chan struct{})
	results := make(chan error, 8)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				d, err := live.Decide(context.Background(), request())
				if err == nil {
					err = whole(d, byRevision)
				}
				if err != nil {
					results <- err
					return
				}
			}
		})
	}
	for i := range 300 {
		old := live.Swap(engines[(i+1)%generations])
		require.Same(t, engines[i%generations], old)
		d, err := live.Decide(context.Background(), request())
		require.NoError(t, err)
		require.Equal(t, live.Revision(), d.Revision())
	}
	close(done)
	wg.Wait()
	close(results)
	for err := range results {
		require.NoError(t, err)
	}
	live.Swap(nil)
	require.Nil(t, live.Engine())
	require.Equal(t, perm.Deny, decide(t, live, request()).Effect())
}

// TestSwapDuringADecision blocks a slow decision while the engine is replaced.
func TestSwapDuringADecision(t *testing.T) {
	slow, err := rego.New(rego.Options{Modules: map[string]string{
		"slow.rego": "package remit\nallow contains \"old\" if count([1 | some a in numbers.range(1, 60000); a > 0]) == 60000\n",
	}, Timeout: longTimeout})
	require.NoError(t, err)
	live := rego.NewSwappableEngine(slow)
	began := make(chan struct{})
	got := make(chan perm.Decision)
	go func() {
		close(began)
		d, _ := live.Decide(context.Background(), request())
		got <- d
	}()
	<-began
	next := generation(t, 1)
	live.Swap(next)
	require.Equal(t, next.Revision(), decide(t, live, request()).Revision())
	d := <-got
	switch d.Revision() { // the goroutine may have been scheduled after the swap
	case slow.Revision():
		require.Equal(t, "old", d.Reasons()[0].Text)
	default:
		require.Equal(t, "gen 1", d.Reasons()[0].Text)
	}
}
