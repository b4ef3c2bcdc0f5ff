package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/revert/journal"
)

// The revisions that are tried: the newest of each way to ask.
const (
	modern = "2026-07-28"
	legacy = "2025-11-25"
)

// near is an entry of a server that asks, as a program; far one by URL.
func (h *gatewaySetup) near(revision string) string {
	return h.server("asker", map[string]string{"REVISION": revision, "TOLD": filepath.Join(h.dir, "told")})
}

func (h *gatewaySetup) far(revision string) string {
	server := newRequestingServer(revision)
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: revision == modern})
	listener := httptest.NewServer(handler)
	h.t.Cleanup(listener.Close)
	return fmt.Sprintf(`{"type": "http", "url": %q}`, listener.URL)
}

const requestingTools = `{"s": {"roots": ["workspace"], "asks": ["elicitation", "sampling"], "tools": {"echo": {"effectClass": "pure"}, "person": {"effectClass": "pure"}, "model": {"effectClass": "pure"},
	"folders": {"effectClass": "pure"}, "late": {"effectClass": "pivot"}, "told": {"effectClass": "pure"}, "begun": {"effectClass": "pure"},
	"held": {"effectClass": "pure"}, "page": {"effectClass": "pure"}}}}`

// serve is a server of MCP over the house's runtime.
func (h *gatewaySetup) serve() *mcp.Server {
	h.t.Helper()
	srv, err := mcp.New(h.rt, mcp.Options{Mirror: h.gateway})
	require.NoError(h.t, err)
	return srv
}

// client is one that answers by its name, and hears what it is asked.
func (h *gatewaySetup) client(srv *mcp.Server, revision, name string, hear func(text string)) *sdk.ClientSession {
	h.t.Helper()
	o := &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}}
	if hear != nil {
		o.ElicitationHandler = func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			hear(r.Params.Message)
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": name}}, nil
		}
		o.CreateMessageHandler = func(_ context.Context, r *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
			text, _ := r.Params.Messages[0].Content.(*sdk.TextContent)
			hear(text.Text + " " + r.Params.IncludeContext)
			return &sdk.CreateMessageResult{Model: "m", Role: "assistant", Content: &sdk.TextContent{Text: name}}, nil
		}
	}
	return h.connect(srv, revision, o)
}

func (h *gatewaySetup) connect(srv *mcp.Server, revision string, o *sdk.ClientOptions, roots ...*sdk.Root) *sdk.ClientSession {
	h.t.Helper()
	here, there := sdk.NewInMemoryTransports()
	done := make(chan error, 1)
	s := h.session()
	go func() { done <- srv.Run(context.WithoutCancel(h.t.Context()), there, s) }()
	client := sdk.NewClient(&sdk.Implementation{Name: "test"}, o)
	client.AddRoots(roots...)
	acknowledged := make(chan struct{}, 64)
	client.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if method == "notifications/subscriptions/acknowledged" {
				acknowledged <- struct{}{}
			}
			return next(ctx, method, req)
		}
	})
	cs, err := client.Connect(h.t.Context(), here, &sdk.ClientSessionOptions{ProtocolVersion: revision})
	require.NoError(h.t, err)
	h.t.Cleanup(func() {
		_ = cs.Close()
		<-done //nolint:errcheck // it says that the client left
	})
	if revision == modern && (o.ToolListChangedHandler != nil || o.PromptListChangedHandler != nil || o.ResourceListChangedHandler != nil) {
		receive(h.t, acknowledged) // the server reports no earlier change, and the client does not wait
	}
	return cs
}

// receive returns the next value of a channel. It fails the test if none arrives.
func receive[T any](t testing.TB, values <-chan T) T {
	t.Helper()
	select {
	case v := <-values:
		return v
	case <-time.After(time.Minute):
		require.FailNow(t, "nothing arrived within a minute")
		panic("unreachable")
	}
}

// ask calls a tool with a word, and returns what it said.
func ask(ctx context.Context, cs *sdk.ClientSession, name, word string) (string, error) {
	r, err := cs.CallTool(ctx, &sdk.CallToolParams{Name: "s__" + name, Arguments: map[string]any{"word": word}})
	if err != nil {
		return "", err
	}
	text, ok := r.Content[0].(*sdk.TextContent)
	if !ok || r.IsError {
		return "", fmt.Errorf("%v %T %+v", r.IsError, r.Content[0], text)
	}
	return text.Text, nil
}

// TestServersAsk: what a server asks of its client reaches the client of the call, and its answer the server, whichever way each of the
// two speaks; the folders are those that the configuration says. That something was asked is on the journal, and nothing of it.
func TestServersAsk(t *testing.T) {
	for _, upstream := range []string{modern, legacy} {
		for place, entry := range map[string]func(*gatewaySetup, string) string{"near": (*gatewaySetup).near, "far": (*gatewaySetup).far} {
			h := newGatewaySetup(t)
			h.open(map[string]string{"s": entry(h, upstream)}, requestingTools)
			srv := h.serve()
			for _, revision := range []string{modern, legacy} {
				t.Run(upstream+"/"+place+"/"+revision, func(t *testing.T) {
					var heard []string
					cs := h.client(srv, revision, "Ann", func(text string) { heard = append(heard, text) })
					for _, tt := range []struct{ tool, want string }{
						{"person", "w: accept Ann"}, {"model", "w: m Ann"}, {"folders", "w: workspace=file://" + h.dir}, {"echo", "w"},
					} {
						got, err := ask(t.Context(), cs, tt.tool, "w")
						require.NoError(t, err, tt.tool)
						require.Equal(t, tt.want, got)
					}
					require.Equal(t, []string{"Server s asks: who? w", "who? w none"}, heard)
					dumb := h.client(srv, revision, "", nil)
					got, err := ask(t.Context(), dumb, "person", "w")
					require.NoError(t, err)
					if upstream == modern {
						require.Equal(t, "w: the client cannot", got)
					} else {
						require.Contains(t, got, "w: refused -32601")
					}
				})
			}
			require.Equal(t, []string{
				`[{"method":"elicitation/create"}]`, `[{"answer":"accept","method":"elicitation/create"}]`,
				`[{"method":"sampling/createMessage"}]`, `[{"answer":"answered","method":"sampling/createMessage"}]`,
				`[{"method":"elicitation/create"}]`, `[{"answer":"accept","method":"elicitation/create"}]`,
				`[{"method":"sampling/createMessage"}]`, `[{"answer":"answered","method":"sampling/createMessage"}]`,
			}, h.notes("asked"))
			require.NoError(t, h.gateway.Close())
		}
	}
}

// bearer proves a session.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// TestServersAskByURL: the same for clients over HTTP, where each request of the newest revision stands for itself and has ended when
// its client is asked.
func TestServersAskByURL(t *testing.T) {
	for _, upstream := range []string{modern, legacy} {
		h := newGatewaySetup(t)
		h.open(map[string]string{"s": h.near(upstream)}, requestingTools)
		handler, err := h.serve().Handler(mcp.HTTPOptions{})
		require.NoError(t, err)
		listener := httptest.NewServer(handler)
		for _, revision := range []string{modern, legacy} {
			t.Run(upstream+"/"+revision, func(t *testing.T) {
				token := h.session().Token()
				o := &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}, nil
				}}
				cs, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, o).Connect(t.Context(), &sdk.StreamableClientTransport{
					Endpoint: listener.URL, HTTPClient: &http.Client{Transport: bearer(token)},
				}, &sdk.ClientSessionOptions{ProtocolVersion: revision})
				require.NoError(t, err)
				for range 3 {
					got, err := ask(t.Context(), cs, "person", "w")
					require.NoError(t, err)
					require.Equal(t, "w: accept Ann", got)
				}
				require.NoError(t, cs.Close())
			})
		}
		listener.Close()
	}
}

// notes are the values that were noted under a key, in order.
func (h *gatewaySetup) notes(key string) (all []string) {
	h.t.Helper()
	for e, err := range h.journal.Entries(h.t.Context(), journal.Query{}) {
		require.NoError(h.t, err)
		var body struct {
			Key   string
			Value json.RawMessage
		}
		if string(e.Header.Kind) == "revert_note" {
			require.NoError(h.t, json.Unmarshal(e.Body, &body))
			require.Equal(h.t, key, body.Key)
			all = append(all, string(body.Value))
		}
	}
	return all
}

// TestQuestionsAreOfTheirCalls: of many clients that make calls of one server at once each is asked for its own calls alone, and the server
// gets for each call what its client said. Where nobody can tell for which call something is, nobody is asked.
func TestQuestionsAreOfTheirCalls(t *testing.T) {
	const clients, calls = 6, 12
	for _, tt := range []struct {
		upstream string
		entry    func(*gatewaySetup, string) string
		known    string
		all      bool // are answered
	}{
		{modern, (*gatewaySetup).near, requestingTools, true},
		{legacy, (*gatewaySetup).far, requestingTools, true},
		{legacy, (*gatewaySetup).near, requestingTools, false},
		{legacy, (*gatewaySetup).near, strings.ReplaceAll(requestingTools, `"pure"`, `"pure", "exclusive": true`), true},
	} {
		h := newGatewaySetup(t)
		h.open(map[string]string{"s": tt.entry(h, tt.upstream)}, tt.known)
		srv := h.serve()
		var all sync.WaitGroup
		var mixed, refused, answered atomic.Int64
		var strange sync.Map
		for i := range clients {
			name := fmt.Sprintf("client-%d", i)
			cs := h.client(srv, []string{modern, legacy}[i%2], name, func(text string) {
				if !strings.Contains(text, name+"/") {
					mixed.Add(1)
				}
			})
			for j := range calls {
				all.Go(func() {
					word := fmt.Sprintf("%s/%d", name, j)
					tool := []string{"person", "model", "echo"}[j%3]
					got, err := ask(t.Context(), cs, tool, word)
					switch want := word + map[string]string{"person": ": accept " + name, "model": ": m " + name}[tool]; {
					case err == nil && got == want:
						answered.Add(1)
					case err == nil && strings.HasPrefix(got, word+": refused -32600"):
						refused.Add(1)
					default:
						strange.Store(got, err)
					}
				})
			}
		}
		all.Wait()
		strange.Range(func(got, err any) bool { t.Errorf("%v: %v", got, err); return true })
		require.Zero(t, mixed.Load())
		require.EqualValues(t, clients*calls, answered.Load()+refused.Load())
		if tt.all {
			require.Zero(t, refused.Load())
			continue
		}
		cs := h.client(srv, legacy, "after", func(string) {}) // they are made one at a time now
		got, err := ask(t.Context(), cs, "person", "w")
		require.NoError(t, err)
		require.Equal(t, "w: accept after", got)
	}
}

// TestWhatServersMayAsk: what the configuration does not let a server ask for is asked of nobody.
func TestWhatServersMayAsk(t *testing.T) {
	for _, upstream := range []string{modern, legacy} {
		h := newGatewaySetup(t)
		h.open(map[string]string{"s": h.near(upstream)}, strings.Replace(requestingTools, `"roots": ["workspace"], "asks": ["elicitation", "sampling"]`, `"asks": ["sampling"]`, 1))
		cs := h.client(h.serve(), legacy, "Ann", func(text string) { require.Contains(t, text, "none") })
		for _, tool := range []string{"person", "folders"} {
			got, err := ask(t.Context(), cs, tool, "w")
			require.True(t, err != nil || strings.Contains(got, "cannot") || strings.Contains(got, "refused -32601"), "%s: %s", tool, got)
		}
		got, err := ask(t.Context(), cs, "model", "w")
		require.NoError(t, err)
		require.Equal(t, "w: m Ann", got)
	}
}

// TestServersAskForFolders: where the configuration lets a server ask for the client's own folders, it is told of those, and of none where
// the client has none to tell of.
func TestServersAskForFolders(t *testing.T) {
	for _, upstream := range []string{modern, legacy} {
		for place, entry := range map[string]func(*gatewaySetup, string) string{"near": (*gatewaySetup).near, "far": (*gatewaySetup).far} {
			for _, revision := range []string{modern, legacy} {
				t.Run(upstream+"/"+place+"/"+revision, func(t *testing.T) {
					h := newGatewaySetup(t)
					h.open(map[string]string{"s": entry(h, upstream)}, strings.Replace(requestingTools, `"roots": ["workspace"], "asks": ["elicitation", "sampling"]`, `"asks": ["roots"]`, 1))
					srv := h.serve()
					can := &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{RootsV2: &sdk.RootCapabilities{}}}
					got, err := ask(t.Context(), h.connect(srv, revision, can, &sdk.Root{Name: "home", URI: "file:///h"}), "folders", "w")
					require.NoError(t, err)
					require.Equal(t, "w: home=file:///h", got)
					require.Equal(t, []string{`[{"method":"roots/list"}]`, `[{"answer":"answered","method":"roots/list"}]`}, h.notes("asked"))
					got, err = ask(t.Context(), h.client(srv, revision, "", nil), "folders", "w")
					require.True(t, err != nil || strings.Contains(got, "refused -32601"), "%s", got)
				})
			}
		}
	}
	_, err := config.Parse("g.json", []byte(`{"mcpServers": {"s": {"command": "x"}}, "remit": {"servers": {"s": {"roots": ["workspace"], "asks": ["roots"]}}}}`), os.LookupEnv)
	require.ErrorContains(t, err, "leave one of the two out")
}

// TestAskedTooLate: what a server asks for a call that was given up is asked of nobody, though another call is under way alone.
func TestAskedTooLate(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.near(legacy)}, requestingTools)
	srv := h.serve()
	asked := make(chan string, 8)
	first := h.client(srv, legacy, "Ann", func(text string) { asked <- text })
	second := h.client(srv, legacy, "Bob", func(text string) { asked <- text })
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = ask(ctx, first, "late", "w")
	}()
	_, err := ask(t.Context(), first, "begun", "w")
	require.NoError(t, err)
	cancel()
	_, err = ask(t.Context(), second, "told", "w")
	require.NoError(t, err)
	receive(t, gone)
	require.Empty(t, asked)
	raw, err := os.ReadFile(filepath.Join(h.dir, "told"))
	require.NoError(t, err)
	require.NotContains(t, string(raw), "nil")
	for got := ""; got != "w: accept Bob"; { // as soon as the late one has answered
		got, err = ask(t.Context(), second, "person", "w")
		require.NoError(t, err)
		require.True(t, got == "w: accept Bob" || strings.HasPrefix(got, "w: refused -32600"), got)
	}
}

// TestAnswersCountOnce: a client of the newest revision carries nothing of the server's own state, and what it carries counts once, for
// its own call with the same arguments.
func TestAnswersCountOnce(t *testing.T) {
	for _, upstream := range []string{modern, legacy} {
		t.Run(upstream, func(t *testing.T) {
			h := newGatewaySetup(t)
			h.open(map[string]string{"s": h.near(upstream)}, requestingTools)
			srv := h.serve()
			o := &sdk.ClientOptions{
				Capabilities:   &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{}},
				MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
			}
			own, other := h.connect(srv, modern, o), h.connect(srv, modern, o)
			p := &sdk.CallToolParams{Name: "s__person", Arguments: map[string]any{"word": "w"}}
			r, err := own.CallTool(t.Context(), p)
			require.NoError(t, err)
			require.True(t, r.NeedsInput())
			require.NotContains(t, r.RequestState, secretState)
			answers := sdk.InputResponseMap{}
			for key, q := range r.InputRequests {
				form, ok := q.(*sdk.ElicitParams)
				require.True(t, ok, "%T", q)
				require.Equal(t, "Server s asks: who? w", form.Message)
				answers[key] = &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}
			}
			again := func(cs *sdk.ClientSession, word, state string) string {
				r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{
					Name: "s__person", Arguments: map[string]any{"word": word}, InputResponses: answers, RequestState: state,
				})
				if err != nil {
					require.ErrorContains(t, err, "the request state is none that this server gave")
					return "true, as an error of the protocol"
				}
				require.False(t, r.NeedsInput())
				return fmt.Sprint(r.IsError, " ", firstText(t, r))
			}
			require.Contains(t, again(other, "w", r.RequestState), "true")
			require.Contains(t, again(own, "x", r.RequestState), "true")
			require.Contains(t, again(own, "w", r.RequestState[:len(r.RequestState)-4]+"AAAA"), "true")
			require.Equal(t, "false w: accept Ann", again(own, "w", r.RequestState))
			require.Contains(t, again(own, "w", r.RequestState), "true")
			require.Equal(t, "done", h.ended())
		})
	}
}

// TestTwoAnswersAtOnce: of two equal answers that come at once one counts, and the other one is told so at once.
func TestTwoAnswersAtOnce(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.near(legacy)}, requestingTools)
	cs := h.connect(h.serve(), modern, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{}},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	})
	p := &sdk.CallToolParams{Name: "s__held", Arguments: map[string]any{"word": "w"}}
	r, err := cs.CallTool(t.Context(), p)
	require.NoError(t, err)
	answers := sdk.InputResponseMap{}
	for key := range r.InputRequests {
		answers[key] = &sdk.ElicitResult{Action: "accept"}
	}
	came := make(chan *sdk.CallToolResult, 2)
	for range 2 {
		go func() {
			r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: p.Name, Arguments: p.Arguments, InputResponses: answers, RequestState: r.RequestState})
			if err != nil {
				t.Error(err)
			}
			came <- r
		}()
	}
	first := receive(t, came)
	require.Contains(t, firstText(t, first), "an answer counts once")
	h.put("told", "go")
	second := receive(t, came)
	require.False(t, second.IsError)
	require.Equal(t, "w", firstText(t, second))
}

// TestQuestionsEndWithTheirCalls: a call that is cancelled, or whose time is up, takes its question along, and the server is told.
func TestQuestionsEndWithTheirCalls(t *testing.T) {
	for _, upstream := range []string{modern, legacy} {
		for _, revision := range []string{modern, legacy} {
			t.Run(upstream+"/"+revision, func(t *testing.T) {
				h := newGatewaySetup(t)
				known := requestingTools
				if revision == modern { // whose call nobody can cancel between two requests
					known = strings.Replace(known, `"person": {`, `"person": {"timeout": "100ms", `, 1)
				}
				h.open(map[string]string{"s": h.near(upstream)}, known)
				srv := h.serve()
				ctx, cancel := context.WithCancel(t.Context())
				cs := h.connect(srv, revision, &sdk.ClientOptions{
					ElicitationHandler: func(asking context.Context, _ *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
						if revision == legacy {
							cancel()
							<-asking.Done()
						} else {
							for h.ended() == "" { // until its time is up
								runtime.Gosched()
							}
						}
						return &sdk.ElicitResult{Action: "accept"}, nil
					},
				})
				_, err := ask(ctx, cs, "person", "w")
				require.Error(t, err)
				for h.ended() == "" {
					runtime.Gosched()
				}
				require.Contains(t, []string{"failed", "done"}, h.ended(), "done: it had ended before it knew")
				other := h.client(srv, revision, "Bob", func(string) {})
				got, err := ask(t.Context(), other, "echo", "w")
				require.NoError(t, err)
				require.Equal(t, "w", got)
				cancel()
			})
		}
	}
}

func firstText(t *testing.T, r *sdk.CallToolResult) string {
	t.Helper()
	text, ok := r.Content[0].(*sdk.TextContent)
	require.True(t, ok, "%T", r.Content[0])
	return text.Text
}
