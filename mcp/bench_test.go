package mcp_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// BenchmarkListPage reads the first page of the list of a runtime with many
// tools.
func BenchmarkListPage(b *testing.B) {
	for _, n := range []int{500, 3_000} {
		b.Run(fmt.Sprintf("%d tools", n), func(b *testing.B) {
			var tools []tool.Tool
			for i := range n {
				t, err := tool.Create(fmt.Sprintf("look_%04d", i), "Looks at one thing.", func(_ context.Context, in string) (string, error) {
					return in, nil
				}, tool.Pure())
				require.NoError(b, err)
				tools = append(tools, t)
			}
			rt, err := agent.New(agent.Log(slog.New(slog.DiscardHandler)), agent.Tools(tools...))
			require.NoError(b, err)
			srv, err := mcp.New(rt, mcp.Options{})
			require.NoError(b, err)
			s, err := rt.Session(b.Context(), perm.Principal{ID: "coder"}, agent.ClientProfile(perm.ClientFacts{Surface: mcp.Surface}))
			require.NoError(b, err)
			here, there := sdk.NewInMemoryTransports()
			go func() { _ = srv.Run(context.WithoutCancel(b.Context()), there, s) }()
			cs, err := sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil).Connect(b.Context(), here, &sdk.ClientSessionOptions{ProtocolVersion: "2025-06-18"}) // this revision has no cache in the client
			require.NoError(b, err)
			for b.Loop() {
				r, err := cs.ListTools(b.Context(), nil)
				require.NoError(b, err)
				require.Len(b, r.Tools, 500)
			}
		})
	}
}
