package compose_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool/compose"
)

// TestAPersonIsAskedAboutALaterPart: what a later part asks for is asked about before that
// part runs, when the one before it has changed something; refused, all of it goes back.
func TestAPersonIsAskedAboutALaterPart(t *testing.T) {
	for _, approved := range []bool{true, false} {
		s := &shop{t: t, dir: t.TempDir()}
		whole, err := compose.Chain(compose.Declaration{Name: "whole", Description: "All of it."}, compose.Part{Tool: s.put("first")}, compose.Part{Tool: s.upper("second")})
		require.NoError(t, err)
		var asked []ctxperm.ApprovalRequest
		boss := ctxperm.ApproverFunc(func(_ context.Context, a ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
			asked = append(asked, a)
			data, err := os.ReadFile(filepath.Join(s.dir, "a"))
			require.NoError(t, err)
			require.Equal(t, "x.first", string(data))
			if approved {
				return ctxperm.Approve("boss"), nil
			}
			return ctxperm.Deny("boss", "no"), nil
		})
		rt := s.runtime([]agent.Option{agent.Approver(boss), agent.Policy(perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
			if r.Access.Dynamic {
				return perm.NewDecision(perm.Ask, perm.Details{}), nil
			}
			return perm.NewDecision(perm.Allow, perm.Details{}), nil
		}))}, whole)
		o, err := begin(t, session(t, rt)).Invoke(t.Context(), "whole", line{"a", "x"})
		require.Len(t, asked, 1)
		require.Equal(t, []perm.ResourceAccess{perm.Access(perm.Call, "tool://second")}, asked[0].Accesses)
		require.True(t, asked[0].Running)
		if !approved {
			require.Error(t, err)
			require.Equal(t, "approver", o.Stage)
			require.NoFileExists(t, filepath.Join(s.dir, "a"))
			continue
		}
		require.NoError(t, err, o.Text)
		_, c, err := revert.LoadCall(t.Context(), rt.Journal(), o.Call)
		require.NoError(t, err)
		require.Len(t, c.Approvals, 1)
		require.Equal(t, "tool://second", c.Approvals[0].Access[0].Resource)
	}
}
