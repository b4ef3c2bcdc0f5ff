package tool_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// TestClassOf: it belongs to the declaration, and needs the class of the tool that it
// makes milder.
func TestClassOf(t *testing.T) {
	spec := tool.Spec{
		Name: "one", Description: "One.", EffectClass: effect.Pivot,
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text(""), nil
		},
	}
	plain, err := tool.FromSpec(spec)
	require.NoError(t, err)
	spec.ClassOf = func(json.RawMessage) effect.Class { return effect.Pure }
	milder, err := tool.FromSpec(spec)
	require.NoError(t, err)
	require.NotEqual(t, plain.Digest(), milder.Digest())
	require.Equal(t, effect.Pivot, milder.Class(), "of the tool")
	spec.EffectClass = ""
	_, err = tool.FromSpec(spec)
	require.ErrorContains(t, err, "EffectClass, which is missing")
}

// TestCompensableThroughHandles needs no Revert; one that nothing confines does.
func TestCompensableThroughHandles(t *testing.T) {
	spec := tool.Spec{
		Name: "one", Description: "One.", EffectClass: effect.Compensable,
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text(""), nil
		},
	}
	_, err := tool.FromSpec(spec)
	require.ErrorContains(t, err, "nothing would be reverted")
	spec.Confinement = tool.Handles
	made, err := tool.FromSpec(spec)
	require.NoError(t, err)
	require.True(t, made.CanRevert())
}
