package mcp_test

import (
	"context"
	"encoding/json"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// TestHintsAreListed: a client finds what the author of a tool says of it, as hints where the protocol has them and as
// metadata where it has none, and with a text what that is.
func TestHintsAreListed(t *testing.T) {
	page, err := tool.FromSpec(tool.Spec{
		Name: "page", Description: "Writes a page.", Usage: "Call it once.", EffectClass: effect.Pure, OutputContent: &provenance.Content{MediaType: "text/markdown"},
		Hints: tool.Hints{Idempotent: true, Risk: perm.RiskHigh, Approval: true},
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text("# Done"), nil
		},
	})
	require.NoError(t, err)
	routeByRevision(t, func(t *testing.T, revision string) {
		cs := newServerSetup(t, mcp.Options{}, agent.Tools(page)).client(revision, nil)
		list, err := cs.ListTools(t.Context(), nil)
		require.NoError(t, err)
		for _, l := range list.Tools {
			if l.Name != "page" {
				require.NotContains(t, l.Meta, "remit.dev/usage", l.Name)
				continue
			}
			require.True(t, l.Annotations.IdempotentHint)
			require.Equal(t, "Call it once.", l.Meta["remit.dev/usage"])
			require.Equal(t, "high", l.Meta["remit.dev/risk"])
			require.Equal(t, true, l.Meta["remit.dev/approval"])
		}
		r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "page", Arguments: map[string]any{"input": "x"}})
		require.NoError(t, err)
		text, ok := r.Content[0].(*sdk.TextContent)
		require.True(t, ok)
		require.Equal(t, "# Done", text.Text)
		require.Equal(t, "text/markdown", text.Meta["remit.dev/mediaType"])
	})
}
