package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp/internal/trace"
	"github.com/remit-dev/remit/tool"
)

// TestPastTheSDK: a server is sent the same calls by the way past the SDK as by the SDK, and what it answers comes to the same.
func TestPastTheSDK(t *testing.T) {
	for _, revision := range []string{modern, legacy} {
		t.Run(revision, func(t *testing.T) {
			h := newGatewaySetup(t)
			record := filepath.Join(t.TempDir(), "record")
			h.open(map[string]string{"s": h.server("asker", map[string]string{"REVISION": revision, "TOLD": filepath.Join(h.dir, "told"), "RECORD": record})}, requestingTools)
			ctx := trace.From(t.Context(), map[string]any{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "baggage": "a=<&>"})
			both := map[bool][]string{}
			for _, sdk := range []bool{false, true} {
				if sdk {
					require.NoError(t, h.gateway.ThroughSDK(t.Context(), "s"))
				}
				require.NoError(t, os.WriteFile(record, nil, 0o644))
				for _, ask := range []struct {
					name string
					args tool.Args
				}{
					{"echo", tool.Args{"word": "a <b> & \u2028 \u00e9 \"c\" \\ \x00"}}, {"echo", tool.Args{}}, {"echo", tool.Args{"word": 7}}, {"person", tool.Args{}}, {"folders", tool.Args{}},
				} {
					out, err := h.txn().Invoke(ctx, "s__"+ask.name, ask.args)
					both[sdk] = append(both[sdk], strings.ReplaceAll(fmt.Sprintf("%s %s %s %v", ask.name, out.Status, out.Output, err), out.Call, "id"))
				}
				both[sdk] = append(both[sdk], requests(t, record)...)
			}
			require.Equal(t, strings.Join(both[true], "\n"), strings.Join(both[false], "\n"))
			require.Contains(t, strings.Join(both[false], "\n"), `"word":"a <b>`)
			require.Greater(t, strings.Count(strings.Join(both[false], "\n"), methodCall), 4)
		})
	}
}

const methodCall = "tools/call"

// unlike is what no two calls have in common.
var unlike = regexp.MustCompile(`"(id|progressToken|requestState)":("[^"]*"|[0-9]+)`)

// requests are what a server was asked, without that. The gateway also lists definitions when the server confirms that it reports changes.
func requests(t *testing.T, record string) (all []string) {
	t.Helper()
	raw, err := os.ReadFile(record)
	require.NoError(t, err)
	for line := range strings.Lines(string(raw)) {
		if strings.Contains(line, `/list"`) {
			continue
		}
		all = append(all, unlike.ReplaceAllString(line, `"$1":"one"`))
	}
	return all
}

// TestReportsBeforeTheAnswer: what a server reports of a call before its answer is told, each of them and in its order, also where the
// answer comes at once.
func TestReportsBeforeTheAnswer(t *testing.T) {
	const reports = 500
	lines := make([]string, 0, reports+1)
	for i := range reports {
		lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":TOKEN,"progress":%d,"message":"m%d"}}`, i+1, i+1))
	}
	lines = append(lines, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"of nobody","progress":1}}`, `{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`)
	h := newGatewaySetup(t)
	h.progress = make(chan tool.Progress, 2*reports)
	h.open(map[string]string{"s": h.scripted(oneTool, "tools/call "+strings.Join(lines, " THEN "))}, `{"s": {"tools": {"x": {"effectClass": "pure"}}}}`)
	h.listen = func() {
		for h.gateway.Flying("s") > 0 { // all is there by then, and the answer too
			runtime.Gosched()
		}
	}
	for range 10 {
		require.Equal(t, tool.StatusDone, h.call("s__x", tool.Args{}).Status)
		require.Len(t, h.progress, reports)
		for i := range reports {
			require.Equal(t, fmt.Sprintf("m%d", i+1), (<-h.progress).Message)
		}
	}
}

// TestServerThatReadsNothing: a server that reads nothing any more ends no later than the time of each call, and holds up no end of the gateway.
func TestServerThatReadsNothing(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.scripted(oneTool, "tools/call DEAF")},
		`{"s": {"tools": {"x": {"effectClass": "pivot", "timeout": "1s"}}}}`)
	call := func(size int) {
		out, err := h.txn().Invoke(t.Context(), "s__x", tool.Args{"text": strings.Repeat("x", size)})
		require.ErrorIs(t, err, tool.ErrUnknown)
		require.Contains(t, out.Error.Why, "timed out")
		require.Equal(t, tool.StatusUnknown, out.Status)
	}
	// The first call, and the one whose line is begun, are in flight. Nothing is
	// sent of the others. On a busy machine, the time of a call can end before its
	// line is begun.
	for in, size := range []int{1, 1 << 20} {
		for range 50 {
			if call(size); h.gateway.Flying("s") > in {
				break
			}
		}
		require.Equal(t, in+1, h.gateway.Flying("s"))
	}
	for _, size := range []int{1, 1 << 20} {
		call(size)
		require.Equal(t, 2, h.gateway.Flying("s"))
	}
	require.NoError(t, h.gateway.Close())
}

// TestServerThatHungUp: a call of a server that takes no more requests ends at once, though it still has its output open. It is ended with
// the gateway at the latest.
func TestServerThatHungUp(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.scripted(oneTool, `tools/call HANGUP {"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`)}, `{"s": {"tools": {"x": {"effectClass": "pivot"}}}}`)
	require.Equal(t, tool.StatusDone, h.call("s__x", tool.Args{}).Status)
	pid, err := strconv.Atoi(h.get("store.json.pid"))
	require.NoError(t, err)
	out, err := h.txn().Invoke(t.Context(), "s__x", tool.Args{})
	require.ErrorIs(t, err, tool.ErrUnknown)
	require.Contains(t, out.Error.Why, "has gone while the call was under way")
	require.NoError(t, h.gateway.Close())
	p, err := os.FindProcess(pid)
	require.NoError(t, err)
	require.ErrorIs(t, p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}
