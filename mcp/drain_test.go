package mcp_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/tool"
)

type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// TestPipe: a client that has said all it wants gets its answers before the end.
func TestPipe(t *testing.T) {
	late := make(chan struct{})
	slow, err := tool.Create("slow", "", func(context.Context, string) (string, error) {
		<-late
		return "answered", nil
	}, tool.Pure())
	require.NoError(t, err)
	h := newServerSetup(t, mcp.Options{}, agent.Tools(slow))
	var out bytes.Buffer
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"input":"x"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}` + "\n")
	end := io.NopCloser(io.MultiReader(in, ends(sync.OnceFunc(func() { close(late) }))))
	require.NoError(t, h.srv.RunIO(t.Context(), end, unclosed{&out}, h.session("coder")))
	require.Contains(t, out.String(), "answered")
}

// ends is the end of a stream, which tells when it is read.
type ends func()

func (e ends) Read([]byte) (int, error) {
	e()
	return 0, io.EOF
}
