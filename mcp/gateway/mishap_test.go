package gateway_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp/gateway"
	"github.com/remit-dev/remit/mcp/internal/trace"
	"github.com/remit-dev/remit/tool"
)

// TestDeath: a call in flight when its server dies is unknown, unless the tool only reads; what comes next starts the
// server again.
func TestDeath(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.server("store", map[string]string{"COMPLAIN": "out of paper"})}, `{"s": {"tools": {
		"get": {"effectClass": "pure"}, "die": {"effectClass": "pivot"}}}}`)
	out := h.call("s__die", tool.Args{})
	require.Equal(t, tool.StatusUnknown, out.Status, out.Text)
	require.Contains(t, out.Error.Why, "server s has gone while the call was under way")
	require.Contains(t, out.Error.Why, "out of paper")
	h.put("store.json", `{"a":"1"}`)
	out = h.call("s__get", tool.Args{"key": "a"})
	require.Equal(t, tool.StatusDone, out.Status, out.Text)
	require.Equal(t, []gateway.ServerStatus{{Server: "s", Connected: true, Tools: 15}}, h.gateway.ServerStatuses())
}

// TestDeathOfAReader: what only reads has had no effect, whatever became of its server.
func TestDeathOfAReader(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.server("store", nil)}, `{"s": {"tools": {"die": {"effectClass": "pure"}}}}`)
	require.Equal(t, tool.StatusFailed, h.call("s__die", tool.Args{}).Status)
}

// TestHang: a call whose server does not answer ends with its time, and the next one is not held up by it.
func TestHang(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.server("store", nil)}, `{"s": {"tools": {
		"get": {"effectClass": "pure"}, "set": {"effectClass": "pivot"}, "hang": {"effectClass": "pivot", "timeout": "50ms"}}}}`)
	out := h.call("s__hang", tool.Args{})
	require.Equal(t, tool.StatusUnknown, out.Status, out.Text)
	require.Equal(t, tool.StatusDone, h.call("s__set", tool.Args{"key": "a", "value": "1"}).Status)
}

// TestLate: an answer that comes after the call has ended reaches nobody, and no later call takes it for its own.
func TestLate(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.server("store", nil)}, `{"s": {"tools": {
		"get": {"effectClass": "pure"}, "late": {"effectClass": "pivot"}}}}`)
	h.put("store.json", `{"a":"1"}`)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		_ = exists(filepath.Join(h.dir, "store.json.at"))
	}()
	out, err := h.txn().Invoke(ctx, "s__late", tool.Args{})
	require.ErrorIs(t, err, tool.ErrUnknown)
	require.Equal(t, tool.StatusUnknown, out.Status)
	for range 20 {
		out = h.call("s__get", tool.Args{"key": "a"})
		require.Contains(t, string(out.Output), `"value":"1"`)
	}
}

// TestServersThatAreNone: what a server does instead of answering ends in words, in bounded time and memory, and does not
// keep others from being served.
func TestServersThatAreNone(t *testing.T) {
	for name, tt := range map[string]struct {
		lines []string
		why   string
	}{
		"garbage":      {[]string{"tools/list hello, I am a server"}, "it did not answer in time; it wrote: hello, I am a server"},
		"no list":      {[]string{`tools/list {"jsonrpc":"2.0","id":ID,"result":[]}`}, ""},
		"no schema":    {[]string{`tools/list {"jsonrpc":"2.0","id":ID,"result":{"tools":[{"name":"x"}]}}`}, "none"},
		"endless":      {[]string{"tools/list ENDLESS"}, "too long"},
		"long":         {[]string{"tools/list " + `{"jsonrpc":"2.0","id":ID,"result":{"tools":[{"name":"x","description":"` + strings.Repeat("x", 1<<20) + `","inputSchema":{"type":"object"}}]}}`}, "none"},
		"heavy":        {[]string{`tools/list {"jsonrpc":"2.0","id":ID,"result":{"tools":[` + strings.Repeat(`{"name":"`+strings.Repeat("x", 1<<20)+`"},`, 17) + `{}]}}`}, "longer than 16 MiB"},
		"flood":        {[]string{"tools/list FLOOD"}, "too many messages"},
		"twice":        {[]string{strings.Replace(oneTool, `"tools":[`, `"tools":[{"name":"x","inputSchema":{}},`, 1)}, `two tools named "x"`},
		"pages":        {[]string{strings.Replace(strings.Replace(oneTool, `"result":{`, `"result":{"nextCursor":"a",`, 1), `"tools":[{"name":"x","inputSchema":{"type":"object"}}]`, `"tools":[]`, 1)}, "more than 100 pages"},
		"exits":        {[]string{"tools/list EXIT"}, "EOF"},
		"says nothing": {[]string{"tools/list SILENCE"}, "it did not answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newGatewaySetup(t)
			slow := strings.Contains(tt.why, "in time")
			hurried := func(o *gateway.Options) {
				if slow {
					o.StartTimeout = 2 * time.Second
				}
			}
			h.open(map[string]string{"bad": h.scripted(tt.lines...), "good": h.server("store", nil)}, "", hurried)
			states := h.gateway.ServerStatuses()
			for range 20 {
				if !slow || states[1].Connected {
					break
				}
				require.NoError(t, h.gateway.Close()) // the machine was so slow that the good one did not answer in time either
				h.begin(hurried)
				states = h.gateway.ServerStatuses()
			}
			require.True(t, states[1].Connected)
			if tt.why == "none" { // the tool is left out, and the server is there
				require.True(t, states[0].Connected)
				require.Zero(t, states[0].Tools)
				return
			}
			require.False(t, states[0].Connected)
			require.Contains(t, states[0].Why, tt.why)
		})
	}
}

// TestAnswersThatAreNone: a call whose answer nobody can read is unknown.
func TestAnswersThatAreNone(t *testing.T) {
	for name, tt := range map[string]struct{ line, why string }{
		"garbage":     {"tools/call nonsense", "timed out"},
		"noise":       {"tools/call " + strings.Repeat("nonsense THEN ", 11_000) + "nonsense", "the server sent too many messages"},
		"no object":   {`tools/call {"jsonrpc":"2.0","id":ID,"result":[1]}`, "not valid"},
		"twice":       {`tools/call {"jsonrpc":"2.0","id":ID,"result":{"content":[],"content":[]}}`, "not valid"},
		"error":       {`tools/call {"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"I will not"}}`, "I will not"},
		"another id":  {`tools/call {"jsonrpc":"2.0","id":99,"result":{"content":[]}}`, "timed out"},
		"flood":       {"tools/call FLOOD", "has gone"},
		"wants input": {`tools/call {"jsonrpc":"2.0","id":ID,"result":{"resultType":"input_required","inputRequests":{}}}`, "input_required"},
		"exits":       {"tools/call EXIT", "has gone"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newGatewaySetup(t)
			timeout := "2m"
			if tt.why == "timed out" {
				timeout = "100ms"
			}
			h.open(map[string]string{"s": h.scripted(oneTool, tt.line)}, fmt.Sprintf(`{"s": {"tools": {"x": {"effectClass": "pivot", "timeout": %q}}}}`, timeout))
			out, err := h.txn().Invoke(t.Context(), "s__x", tool.Args{})
			require.ErrorIs(t, err, tool.ErrUnknown)
			require.Contains(t, out.Error.Why, tt.why)
		})
	}
}

// TestRepeatedListChanges: a server that changes what it declares again and again is listened to less and less.
func TestRepeatedListChanges(t *testing.T) {
	var lists []string
	for i := range 6 {
		lists = append(lists, strings.Replace(oneTool, `"name":"x"`, fmt.Sprintf(`"name":"x%d"`, i), 1)+` THEN {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	}
	h := newGatewaySetup(t)
	last := make(chan struct{}, 1)
	begun := time.Now()
	h.open(map[string]string{"s": h.scripted(lists...)}, "", func(o *gateway.Options) {
		o.OnToolsChanged = func(tools []tool.Tool) {
			if slices.ContainsFunc(tools, func(t tool.Tool) bool { return strings.HasSuffix(t.Name(), "x5") }) {
				select {
				case last <- struct{}{}:
				default: // it was heard already
				}
			}
		}
	})
	receive(t, last)
	require.GreaterOrEqual(t, time.Since(begun), 1500*time.Millisecond, "100, 200, 400 and 800 ms: it is never early")
}

// TestRequestsWithoutEnd: a server that asks and does not read is cut off before what it asked fills the memory, and one that
// waits for its answers is not.
func TestRequestsWithoutEnd(t *testing.T) {
	ping := func(id, params string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"` + params + `} THEN `
	}
	large := `,"params":{"_meta":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`
	many := func(n int, end, params string) (all string) {
		for i := range n {
			all += ping(fmt.Sprintf(`"p%d%s"`, i, end), params)
		}
		return all
	}
	full := many(100, strings.Repeat("x", 1000), "")  // more than a pipe holds of answers
	after := many(200, strings.Repeat("y", 1000), "") // it still writes when the two before have been read, so it has read no answer
	for name, tt := range map[string]struct {
		asks   string
		status tool.Status
	}{
		"some":         {many(50, "", ""), tool.StatusDone},
		"full":         {full, tool.StatusDone},
		"of a long id": {ping(`"`+strings.Repeat("x", 2<<10)+`"`, ""), tool.StatusFailed},
		"of one id":    {full + ping(`"a"`, "") + ping(`"a"`, "") + after, tool.StatusFailed},
		"many":         {many(9_000, "", ""), tool.StatusFailed},
		"large":        {full + many(34, "", large), tool.StatusFailed},
	} {
		t.Run(name, func(t *testing.T) {
			h := newGatewaySetup(t)
			h.open(map[string]string{"s": h.scripted(oneTool, "tools/call "+tt.asks+`{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`)}, `{"s": {"tools": {"x": {"effectClass": "pure"}}}}`)
			require.Equal(t, tt.status, h.call("s__x", tool.Args{}).Status)
		})
	}
}

// TestRest: a server that cannot be started is not started in a circle, and a call to it has no effect.
func TestRest(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.scripted(oneTool)}, `{"s": {"tools": {"x": {"effectClass": "pivot"}}}}`)
	require.NoError(t, h.gateway.Close())
	h.config = strings.Replace(h.config, `"SERVER":"script"`, `"SERVER":"none"`, 1)
	h.begin(func(o *gateway.Options) { o.MaxBackoff = time.Hour })
	var why string
	for range 12 { // each attempt doubles the wait: a busy machine can use up a short one before the call
		out := h.call("s__x", tool.Args{})
		require.Equal(t, tool.StatusFailed, out.Status, "what was accepted is there, and its server is not: %s", out.Text)
		if why = out.Error.Why; strings.Contains(why, "server s is down") {
			break
		}
	}
	require.Contains(t, why, "server s is down, and is tried again in")
}

// TestTrace: the trace that a call belongs to is told to the server.
func TestTrace(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.server("store", nil)}, `{"s": {"tools": {"trace": {"effectClass": "pure"}}}}`)
	out, err := h.txn().Invoke(trace.From(t.Context(), map[string]any{"traceparent": parent}), "s__trace", tool.Args{})
	require.ErrorIs(t, err, tool.ErrFailed)
	require.Contains(t, out.Error.Why, "trace "+parent)
}

// TestProgress: what a server reports of a call is told.
func TestProgress(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.server("store", nil)}, `{"s": {"tools": {"progress": {"effectClass": "pure"}}}}`)
	ctx, cancel := context.WithCancel(t.Context())
	said := make(chan string, 1)
	go func() {
		said <- (<-h.progress).Message
		cancel()
	}()
	_, err := h.txn().Invoke(ctx, "s__progress", tool.Args{})
	require.ErrorIs(t, err, tool.ErrCancelled)
	require.Equal(t, "half", receive(t, said))
}

// TestNoise: lines of a server's standard output that are no messages are skipped, wherever they come, and some of them are logged, each cut
// and without what a terminal would take for its own.
func TestNoise(t *testing.T) {
	noisy := func(line, noise string) string {
		method, answer, _ := strings.Cut(line, " ")
		return method + " " + noise + " THEN " + answer + " THEN and goodbye"
	}
	h := newGatewaySetup(t)
	var lines []string
	for range 30 {
		lines = append(lines, noisy(`tools/call {"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"done"}]}}`, "\x1b[31mwarming up "+strings.Repeat("x", 1000)))
	}
	h.open(map[string]string{"s": h.scripted(append(lines,
		noisy(`initialize {"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"script","version":"1"}}}`, "Welcome to script 1.0!"),
		noisy(oneTool, `{"level":30,"msg":"listing"}`))...)}, `{"s": {"tools": {"x": {"effectClass": "pure"}}}}`)
	require.True(t, h.gateway.ServerStatuses()[0].Connected, h.gateway.ServerStatuses()[0].Why)
	for range 30 {
		out := h.call("s__x", tool.Args{})
		require.Equal(t, tool.StatusDone, out.Status, out.Text)
		require.Equal(t, "done", out.Text)
	}
	require.NoError(t, h.gateway.Close())
	said := h.log.String()
	require.Contains(t, said, "Welcome to script 1.0!")
	require.Contains(t, said, "listing")
	require.Contains(t, said, "warming up xxx")
	require.NotContains(t, said, "\x1b")
	require.NotContains(t, said, strings.Repeat("x", 300))
	require.Equal(t, 20, strings.Count(said, "is no message, and is skipped"))
	require.Equal(t, 1, strings.Count(said, "goes on to write lines that are no messages"))
}
