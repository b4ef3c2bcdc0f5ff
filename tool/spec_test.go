package tool_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

func does(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
	return tool.Text("ok"), nil
}

// TestNeedIsFilledInByAString: a need whose argument may be anything else would
// not be asked for when it is.
func TestNeedIsFilledInByAString(t *testing.T) {
	for argument, ok := range map[string]bool{
		`{"type":"string"}`:                          true,
		`{"type":"string","const":"a"}`:              true,
		`{"type":"integer"}`:                         false,
		`{"type":["string","integer"]}`:              false,
		`{"type":["string"]}`:                        false,
		`{"enum":["a",5]}`:                           false,
		`{"type":"array","items":{"type":"string"}}`: false,
	} {
		t.Run(argument, func(t *testing.T) {
			spec := tool.Spec{
				Name: "remove", Execute: does,
				Input: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"id":` + argument + `},"required":["id"]}`),
				Needs: []perm.ResourceAccess{perm.Access(perm.Delete, "file://workspace/items/{id}")},
			}
			_, err := tool.FromSpec(spec)
			if ok {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "{id}")
			spec.Needs = []perm.ResourceAccess{perm.Access(perm.Delete, "file://workspace/items/*")}
			_, err = tool.FromSpec(spec)
			require.NoError(t, err, "without the parameter it is asked for as it is needed")
		})
	}
}

// TestAccessesOfAnInput: what a call would be asked for can be told before it is
// made, and of no input that it would not be made with.
func TestAccessesOfAnInput(t *testing.T) {
	t.Run("needs that the input fills in", func(t *testing.T) {
		move, err := tool.FromSpec(tool.Spec{
			Name: "move", Execute: does,
			Input: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"from":{"type":"string"},"to":{"type":"string"}},"required":["from"]}`),
			Needs: []perm.ResourceAccess{perm.Access(perm.Delete, "file://workspace/{from}"), perm.Access(perm.Write, "file://workspace/{to}"), perm.Access(perm.List, "file://workspace/**")},
		})
		require.NoError(t, err)
		all, err := move.Accesses(json.RawMessage(`{"from":"a b","to":"c"}`))
		require.NoError(t, err)
		require.Equal(t, []perm.ResourceAccess{perm.Access(perm.Delete, "file://workspace/a%20b"), perm.Access(perm.Write, "file://workspace/c")}, all)
		all, err = move.Accesses(json.RawMessage(`{"from":"a"}`))
		require.NoError(t, err)
		require.Equal(t, []perm.ResourceAccess{perm.Access(perm.Delete, "file://workspace/a")}, all)
		for _, bad := range []string{`{}`, `{"from":"a","from":"b"}`, `{"from":7}`, `nonsense`, ``} {
			_, err := move.Accesses(json.RawMessage(bad))
			require.ErrorIs(t, err, tool.ErrInvalid, bad)
		}
		_, err = move.Accesses(json.RawMessage(`{"from":"../a"}`))
		require.Error(t, err)
	})
	_, err := tool.Tool{}.Accesses(json.RawMessage(`{}`))
	require.ErrorIs(t, err, tool.ErrInvalid)
}

// TestNoGoFunctionIsSandboxed: nothing would keep it to its accesses, so no
// constructor takes the claim.
func TestNoGoFunctionIsSandboxed(t *testing.T) {
	for confinement, ok := range map[tool.Confinement]bool{"": true, tool.Trusted: true, tool.Handles: true, tool.Sandbox: false, "vm": false} {
		_, err := tool.FromSpec(tool.Spec{Name: "shell", Execute: does, Confinement: confinement})
		require.Equal(t, ok, err == nil, "%q: %v", confinement, err)
	}
	_, err := tool.Create("shell", "", func(context.Context, string) (string, error) { return "", nil }, tool.Confined(tool.Sandbox))
	require.ErrorContains(t, err, "sandbox")
	fine, err := tool.FromSpec(tool.Spec{Name: "shell", Execute: does})
	require.NoError(t, err)
	_, err = fine.Modify(func(s *tool.Spec) { s.Confinement = tool.Sandbox })
	require.ErrorContains(t, err, "sandbox")
}

func TestCompensableNeedsItsRevert(t *testing.T) {
	_, err := tool.FromSpec(tool.Spec{Name: "pay", Execute: does, EffectClass: effect.Compensable})
	require.ErrorContains(t, err, "Revert")
}

func TestUnknownEffectClass(t *testing.T) {
	_, err := tool.FromSpec(tool.Spec{Name: "pay", Execute: does, EffectClass: "harmless"})
	require.ErrorContains(t, err, `unknown effect class "harmless"; valid are [pure reversible compensable deferrable pivot]`)
}

// TestPureNeedsChangeNothing: what a tool declares to need belongs to what it declares
// of its effects.
func TestPureNeedsChangeNothing(t *testing.T) {
	for action, ok := range map[perm.Action]bool{
		perm.Read: true, perm.List: true, perm.Execute: true, perm.Connect: true, perm.Use: true, perm.Call: true, perm.AskClient: true,
		perm.Write: false, perm.Delete: false,
	} {
		spec := tool.Spec{Name: "look", Execute: does, EffectClass: effect.Pure, Confinement: tool.Handles, Needs: []perm.ResourceAccess{
			perm.Access(perm.Read, "file://workspace/**"), perm.Access(action, map[bool]string{true: "https://api.example.com/**", false: "file://workspace/**"}[action == perm.Connect]),
		}}
		_, err := tool.FromSpec(spec)
		if ok {
			require.NoError(t, err, action)
			continue
		}
		require.ErrorContains(t, err, `need "`+string(action)+` file://workspace/**" changes a resource`)
		spec.EffectClass = effect.Reversible
		made, err := tool.FromSpec(spec)
		require.NoError(t, err)
		_, err = made.Modify(func(s *tool.Spec) { s.EffectClass = effect.Pure })
		require.ErrorContains(t, err, "changes a resource", "a copy is held to it too")
		spec.ClassOf = func(json.RawMessage) effect.Class { return effect.Pure }
		_, err = tool.FromSpec(spec)
		require.NoError(t, err, "single calls may be pure; their handles refuse changes")
	}
}
