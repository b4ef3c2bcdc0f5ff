package rego_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm/rego"
)

// compiledEngine loads rules with what they refer to, and without a cache.
func compiledEngine(rules ...string) (*rego.Engine, error) {
	return rego.New(rego.Options{
		Modules: map[string]string{"p.rego": ruleHead + strings.Join(rules, "")},
		Data:    map[string]any{"table": map[string]any{"a": 1, "b": 2}, "list": []any{"a", "b"}}, Timeout: longTimeout, CacheSize: -1,
	})
}

// TestCompiledRulesAgree compares decisions of compiled rules with those of
// topdown alone: effects, reasons, their order and places, and failures.
func TestCompiledRulesAgree(t *testing.T) {
	policies := max(statcheck.Size(150, 10_000), 60) // fewer do not cover every case
	decisions, compiled, mixed, unsure, failures, refused := 0, 0, 0, 0, 0, 0
	for seed := range policies {
		rnd := rand.New(rand.NewPCG(uint64(seed), 31))
		m := ruleMaker{rnd}
		var rules []string
		for n := 1 + rnd.IntN(6); len(rules) < n; {
			rule := m.rule(len(rules))
			if _, err := compiledEngine(rule); err != nil { // such as a condition that can never hold
				refused++
				continue
			}
			rules = append(rules, rule)
		}
		e, err := compiledEngine(rules...)
		require.NoError(t, err, rules)
		for _, r := range randomRequests(rnd, 60) {
			decisions++
			switch sure, all := rego.CompiledAnswer(e, r); {
			case sure && all:
				compiled++
			case sure:
				mixed++
			default:
				unsure++
			}
			got, gotErr := e.Decide(context.Background(), r)
			want, wantErr := rego.DecideWhole(context.Background(), e, r)
			if gotErr != nil && wantErr != nil {
				require.Equal(t, errors.Is(wantErr, rego.ErrEvaluation), errors.Is(gotErr, rego.ErrEvaluation))
				failures++
				continue
			}
			if a, b := fmt.Sprint(got, gotErr), fmt.Sprint(want, wantErr); a != b {
				require.Fail(t, "a compiled rule differs", "seed %d\n%s\n%+v\ngot  %s\nwant %s", seed, rules, r, a, b)
			}
		}
	}
	t.Logf("%d policies, %d rules refused; %d decisions: %d without topdown, %d in part, %d unsure, %d failed", policies, refused, decisions, compiled, mixed, unsure, failures)
	require.Greater(t, compiled, decisions/10)
	require.Greater(t, mixed, decisions/10)
	require.Greater(t, unsure, decisions/100)
	require.Greater(t, failures, decisions/100)
}
