package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/tool"
)

// serve serves a house over HTTP, and returns its URL.
func (h *serverSetup) serve(opts mcp.HTTPOptions) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(h.t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(h.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- h.srv.Serve(ctx, l, opts) }()
	h.t.Cleanup(func() {
		stop()
		require.NoError(h.t, <-ended)
	})
	return "http://" + l.Addr().String() + "/mcp"
}

// bearer sends a token with each request.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

func (h *serverSetup) dial(url, revision, token string, opts *sdk.ClientOptions) *sdk.ClientSession {
	pool := &http.Transport{}
	h.t.Cleanup(pool.CloseIdleConnections)
	cs := h.handshake(revision, opts, &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer{token, pool}}})
	h.t.Cleanup(func() { _ = cs.Close() })
	return cs
}

// TestHTTP: both ways to talk on one URL, each request in the session that its token proves.
func TestHTTP(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		h := newServerSetup(t, mcp.Options{})
		url := h.serve(mcp.HTTPOptions{})
		in := h.session("coder")
		cs := h.dial(url, revision, in.Token(), nil)
		require.Equal(t, revision == legacy, cs.ID() != "", "only the older revisions keep something")
		r := h.call(cs, "file_write", write("a.txt", "1"))
		require.False(t, r.IsError, textOf(t, r))
		again := h.dial(url, revision, in.Token(), nil)
		r = h.call(again, "txn_revert", tool.Args{"txn": r.Meta["remit.dev/txn"]})
		require.False(t, r.IsError, "another connection of the same session: %s", textOf(t, r))
		require.Equal(t, "(none)", h.file("a.txt"))
	})
}

// TestHTTPAsk: the person at the client is asked, over HTTP too.
func TestHTTPAsk(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		o := newOffice(t, mcp.Options{})
		url := o.serve(mcp.HTTPOptions{})
		var asked []string
		cs := o.dial(url, revision, o.session("coder").Token(), answers(&asked, yes()))
		r := o.call(cs, "send", letterInput)
		require.Equal(t, "done", r.Meta["remit.dev/status"], textOf(t, r))
		require.Len(t, asked, 1)
	})
}

// TestHTTPToolsChanged: clients over HTTP are told on the channel that they opened.
func TestHTTPToolsChanged(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		h := newServerSetup(t, mcp.Options{})
		url := h.serve(mcp.HTTPOptions{})
		told := make(chan struct{}, 8)
		cs := h.dial(url, revision, h.session("coder").Token(), &sdk.ClientOptions{
			Capabilities: &sdk.ClientCapabilities{}, ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { told <- struct{}{} },
		})
		_, err := cs.ListTools(t.Context(), nil)
		require.NoError(t, err)
		h.srv.ToolsChanged()
		receive(t, told)
	})
}

// TestHTTPAbort: a client of the newest revision that goes away ends its call.
func TestHTTPAbort(t *testing.T) {
	runs, ended := make(chan struct{}), make(chan struct{})
	waits, err := tool.Create("waits", "", func(ctx context.Context, _ string) (string, error) {
		close(runs)
		<-ctx.Done()
		close(ended)
		return "", ctx.Err()
	}, tool.Pure())
	require.NoError(t, err)
	h := newServerSetup(t, mcp.Options{}, agent.Tools(waits))
	url := h.serve(mcp.HTTPOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-runs
		cancel()
	}()
	req := modernCall(t, url, h.session("coder").Token(), "waits", `{"input":"x"}`)
	res, err := http.DefaultClient.Do(req.WithContext(ctx))
	if err == nil {
		_, err = io.ReadAll(res.Body)
	}
	require.Error(t, err)
	<-ended
}

// modernCall is a tools/call as the newest revision writes it.
func modernCall(t *testing.T, url, token, name, args string) *http.Request {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, name, args)
	return post(t, url, token, body, "MCP-Protocol-Version", modern, "Mcp-Method", "tools/call", "Mcp-Name", name)
}

func post(t *testing.T, url, token, body string, headers ...string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return req
}

// send sends a request until it is answered: a server that refuses what it has not read to the end closes the connection half a second
// later, and a machine that has much else to do can miss its answer.
func send(t *testing.T, req *http.Request) (*http.Response, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	for n := 0; n < 100 && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)); n++ {
		again := req.Clone(t.Context())
		if req.GetBody != nil {
			again.Body, err = req.GetBody()
			require.NoError(t, err)
		}
		res, err = client.Do(again)
	}
	require.NoError(t, err)
	data, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return res, string(data)
}

// arrive sends a request to a server that gives it little time to arrive, until it did: a machine that has much else to do can
// be too slow for that now and then. Slow are the other answers that can come of that.
func arrive(t *testing.T, req *http.Request, slow ...int) (code int, header http.Header, body string) {
	t.Helper()
	slow = append(slow, http.StatusRequestTimeout)
	for range 1000 {
		again := req.Clone(t.Context())
		again.Body, _ = req.GetBody()
		res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(again)
		if err != nil {
			continue // it was cut off in the middle
		}
		data, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err == nil && !slices.Contains(slow, res.StatusCode) {
			return res.StatusCode, res.Header, string(data)
		}
	}
	t.Error("it never arrived")
	return 0, nil, ""
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

// TestHTTPDoor: who may not come in, and how they are told.
func TestHTTPDoor(t *testing.T) {
	h := newServerSetup(t, mcp.Options{})
	url := h.serve(mcp.HTTPOptions{MaxBody: 64 << 10, Hosts: []string{"remit.example"}, Origins: []string{"https://page.example"}})
	in := h.session("coder")
	token := in.Token()
	id, secret, _ := strings.Cut(token, ".")
	plain := func() *http.Request { return modernCall(t, url, token, "upper", `{"input":"hi"}`) }
	with := func(key, value string) *http.Request {
		req := plain()
		req.Header.Set(key, value)
		return req
	}
	host := func(name string) *http.Request {
		req := plain()
		req.Host = name
		return req
	}
	for _, tt := range []struct {
		name string
		req  *http.Request
		code int
	}{
		{"in order", plain(), 200},
		{"no token", modernCall(t, url, "", "upper", `{}`), 401},
		{"a token that nobody gave", modernCall(t, url, "s_x.00", "upper", `{}`), 401},
		{"another session's id with a secret of one's own", modernCall(t, url, id+"."+strings.Repeat("0", len(secret)), "upper", `{}`), 401},
		{"an id without its secret", modernCall(t, url, id, "upper", `{}`), 401},
		{"basic", with("Authorization", "Basic "+token), 401},
		{"a name that somebody made resolve here", host("evil.example"), 403},
		{"no name", host("evil.localhost.example:80"), 403},
		{"localhost", host("localhost:99"), 200},
		{"IPv6", host("[::1]:99"), 200},
		{"a name that was given", host("REMIT.example"), 200},
		{"a page of somebody", with("Origin", "https://evil.example"), 403},
		{"a page without an origin", with("Origin", "null"), 403},
		{"a page that may", with("Origin", "https://page.example"), 200},
		{"a page that only its browser tells of", with("Sec-Fetch-Site", "cross-site"), 403},
		{"a page of somebody that only looks", page(url, token, "https://evil.example"), 403},
		{"another page of this machine", with("Origin", "http://localhost:3000"), 403},
		{"its own page", with("Origin", strings.TrimSuffix(url, "/mcp")), 200},
		{"too large", modernCall(t, url, token, "upper", `{"input":"`+strings.Repeat("x", 65<<10)+`"}`), 413},
		{"too large, older", post(t, url, token, `{"x":"`+strings.Repeat("x", 65<<10)+`"}`), 413},
		{"a session that is none", post(t, url, token, initialize, "Mcp-Session-Id", "nosuch"), 404},
		{"a name in the header that is not in the body", with("Mcp-Name", "file_delete"), 400},
		{"no JSON", post(t, url, token, "{"), 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res, body := send(t, tt.req)
			require.Equal(t, tt.code, res.StatusCode, body)
			require.NotContains(t, body, token)
			if tt.code == 401 {
				want := "Bearer"
				if tt.req.Header.Get("Authorization") != "" {
					want += ` error="invalid_token"`
				}
				require.Equal(t, want, res.Header.Get("WWW-Authenticate"))
			}
		})
	}
}

// page is a look at the stream of the older revisions, which browsers let pages of other origins have.
func page(url, token, origin string) *http.Request {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Origin", origin)
	return req
}

// TestHTTPForeignConnection: a connection is used by the bearer who began it alone.
func TestHTTPForeignConnection(t *testing.T) {
	h := newServerSetup(t, mcp.Options{})
	url := h.serve(mcp.HTTPOptions{})
	theirs, mine := h.session("theirs"), h.session("mine")
	res, body := send(t, post(t, url, theirs.Token(), initialize))
	require.Equal(t, 200, res.StatusCode, body)
	id := res.Header.Get("Mcp-Session-Id")
	require.NotEmpty(t, id)
	list := `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`
	for _, tt := range []struct {
		token string
		code  int
	}{{mine.Token(), 403}, {theirs.Token(), 200}} {
		res, body = send(t, post(t, url, tt.token, list, "Mcp-Session-Id", id, "MCP-Protocol-Version", legacy))
		require.Equal(t, tt.code, res.StatusCode, body)
	}
	req := post(t, url, mine.Token(), "", "Mcp-Session-Id", id)
	req.Method, req.Body, req.ContentLength = http.MethodDelete, nil, 0
	res, _ = send(t, req)
	require.Equal(t, 403, res.StatusCode, "nor ended by somebody else")
}

// TestHTTPManyConnections: one session cannot keep any number. One more ends the one that was silent for longest, and none that
// is at something.
func TestHTTPManyConnections(t *testing.T) {
	runs, release := make(chan struct{}), make(chan struct{})
	waits, err := tool.Create("waits", "", func(context.Context, string) (string, error) {
		runs <- struct{}{}
		<-release
		return "", nil
	}, tool.Pure())
	require.NoError(t, err)
	h := newServerSetup(t, mcp.Options{}, agent.Tools(waits))
	url := h.serve(mcp.HTTPOptions{})
	token := h.session("coder").Token()
	begin := func(token string) string {
		res, body := send(t, post(t, url, token, initialize))
		require.Contains(t, body, "serverInfo")
		return res.Header.Get("Mcp-Session-Id")
	}
	within := func(id, method, params string) *http.Request {
		return post(t, url, token, `{"jsonrpc":"2.0","id":2,"method":"`+method+`","params":`+params+`}`, "Mcp-Session-Id", id, "MCP-Protocol-Version", legacy)
	}
	ids := make([]string, 16)
	for i := range ids {
		ids[i] = begin(token)
	}
	busy := make(chan int, 1)
	go func() {
		res, err := http.DefaultClient.Do(within(ids[0], "tools/call", `{"name":"waits","arguments":{"input":"x"}}`))
		if err != nil {
			busy <- 0
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		busy <- res.StatusCode
	}()
	<-runs
	res, _ := send(t, within(ids[1], "tools/list", `{}`))
	require.Equal(t, 200, res.StatusCode)
	begin(token)
	for tries := 0; tries < 10_000 && res.StatusCode != 404; tries++ { // it is ended beside what goes on
		res, _ = send(t, within(ids[2], "tools/list", `{}`))
	}
	require.Equal(t, 404, res.StatusCode, "it was silent for longest")
	for _, id := range []string{ids[1], ids[3], ids[15]} {
		res, _ = send(t, within(id, "tools/list", `{}`))
		require.Equal(t, 200, res.StatusCode)
	}
	close(release)
	require.Equal(t, 200, <-busy)
	begin(h.session("other").Token())
}

// TestHTTPManyRequests: what is over the bound is refused, and others are not.
func TestHTTPManyRequests(t *testing.T) {
	runs, release := make(chan struct{}, 2), make(chan struct{})
	waits, err := tool.Create("waits", "", func(context.Context, string) (string, error) {
		runs <- struct{}{}
		<-release
		return "", nil
	}, tool.Pure())
	require.NoError(t, err)
	h := newServerSetup(t, mcp.Options{}, agent.Tools(waits))
	url := h.serve(mcp.HTTPOptions{MaxRequestsPerSession: 2})
	token := h.session("coder").Token()
	codes := make(chan int, 2)
	for range 2 {
		go func() {
			res, err := http.DefaultClient.Do(modernCall(t, url, token, "waits", `{"input":"x"}`))
			if err != nil {
				codes <- 0
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			codes <- res.StatusCode
		}()
	}
	<-runs
	<-runs
	res, _ := send(t, modernCall(t, url, token, "upper", `{"input":"x"}`))
	require.Equal(t, 429, res.StatusCode)
	res, _ = send(t, modernCall(t, url, h.session("other").Token(), "upper", `{"input":"x"}`))
	require.Equal(t, 200, res.StatusCode)
	close(release)
	require.Equal(t, []int{200, 200}, []int{<-codes, <-codes})
}

// TestHTTPSlow checks that the server does not wait for an unfinished request.
// Such a request does not block other clients.
func TestHTTPSlow(t *testing.T) {
	h := newServerSetup(t, mcp.Options{})
	url := h.serve(mcp.HTTPOptions{ReadTimeout: 50 * time.Millisecond, MaxRequestsPerSession: 1})
	token := h.session("coder").Token()
	for _, tt := range []struct{ name, sent, want string }{
		{"headers", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-A: ", ""},
		{"body", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", "408"},
		{"body that says how large it is", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\nContent-Length: 1000000000000\r\n\r\n", "413"},
		{"body without a token", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{", "401"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp"))
			require.NoError(t, err)
			_, err = conn.Write([]byte(tt.sent))
			require.NoError(t, err)
			answer, err := io.ReadAll(conn) // the server ends it
			if err == nil {
				require.Contains(t, string(answer), tt.want)
			}
			require.NoError(t, conn.Close())
			code, _, body := arrive(t, modernCall(t, url, token, "upper", `{"input":"x"}`))
			require.Equal(t, 200, code, body)
		})
	}
}

// TestHTTPRestart checks that a token is valid as long as its session. It stays
// valid after another server takes over, and after the server dropped the
// session from memory.
func TestHTTPRestart(t *testing.T) {
	h := newServerSetup(t, mcp.Options{MaxSessions: 1})
	url := h.serve(mcp.HTTPOptions{})
	var tokens []string
	for i := range 3 {
		tokens = append(tokens, h.session(fmt.Sprintf("coder%d", i)).Token())
	}
	for range 2 {
		for _, token := range tokens { // each drives the others out
			res, body := send(t, modernCall(t, url, token, "upper", `{"input":"hi"}`))
			require.Equal(t, 200, res.StatusCode, body)
			require.Contains(t, body, "HI")
		}
	}
	var err error
	h.srv, err = mcp.New(h.rt, mcp.Options{})
	require.NoError(t, err)
	res, _ := send(t, modernCall(t, h.serve(mcp.HTTPOptions{}), tokens[0], "upper", `{"input":"hi"}`))
	require.Equal(t, 200, res.StatusCode)
}

// TestHTTPEnd: what runs when the server ends is waited for, and streams are ended.
func TestHTTPEnd(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		runs, release := make(chan struct{}), make(chan struct{})
		waits, err := tool.Create("waits", "", func(context.Context, string) (string, error) {
			close(runs)
			<-release
			return "ended well", nil
		}, tool.Pure())
		require.NoError(t, err)
		h := newServerSetup(t, mcp.Options{}, agent.Tools(waits))
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- h.srv.Serve(ctx, l, mcp.HTTPOptions{}) }()
		cs := h.dial("http://"+l.Addr().String()+"/mcp", revision, h.session("coder").Token(), &sdk.ClientOptions{
			Capabilities: &sdk.ClientCapabilities{}, ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {}, // it keeps a stream
		})
		answer := make(chan *sdk.CallToolResult, 1)
		go func() {
			r, _ := cs.CallTool(context.WithoutCancel(t.Context()), &sdk.CallToolParams{Name: "waits", Arguments: tool.Args{"input": "x"}})
			answer <- r
		}()
		<-runs
		stop()
		close(release)
		r := <-answer
		require.NotNil(t, r)
		require.Equal(t, "ended well", textOf(t, r))
		require.NoError(t, <-ended)
	})
}

// TestHTTPBodies: bytes that are no message are told so, and nothing else happens.
func TestHTTPBodies(t *testing.T) {
	h := newServerSetup(t, mcp.Options{})
	url := h.serve(mcp.HTTPOptions{})
	token := h.session("coder").Token()
	for _, body := range []string{"", "null", "[]", "7", `"x"`, `{"jsonrpc":"2.0"}`, "\xff\xfe", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`} {
		res, answer := send(t, post(t, url, token, body))
		require.GreaterOrEqual(t, res.StatusCode, 200, answer)
		require.False(t, json.Valid([]byte(answer)) && bytes.Contains([]byte(answer), []byte(`"result"`)), "%q: %s", body, answer)
	}
}
