package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/perm"
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

// TestListPages reads a long list in pages: each visible tool once, in order. A
// TestListedToolIsReplaced checks that a list has the description of the tool
// that has a name now, and not of an earlier one.
func TestListedToolIsReplaced(t *testing.T) {
	h := newServerSetup(t, mcp.Options{})
	cs := h.client("2025-06-18", nil) // clients of later revisions reuse a list
	for _, text := range []string{"Looks at one thing.", "Looks at another thing.", "Looks at one thing."} {
		made, err := tool.Create("look", text, func(_ context.Context, in string) (string, error) { return in, nil }, tool.Pure())
		require.NoError(t, err)
		require.NoError(t, h.rt.SetTools(made))
		for range 2 {
			r, err := cs.ListTools(t.Context(), nil)
			require.NoError(t, err)
			require.Equal(t, "look", r.Tools[0].Name)
			require.Equal(t, text, r.Tools[0].Description)
		}
	}
}

// page asks the policy only about the tools that can be on it, and one more.
func TestListPages(t *testing.T) {
	var want []string
	var tools []tool.Tool
	for i := range 1_400 {
		name := fmt.Sprintf("t_%04d", i)
		made, err := tool.Create(name, "Looks at one thing.", func(_ context.Context, in string) (string, error) { return in, nil }, tool.Pure())
		require.NoError(t, err)
		tools = append(tools, made)
		if !strings.HasSuffix(name, "7") && name != "t_0450" {
			want = append(want, name)
		}
	}
	var asked atomic.Int32
	engine := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		if r.Purpose != perm.PurposeList {
			return perm.NewDecision(perm.Allow, perm.Details{}), nil
		}
		asked.Add(1)
		var hides []perm.Reason
		switch {
		case r.Tool.Name == "t_0450":
			return perm.Decision{}, errors.New("not decided")
		case strings.HasSuffix(r.Tool.Name, "7"):
			hides = []perm.Reason{{Text: "it ends with 7", Set: "hide"}}
		}
		return perm.NewDecision(perm.Allow, perm.Details{HideReasons: hides}), nil
	})
	h := newServerSetup(t, mcp.Options{}, agent.Policy(engine))
	require.NoError(t, h.rt.SetTools(tools...))
	cs := h.client("2025-06-18", nil) // clients of later revisions reuse a list
	var names []string
	cursor := ""
	for page := range 3 {
		asked.Store(0)
		r, err := cs.ListTools(t.Context(), &sdk.ListToolsParams{Cursor: cursor})
		require.NoError(t, err)
		for _, l := range r.Tools {
			names = append(names, l.Name)
		}
		cursor = r.NextCursor
		require.Equal(t, page == 2, cursor == "", "page %d", page)
		require.LessOrEqual(t, asked.Load(), int32(570), "501 that are visible, and a tenth that are not")
	}
	require.Equal(t, append(want, "txn_begin", "txn_commit", "txn_preview", "txn_revert", "txn_status"), names)

	_, none := cs.ListTools(t.Context(), &sdk.ListToolsParams{Cursor: "none"})
	require.ErrorContains(t, none, "cursor")
	for _, hidden := range []string{"t_0007", "t_0450", "t_0001@"} {
		_, err := cs.ListTools(t.Context(), &sdk.ListToolsParams{Cursor: hidden})
		require.EqualError(t, err, none.Error(), "a cursor does not tell that %s exists", hidden)
	}
	asked.Store(0)
	_, err := cs.ListTools(t.Context(), &sdk.ListToolsParams{Cursor: "t_1399"})
	require.NoError(t, err)
	require.Equal(t, int32(1), asked.Load(), "about the cursor alone")
}

// TestOneToolIsDecidedAlone checks that a question about one tool costs one
// decision, whatever is beside it.
func TestOneToolIsDecidedAlone(t *testing.T) {
	var asked atomic.Int32
	engine := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		if r.Purpose == perm.PurposeList {
			asked.Add(1)
		}
		return perm.NewDecision(perm.Allow, perm.Details{}), nil
	})
	h := newServerSetup(t, mcp.Options{}, agent.Policy(engine))
	require.NoError(t, h.srv.SetResources(mcp.Resource{URI: "notes://{input}", Name: "upper", Tool: "upper"}))
	cs := h.client("2025-06-18", nil)
	asked.Store(0)
	r, err := cs.ListResourceTemplates(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, r.ResourceTemplates, 1)
	require.Equal(t, int32(1), asked.Load())
}
