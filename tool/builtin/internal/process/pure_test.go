package process_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	handle "github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// TestPureProgramChangesNothing: what a program wrote in a call that its tool declares
// pure does not come to be.
func TestPureProgramChangesNothing(t *testing.T) {
	runs, err := tool.FromSpec(tool.Spec{
		Name: "runs", Description: "Runs a program.", EffectClass: effect.Reversible, Confinement: tool.Handles,
		Needs: []perm.ResourceAccess{
			perm.Access(perm.Execute, "exec://sh"), perm.Access(perm.Read, "file://workspace/**"), perm.Access(perm.Write, "file://workspace/**"),
		},
		ClassOf: func(in json.RawMessage) effect.Class { return effect.Pure },
		Execute: func(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
			var script string
			if err := json.Unmarshal(in, &script); err != nil {
				return tool.Result{}, err
			}
			_, err := handle.Run(ctx, tc, handle.Cmd{Argv: []string{"sh", "-c", script}, Root: "workspace"})
			return tool.Text("ran"), err
		},
	})
	require.NoError(t, err)
	w := newProgramSetup(t, allowAll(), agent.Tools(runs))
	tx, err := w.s.Begin(t.Context())
	require.NoError(t, err)
	o, err := tx.Invoke(t.Context(), "runs", "true")
	require.NoError(t, err, o.Text)
	o, err = tx.Invoke(t.Context(), "runs", "echo x > new")
	require.ErrorIs(t, err, tool.ErrDenied, o.Text)
	require.Contains(t, o.Error.Why, "declares this call pure")
	require.NoFileExists(t, filepath.Join(w.dir, "new"))
}
