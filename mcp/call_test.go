package mcp_test

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// TestCall: a call goes down the line, its result says what it was, and it is reverted by what its result says.
func TestCall(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		h := newServerSetup(t, mcp.Options{})
		in := h.session("coder")
		cs := h.clientOf(revision, nil, in)

		r := h.call(cs, "upper", tool.Args{"input": "hi"})
		require.False(t, r.IsError)
		require.Equal(t, "HI", textOf(t, r))
		require.Equal(t, "done", r.Meta["remit.dev/status"])

		r = h.call(cs, "file_write", tool.Args{"path": "a.txt", "content": "hi"})
		require.False(t, r.IsError, textOf(t, r))
		require.Equal(t, "hi", h.file("a.txt"))
		rep, err := in.Revert(t.Context(), remitMeta(r, "txn"), revert.Options{})
		require.NoError(t, err)
		require.True(t, rep.Complete())
		require.Equal(t, "(none)", h.file("a.txt"))
	})
}

// TestCallRefused: what the policy, the schema or the tool refuses is a result that a model reads and a program understands.
func TestCallRefused(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		h := newServerSetup(t, mcp.Options{})
		cs := h.client(revision, nil)
		for _, tt := range []struct {
			name, tool string
			args       tool.Args
			status     string
			stage      string
			text       string
		}{
			{"policy", "file_write", tool.Args{"path": ".git/config", "content": "SECRET"}, "denied", "policy", "Denied: the history of the repository is out of reach. leave .git to git"},
			{"schema", "file_write", tool.Args{"path": 7}, "invalid", "", "Not a valid call: "},
			{"outside", "file_read", tool.Args{"path": "../x"}, "invalid", "", "Not a valid call: "},
			{"no such file", "file_read", tool.Args{"path": "none.txt"}, "failed", "", "Failed without effect. "},
			{"no input", "upper", tool.Args{}, "invalid", "", `the one member "input"`},
			{"too much", "upper", tool.Args{"input": "a", "more": 1}, "invalid", "", `the one member "input"`},
		} {
			t.Run(tt.name, func(t *testing.T) {
				r := h.call(cs, tt.tool, tt.args)
				require.True(t, r.IsError)
				require.Contains(t, textOf(t, r), tt.text)
				require.Equal(t, tt.status, r.Meta["remit.dev/status"])
				out := outcome(t, r)
				require.Equal(t, tt.status, out.Status)
				require.Equal(t, tt.stage, out.Stage)
				require.NotContains(t, r.Meta["remit.dev/outcome"], "SECRET")
			})
		}
	})
}

// TestUnknownTool: a name that stands for nothing is a fault of the protocol.
func TestUnknownTool(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		h := newServerSetup(t, mcp.Options{})
		_, err := h.client(revision, nil).CallTool(t.Context(), &sdk.CallToolParams{Name: "nothing"})
		var fault *jsonrpc.Error
		require.ErrorAs(t, err, &fault)
		require.EqualValues(t, jsonrpc.CodeInvalidParams, fault.Code)
		require.Equal(t, `unknown tool "nothing"`, fault.Message)
	})
}
