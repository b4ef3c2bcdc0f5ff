package tool_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/compose"
)

// TestCoverage: how much of a call is known follows from what confines it, and an author can only lower it.
func TestCoverage(t *testing.T) {
	made := func(s tool.Spec) (tool.Tool, error) {
		s.Name = "x"
		s.Execute = func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Result{}, nil
		}
		return tool.FromSpec(s)
	}
	for _, tt := range []struct {
		spec tool.Spec
		want effect.Coverage
		err  string
	}{
		{spec: tool.Spec{}, want: effect.Declared},
		{spec: tool.Spec{Confinement: tool.Handles}, want: effect.Confined},
		{spec: tool.Spec{Confinement: tool.Handles, Coverage: effect.Declared}, want: effect.Declared},
		{spec: tool.Spec{Coverage: effect.Observed, Observed: []string{"workspace"}, EffectClass: effect.Pivot}, want: effect.Observed},
		{spec: tool.Spec{Coverage: effect.Observed, EffectClass: effect.Pure}, want: effect.Observed},
		{spec: tool.Spec{Coverage: "some"}, err: "unknown coverage"},
		{spec: tool.Spec{Coverage: effect.Confined}, err: "nothing confines the tool"},
		{spec: tool.Spec{Observed: []string{"workspace"}}, err: "the coverage is not observed"},
		{spec: tool.Spec{Coverage: effect.Observed, Confinement: tool.Handles, EffectClass: effect.Reversible}, err: "not reversible"},
	} {
		made, err := made(tt.spec)
		if tt.err != "" {
			require.ErrorContains(t, err, tt.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, tt.want, made.Coverage())
		require.Equal(t, string(tt.want), made.Facts().Coverage)
	}
	plain, err := made(tool.Spec{EffectClass: effect.Pivot})
	require.NoError(t, err)
	seen, err := made(tool.Spec{EffectClass: effect.Pivot, Coverage: effect.Observed, Observed: []string{"workspace"}})
	require.NoError(t, err)
	require.NotEqual(t, plain.Digest(), seen.Digest())
	spec := seen.Spec()
	spec.Observed[0] = "other"
	require.Equal(t, []string{"workspace"}, seen.Spec().Observed)

	_, err = compose.Chain(compose.Declaration{Name: "both"}, compose.Part{Tool: seen})
	require.ErrorContains(t, err, "compared before and after a call of its own")
	word, err := made(tool.Spec{Confinement: tool.Handles, Coverage: effect.Declared, EffectClass: effect.Reversible})
	require.NoError(t, err)
	whole, err := compose.Chain(compose.Declaration{Name: "both"}, compose.Part{Tool: word})
	require.NoError(t, err)
	require.Equal(t, effect.Declared, whole.Coverage())
}
