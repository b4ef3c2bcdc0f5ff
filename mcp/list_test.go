package mcp_test

import (
	"context"
	"slices"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/tool"
)

// TestList: the tools by name, each with its schema and what it declares as hints, for this session alone.
func TestList(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		h := newServerSetup(t, mcp.Options{})
		r, err := h.client(revision, nil).ListTools(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, "private", r.CacheScope)
		require.Positive(t, r.TTLMs)
		require.Empty(t, r.NextCursor)
		byName := map[string]*sdk.Tool{}
		var names []string
		for _, l := range r.Tools {
			byName[l.Name] = l
			names = append(names, l.Name)
		}
		require.True(t, slices.IsSorted(names))
		require.Subset(t, names, []string{"upper", "file_read", "file_write", "file_delete"})

		upper := byName["upper"]
		require.Equal(t, map[string]any{
			"type": "object", "properties": map[string]any{"input": map[string]any{"type": "string"}}, "required": []any{"input"}, "additionalProperties": false,
		}, upper.InputSchema)
		require.True(t, upper.Annotations.ReadOnlyHint)
		require.True(t, byName["file_read"].Annotations.ReadOnlyHint)
		write := byName["file_write"].Annotations
		require.False(t, write.ReadOnlyHint)
		require.False(t, *write.DestructiveHint, "it can be reverted")
		require.False(t, *write.OpenWorldHint)
	})
}

// TestToolsChanged: clients are told, and find the new list.
func TestToolsChanged(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		h := newServerSetup(t, mcp.Options{NoTransactions: true})
		told := make(chan struct{}, 8)
		cs := h.client(revision, &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { told <- struct{}{} }})
		before, err := cs.ListTools(t.Context(), nil)
		require.NoError(t, err)
		only, _ := h.rt.Tools().Get("upper")
		require.NoError(t, h.rt.SetTools([]tool.Tool{only}...))
		h.srv.ToolsChanged()
		receive(t, told)
		after, err := cs.ListTools(t.Context(), nil)
		require.NoError(t, err)
		require.Greater(t, len(before.Tools), 1)
		require.Len(t, after.Tools, 1)
	})
}
