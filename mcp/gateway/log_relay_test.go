package gateway_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp/gateway"
)

// clientLog is what a client was told for its log.
type clientLog struct {
	mu  sync.Mutex
	all []string
}

func (d *clientLog) options() *sdk.ClientOptions {
	return &sdk.ClientOptions{LoggingMessageHandler: func(_ context.Context, r *sdk.LoggingMessageRequest) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.all = append(d.all, fmt.Sprintf("%s %s %v", r.Params.Level, r.Params.Logger, r.Params.Data))
	}}
}

func (d *clientLog) lines() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.all)
}

// chats has a server log something, for a client that wants a level, by the way that its revision has; and waits until it was told.
func (d *clientLog) chats(t *testing.T, cs *sdk.ClientSession, level sdk.LoggingLevel, want ...string) {
	t.Helper()
	p := &sdk.CallToolParams{Name: "s__chat", Arguments: map[string]any{"word": "x"}}
	if cs.InitializeResult().ProtocolVersion >= modern {
		p.Meta = sdk.Meta{sdk.MetaKeyLogLevel: level}
	} else if level != "" {
		require.NoError(t, cs.SetLoggingLevel(t.Context(), &sdk.SetLoggingLevelParams{Level: level}))
	}
	before := len(d.lines())
	r, err := cs.CallTool(t.Context(), p)
	require.NoError(t, err)
	require.False(t, r.IsError, "%v", r.Content)
	require.Eventually(t, func() bool { return len(d.lines())-before >= len(want) }, time.Minute, time.Millisecond)
	require.Equal(t, strings.Join(want, "\n"), strings.Join(d.lines()[before:], "\n"))
}

// TestLogs: what a server logs of a call reaches the client of that call, from the level on that it wants, and no other client.
func TestLogs(t *testing.T) {
	between(t, catalogEntries, func(t *testing.T, _ *gatewaySetup, connect func(*sdk.ClientOptions) *sdk.ClientSession) {
		var one, other clientLog
		mine, theirs := connect(one.options()), connect(other.options())
		debug, info, grave := "debug l map[said:x]", "info l map[said:x]", "error l map[said:x]"
		one.chats(t, mine, "")
		one.chats(t, mine, "error", grave)
		one.chats(t, mine, "debug", debug, info, grave)
		other.chats(t, theirs, "info", info, grave)
		require.Len(t, one.lines(), 4)
	})
}

// TestLogsOfNobody: while calls of two sessions are under way at a server that does not say which one it logs of, nobody is told; of calls
// of one session it is told.
func TestLogsOfNobody(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.catalogEntry(legacy)}, catalogEntries)
	srv := h.serve()
	var one, other clientLog
	mine, theirs := h.connect(srv, modern, one.options()), h.connect(srv, modern, other.options())
	held := func(cs *sdk.ClientSession, file string) func() {
		done := make(chan error, 1)
		go func() {
			_, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Meta: sdk.Meta{sdk.MetaKeyLogLevel: "debug"}, Name: "s__wait", Arguments: map[string]any{"word": file}})
			done <- err
		}()
		for { // until the server is at it
			if raw, err := os.ReadFile(file + ".begun"); err == nil && len(raw) > 0 {
				break
			}
			<-time.After(time.Millisecond)
		}
		return func() {
			require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
			require.NoError(t, receive(t, done))
		}
	}
	end := held(theirs, filepath.Join(h.dir, "a"))
	one.chats(t, mine, "debug")
	end()
	end = held(mine, filepath.Join(h.dir, "b"))
	p := &sdk.CallToolParams{Meta: sdk.Meta{sdk.MetaKeyLogLevel: "debug"}, Name: "s__chat", Arguments: map[string]any{"word": "x"}}
	_, err := mine.CallTool(t.Context(), p)
	require.NoError(t, err)
	end()
	require.Eventually(t, func() bool { return len(one.lines()) == 3 }, time.Minute, time.Millisecond)
	require.Empty(t, other.lines())
}

// TestLogsAreBounded: a server that logs without end has its say, up to a bound, and a client that reads nothing of it holds up nobody else.
func TestLogsAreBounded(t *testing.T) {
	h := newGatewaySetup(t)
	line := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"` + strings.Repeat("x", 1000) + `"}}`
	h.open(map[string]string{"s": h.scripted(
		`initialize {"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"script","version":"1"}}}`,
		`logging/setLevel {"jsonrpc":"2.0","id":ID,"result":{}}`, oneTool,
		`tools/call `+strings.Repeat(line+" THEN ", 5000)+`{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`,
	)}, `{"s": {"tools": {"x": {"effectClass": "pure"}}}}`)
	stuck := make(chan struct{})
	srv := h.serve()
	cs := h.connect(srv, modern, &sdk.ClientOptions{LoggingMessageHandler: func(context.Context, *sdk.LoggingMessageRequest) { <-stuck }})
	_, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Meta: sdk.Meta{sdk.MetaKeyLogLevel: "error"}, Name: "s__x", Arguments: map[string]any{}})
	require.NoError(t, err)
	_, err = h.connect(srv, modern, &sdk.ClientOptions{}).CallTool(t.Context(), &sdk.CallToolParams{Name: "s__x", Arguments: map[string]any{}})
	require.NoError(t, err)
	close(stuck)
}

// TestSubscribe: who subscribed to a resource is told when it changes, and nobody else; the server is asked once, also when it was started again.
func TestSubscribe(t *testing.T) {
	between(t, catalogEntries, func(t *testing.T, h *gatewaySetup, connect func(*sdk.ClientOptions) *sdk.ClientSession) {
		told := func() (*sdk.ClientOptions, chan string) {
			c := make(chan string, 64)
			return &sdk.ClientOptions{ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { c <- r.Params.URI }}, c
		}
		mineOptions, mine := told()
		theirOptions, theirs := told()
		one, other := connect(mineOptions), connect(theirOptions)
		subscribe := func(cs *sdk.ClientSession, uri string) {
			require.NoError(t, cs.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}))
		}
		touch := func(uri string) {
			_, err := other.CallTool(t.Context(), &sdk.CallToolParams{Name: "s__touch", Arguments: map[string]any{"word": uri}})
			require.NoError(t, err)
		}
		until := func(c chan string, uri string) { // a stream takes a moment to begin
			for {
				touch(uri)
				select {
				case got := <-c:
					require.Equal(t, uri, got)
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		}
		subscribe(one, "book://one")
		subscribe(other, "book://two")
		until(mine, "book://one")
		until(theirs, "book://two")
		require.NotContains(t, drained(theirs), "book://one")
		require.NotContains(t, drained(mine), "book://two")

		subscribe(other, "book://one")
		until(theirs, "book://one")
		require.NoError(t, one.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: "book://one"}))
		drained(theirs)
		until(theirs, "book://one")

		require.Error(t, func() error { // nobody has it, and nobody says that it has
			_, err := h.gateway.Subscribe(t.Context(), "")
			return err
		}())
	})
}

func drained(c chan string) (all []string) {
	for {
		select {
		case uri := <-c:
			all = append(all, uri)
		default:
			return all
		}
	}
}

// TestSubscribeAgain: a server that went is started again for those who are told of its resources, who are told at once, because nobody knows
// what changed meanwhile.
func TestSubscribeAgain(t *testing.T) {
	h := newGatewaySetup(t)
	told := make(chan string, 64)
	h.open(map[string]string{"s": h.catalogEntry(legacy)}, "", func(o *gateway.Options) {
		o.MaxBackoff, o.OnResourceUpdated = time.Nanosecond, func(uri string) { told <- uri }
	})
	end, err := h.gateway.Subscribe(t.Context(), "book://one")
	require.NoError(t, err)
	again, err := h.gateway.Subscribe(t.Context(), "book://one")
	require.NoError(t, err)
	end()
	h.call("s__mcp__read", map[string]any{"uri": "book://end"})
	require.Equal(t, "book://one", receive(t, told))
	again()

	h = newGatewaySetup(t)
	h.open(map[string]string{"s": h.scripted(rawCatalogLines...)}, "")
	_, err = h.gateway.Subscribe(t.Context(), "x://1")
	require.ErrorContains(t, err, "server s does not support subscriptions")
}
