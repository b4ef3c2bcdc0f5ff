package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// policy allows everything that reject does not name, and records the requests.
type policy struct {
	mu     sync.Mutex
	asked  []string
	reject func(perm.Request) bool
}

func (p *policy) Decide(_ context.Context, r perm.Request) (perm.Decision, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := string(r.Access.Action) + " "
	if r.Access.Method != "" {
		text += r.Access.Method + " "
	}
	if r.Purpose == perm.PurposeRun {
		p.asked = append(p.asked, text+r.Access.Resource.Text)
	}
	effect := perm.Allow
	if p.reject != nil && p.reject(r) {
		effect = perm.Deny
	}
	return perm.NewDecision(effect, perm.Details{Reasons: []perm.Reason{{Text: "said so"}}}), nil
}

// sender returns a tool that sends one request and returns its response.
func sender(t *testing.T, got *web.Response) tool.Tool {
	made, err := tool.FromSpec(tool.Spec{
		Name: "send", Description: "Sends.", EffectClass: effect.Pivot, Confinement: tool.Handles,
		Input: json.RawMessage(`{"type":"object"}`),
		Needs: []perm.ResourceAccess{perm.Access(perm.Connect, "https://*:*/**"), perm.Access(perm.Connect, "http://*:*/**"), perm.Access(perm.Use, "secret://*")},
		Execute: func(ctx context.Context, tc ctxperm.ToolContext, raw json.RawMessage) (tool.Result, error) {
			var r web.Request
			if err := json.Unmarshal(raw, &r); err != nil {
				return tool.Result{}, err
			}
			resp, err := web.Do(ctx, tc, r)
			if got != nil {
				*got = resp
			}
			return tool.Text(fmt.Sprintf("%d %s", resp.Status, resp.Body)), err
		},
	})
	require.NoError(t, err)
	return made
}

// send sends one request in its own transaction.
func send(t *testing.T, p *policy, r web.Request, drivers ...ctxperm.Driver) (tool.Outcome, web.Response) {
	var got web.Response
	opts := []agent.Option{agent.Tools(sender(t, &got)), agent.Policy(p), agent.Log(slog.New(slog.DiscardHandler))}
	for _, d := range drivers {
		opts = append(opts, agent.Driver(d))
	}
	rt, err := agent.New(opts...)
	require.NoError(t, err)
	defer rt.Close()
	s, err := rt.Session(t.Context(), perm.Principal{ID: "agent"})
	require.NoError(t, err)
	tx, err := s.Begin(t.Context())
	require.NoError(t, err)
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	out, _ := tx.Invoke(t.Context(), "send", r)
	return out, got
}

func newClient(t *testing.T, o web.Options, allow ...string) *web.Client {
	for _, text := range allow {
		n, err := web.ParseNetwork(text)
		require.NoError(t, err)
		o.Allow = append(o.Allow, n)
	}
	c, err := web.New(o)
	require.NoError(t, err)
	return c
}

// canary counts the connections to addresses of this machine that must not be
// reached.
type canary struct {
	mu   sync.Mutex
	hits []string
	port string
}

func (c *canary) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hits = append(c.hits, r.Host+r.URL.String())
}

func (c *canary) seen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{}, c.hits...)
}

// newCanary listens on every address of this machine, of both families, or on
// one.
func newCanary(t *testing.T, host string) *canary {
	c := &canary{}
	l, err := net.Listen("tcp", host+":0")
	require.NoError(t, err)
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: c}}
	s.Start()
	t.Cleanup(s.Close)
	_, c.port, err = net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return c
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func addr(s *httptest.Server) string { return s.Listener.Addr().String() }

func onlyPath(name string) func(perm.Request) bool {
	return func(r perm.Request) bool { return r.Access.Resource.Name == name }
}
