package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp/gateway"
	"github.com/remit-dev/remit/tool"
)

// hangingServer is a server by URL that hangs at some requests.
type hangingServer struct {
	*sdk.Server
	url     string
	at      atomic.Pointer[hangPoint] // nil: it hangs at nothing
	reached chan struct{}             // it hangs
	hangs   atomic.Int64              // at so many requests
	conns   sync.Map                  // that are open
	waiting chan struct{}             // somebody calls wait
	release chan struct{}             // and has an answer
	ends    func()                    // ends the calls of slow that no cancellation reached
}

// hangPoint is what it hangs at: a method of the protocol, a method of HTTP, or a tool; and what it says all the same.
type hangPoint struct {
	what, says string
	from       <-chan struct{} // it says it once this is closed; nil: at once
}

const (
	sayNothing = "nothing"
	sayHead    = "the head of an answer"
	sayStream  = "the head of a stream"
	sayTrickle = "a stream without end"
	sayFlood   = "a stream without end or pause"
	sayLater   = "that it goes on in an hour"
)

const hangingTools = `{"s": {"tools": {"echo": {"effectClass": "pure"}, "wait": {"effectClass": "pivot"}, "slow": {"effectClass": "pivot", "timeout": %q}}}}`

func newHangingServer(t *testing.T, kind string) *hangingServer {
	t.Helper()
	over := make(chan struct{})
	d := &hangingServer{ends: sync.OnceFunc(func() { close(over) }), Server: sdk.NewServer(&sdk.Implementation{Name: "deaf", Version: "1"}, &sdk.ServerOptions{
		SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
	}), reached: make(chan struct{}, 100), waiting: make(chan struct{}, 1), release: make(chan struct{})}
	d.AddResource(&sdk.Resource{URI: "note://one", Name: "one"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{}}, nil
	})
	for name, f := range map[string]func(context.Context){
		"echo": func(context.Context) {},
		"slow": func(ctx context.Context) {
			d.reached <- struct{}{}
			select {
			case <-ctx.Done():
			case <-over: // the SDK waits for a call whose client has gone
			}
		},
		"wait": func(context.Context) { d.waiting <- struct{}{}; <-d.release },
	} {
		sdk.AddTool(d.Server, &sdk.Tool{Name: name}, func(ctx context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			f(ctx)
			return says("%s", name), nil, nil
		})
	}
	get := func(*http.Request) *sdk.Server { return d.Server }
	var inner http.Handler = sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{Stateless: kind == modern})
	if kind == "sse" {
		inner = sdk.NewSSEHandler(get, nil)
	}
	listener := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if how := d.at.Load(); how != nil && d.is(r, how.what) {
			d.hang(w, r, how)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	listener.Config.ConnState = func(c net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			d.conns.Delete(c)
		} else {
			d.conns.Store(c, s)
		}
	}
	listener.Start()
	t.Cleanup(listener.Close) // once the gateway has left
	d.url = listener.URL
	return d
}

// is reports whether a request is of a method, or for a tool.
func (d *hangingServer) is(r *http.Request, what string) bool {
	if r.Method == what {
		return true
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	var m struct {
		Method string
		Params struct{ Name string }
	}
	return json.Unmarshal(raw, &m) == nil && (m.Method == what || m.Method == "tools/call" && m.Params.Name == what)
}

func (d *hangingServer) hang(w http.ResponseWriter, r *http.Request, how *hangPoint) {
	says := how.says
	d.hangs.Add(1)
	defer d.hangs.Add(-1)
	c := http.NewResponseController(w)
	switch says {
	case sayHead:
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"jsonrpc":`)
	case sayStream, sayTrickle, sayFlood:
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, ": welcome\n\n")
	case sayLater:
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, "id: 1\nretry: 3600000\ndata:\n\n")
		d.reached <- struct{}{}
		return
	}
	if says != sayNothing {
		_ = c.Flush()
	}
	d.reached <- struct{}{}
	if how.from != nil {
		<-how.from
	}
	for says == sayTrickle || says == sayFlood {
		_, err := fmt.Fprint(w, `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`+"\n\n")
		if err != nil || c.Flush() != nil {
			return
		}
		if says == sayTrickle {
			time.Sleep(time.Millisecond) // not so much that it is cut off
		}
	}
	<-r.Context().Done()
}

// quiet waits until the server hangs at nothing any more.
func (d *hangingServer) quiet(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return d.hangs.Load() == 0 }, time.Minute, time.Millisecond)
}

// left waits until nothing is left of a gateway: no connection, and no goroutine of its own or of the SDK's client.
func (d *hangingServer) left(h *gatewaySetup) {
	h.t.Helper()
	require.NoError(h.t, h.gateway.Close())
	d.ends()
	none := func() bool {
		stacks, some := goroutines{}.String(), false
		for _, mine := range []string{"remit/mcp/gateway.", "streamableClientConn", "sseClientConn", "mcp.(*ClientSession)", "mcp.(*Client)"} {
			some = some || strings.Contains(stacks, mine)
		}
		d.conns.Range(func(any, any) bool { some = true; return false })
		return !some
	}
	require.Eventually(h.t, none, time.Minute, time.Millisecond, "%s", goroutines{})
}

// goroutines prints the stacks of all goroutines.
type goroutines struct{}

func (goroutines) String() string {
	stacks := make([]byte, 4<<20)
	return string(stacks[:runtime.Stack(stacks, true)])
}

func (d *hangingServer) open(t *testing.T, kind, timeout string, how ...func(*gateway.Options)) *gatewaySetup {
	t.Helper()
	h := newGatewaySetup(t)
	if kind != "sse" {
		kind = "http"
	}
	return h.open(map[string]string{"s": fmt.Sprintf(`{"type": %q, "url": %q}`, kind, d.url)}, fmt.Sprintf(hangingTools, timeout), append(how, func(o *gateway.Options) { o.MaxBackoff = time.Nanosecond })...)
}

// invoke begins a call, whose outcome comes later.
func (h *gatewaySetup) invoke(name string) chan tool.Outcome {
	h.t.Helper()
	tx, came := h.txn(), make(chan tool.Outcome, 1)
	go func() {
		out, _ := tx.Invoke(h.t.Context(), name, tool.Args{}) // the outcome says it
		came <- out
	}()
	return came
}

// callUntilReached calls slow until a request for it has arrived at the
// server. A busy machine can use up the time of a call before its request is
// sent.
func (d *hangingServer) callUntilReached(h *gatewaySetup) tool.Outcome {
	h.t.Helper()
	for range cap(d.reached) / 2 {
		out := h.call("s__slow", tool.Args{})
		if len(d.reached) > 0 {
			return out
		}
	}
	h.t.Fatal("no request for slow arrived at the server")
	return tool.Outcome{}
}

// TestHangByURL: a call whose server by URL does not answer, or does not come to an end with it, ends with its time as one of a
// server by command does, and so does its request. Calls beside it and after it know nothing of that.
func TestHangByURL(t *testing.T) {
	for kind, ways := range map[string][]string{
		modern: {sayNothing, sayHead, sayStream, sayTrickle, sayLater},
		legacy: {sayNothing, sayHead, sayStream, sayTrickle, sayLater},
		"sse":  {sayNothing, "that it has it"},
	} {
		for _, how := range ways {
			t.Run(kind+"/"+how, func(t *testing.T) {
				d := newHangingServer(t, kind)
				h := d.open(t, kind, "50ms")
				beside := h.invoke("s__wait")
				receive(t, d.waiting)
				if how != "that it has it" {
					d.at.Store(&hangPoint{what: "slow", says: how})
				}
				out := d.callUntilReached(h)
				require.Equal(t, tool.StatusUnknown, out.Status, out.Text)
				require.Contains(t, out.Error.Why, "timed out")
				d.quiet(t)
				close(d.release)
				require.Equal(t, tool.StatusDone, receive(t, beside).Status)
				require.Equal(t, tool.StatusDone, h.call("s__echo", tool.Args{}).Status)
				d.left(h)
			})
		}
	}
}

// TestFloodByURL: a server by URL that sends what answers nothing is cut off, as one by command is, and reached again for the next call.
func TestFloodByURL(t *testing.T) {
	for _, kind := range []string{modern, legacy} {
		t.Run(kind, func(t *testing.T) {
			d := newHangingServer(t, kind)
			h := d.open(t, kind, "10m")
			d.at.Store(&hangPoint{what: "slow", says: sayFlood})
			out := h.call("s__slow", tool.Args{})
			require.Equal(t, tool.StatusUnknown, out.Status, out.Text)
			require.Contains(t, out.Error.Why, "server s has gone while the call was under way: the server sent too many messages")
			require.Equal(t, tool.StatusDone, h.call("s__echo", tool.Args{}).Status)
			d.left(h)
		})
	}
	t.Run("beside calls", func(t *testing.T) {
		d := newHangingServer(t, legacy)
		started := make(chan struct{}) // before that, the server would be down
		d.at.Store(&hangPoint{http.MethodGet, sayFlood, started})
		h := d.open(t, legacy, "10m")
		close(started)
		receive(t, d.reached)
		d.at.Store(nil)
		d.quiet(t)
		out := h.call("s__echo", tool.Args{})
		require.Equal(t, tool.StatusDone, out.Status, out.Text)
		d.left(h)
	})
}

// TestHangAtTheStart: a server by URL that hangs while it is reached is down, and is reached when it does not hang any more.
func TestHangAtTheStart(t *testing.T) {
	for kind, all := range map[string][]string{
		modern: {"server/discover", "tools/list", "subscriptions/listen"},
		legacy: {"server/discover", "initialize", "notifications/initialized", "tools/list", http.MethodGet},
		"sse":  {"initialize", "tools/list", http.MethodGet},
	} {
		for _, what := range all {
			for _, how := range []string{sayNothing, sayHead} {
				if how == sayHead && (kind == "sse" || strings.HasPrefix(what, "notifications") || what == http.MethodGet || what == "subscriptions/listen") {
					continue // more than a head is not waited for
				}
				t.Run(kind+"/"+what+"/"+how, func(t *testing.T) {
					d := newHangingServer(t, kind)
					d.at.Store(&hangPoint{what: what, says: how})
					h := d.open(t, kind, "10m", func(o *gateway.Options) { o.StartTimeout = 200 * time.Millisecond })
					state := h.gateway.ServerStatuses()[0]
					require.False(t, state.Connected)
					require.Contains(t, state.Why, "it did not answer in time")
					receive(t, d.reached)
					d.quiet(t)
					d.left(h)
					d.at.Store(nil)
					h.begin(func(o *gateway.Options) { o.MaxBackoff = time.Nanosecond })
					require.Equal(t, tool.StatusDone, h.call("s__echo", tool.Args{}).Status)
					d.left(h)
				})
			}
		}
	}
}

// TestHangAtAChange: what a server by URL says that it declares now, and does not tell, is not what was accepted: it is let go.
func TestHangAtAChange(t *testing.T) {
	for _, kind := range []string{modern, legacy} {
		t.Run(kind, func(t *testing.T) {
			d := newHangingServer(t, kind)
			hurried := func(o *gateway.Options) { o.MaxBackoff, o.StartTimeout = time.Nanosecond, time.Second }
			h := d.open(t, kind, "10m", hurried)
			for !h.gateway.ServerStatuses()[0].Connected { // the machine was so slow
				require.NoError(t, h.gateway.Close())
				h.begin(hurried)
			}
			beside := h.invoke("s__wait")
			receive(t, d.waiting)
			d.at.Store(&hangPoint{what: "tools/list", says: sayNothing})
			sdk.AddTool(d.Server, &sdk.Tool{Name: "fresh"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
				return says("fresh"), nil, nil
			})
			receive(t, d.reached)
			d.at.Store(nil)
			out := receive(t, beside)
			require.Equal(t, tool.StatusUnknown, out.Status, out.Text)
			require.Contains(t, out.Error.Why, "the connection to it was ended")
			close(d.release)
			require.Equal(t, tool.StatusDone, h.call("s__echo", tool.Args{}).Status)
			d.left(h)
		})
	}
}

// TestHangAtASubscription: a server by URL that does not say whether it tells of a resource holds nobody up for longer than a start.
func TestHangAtASubscription(t *testing.T) {
	for kind, what := range map[string]string{modern: "subscriptions/listen", legacy: "resources/subscribe"} {
		t.Run(kind, func(t *testing.T) {
			d := newHangingServer(t, kind)
			h := d.open(t, kind, "10m")
			require.True(t, h.gateway.ServerStatuses()[0].Connected)
			d.at.Store(&hangPoint{what: what, says: sayNothing})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-d.reached
				cancel()
			}()
			_, err := h.gateway.Subscribe(ctx, "note://one")
			require.ErrorIs(t, err, context.Canceled)
			d.quiet(t)
			d.at.Store(nil)
			end, err := h.gateway.Subscribe(t.Context(), "note://one")
			require.NoError(t, err)
			end()
			d.left(h)
		})
	}
}

// TestHangAtTheEnd: a gateway that is closed ends what hangs, also who is just being reached, and does not wait for a server that does not
// take note of it.
func TestHangAtTheEnd(t *testing.T) {
	for kind, ways := range map[string][]string{
		modern: {sayNothing, sayHead, sayStream, sayTrickle, sayLater},
		legacy: {sayNothing, sayHead, sayStream, sayTrickle, sayLater},
		"sse":  {sayNothing},
	} {
		for _, how := range ways {
			t.Run(kind+"/"+how, func(t *testing.T) {
				d := newHangingServer(t, kind)
				h := d.open(t, kind, "1h")
				d.at.Store(&hangPoint{what: "slow", says: how})
				came := h.invoke("s__slow")
				receive(t, d.reached)
				d.at.Store(nil)
				if how == sayNothing {
					d.at.Store(&hangPoint{what: http.MethodDelete, says: sayNothing})
				}
				d.left(h)
				if kind == legacy && how == sayNothing {
					receive(t, d.reached) // it was told
				}
				out := receive(t, came)
				require.Equal(t, tool.StatusUnknown, out.Status, out.Text)
				require.Contains(t, out.Error.Why, "server s has gone while the call was under way: the connection to it was ended")
			})
		}
	}
	t.Run("while it is reached", func(t *testing.T) {
		d := newHangingServer(t, legacy)
		h := d.open(t, legacy, "1h")
		require.NoError(t, h.gateway.Close())
		h.begin(func(o *gateway.Options) { o.Lazy, o.StartTimeout = true, time.Hour })
		d.at.Store(&hangPoint{what: "initialize", says: sayNothing})
		came := h.invoke("s__echo")
		receive(t, d.reached)
		d.left(h)
		out := receive(t, came)
		require.Equal(t, tool.StatusFailed, out.Status, out.Text)
		require.Contains(t, out.Error.Why, "server s cannot be reached: the gateway is closed")
	})
}
