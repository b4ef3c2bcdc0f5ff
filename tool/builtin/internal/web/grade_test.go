package web_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	handle "github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/reverttest"
	"github.com/remit-dev/remit/tool"
	builtin "github.com/remit-dev/remit/tool/builtin/internal/web"
)

// wired is the service behind a wire: what changes it can be lost, or come late.
type wired struct {
	*service

	wire *reverttest.Wire
}

func (w *wired) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.service.ServeHTTP(out, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	if err := w.wire.Send(r.Context(), r.Method+" "+r.URL.Path, func() { w.service.ServeHTTP(answer, r) }); err != nil {
		panic(http.ErrAbortHandler)
	}
	for name, values := range answer.Header() {
		out.Header()[name] = values
	}
	out.WriteHeader(answer.Code)
	_, _ = out.Write(answer.Body.Bytes())
}

func (s *service) shown() (map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]string{}
	for id, item := range s.items {
		raw, err := json.Marshal(item)
		if err != nil {
			return nil, err
		}
		found["item "+id] = string(raw)
	}
	return found, nil
}

// current is the service of the run that there is, behind one address: a declaration
// with another URL would be another tool.
type current struct{ at http.Handler }

func (c *current) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.at.ServeHTTP(w, r) }

// TestGrades: http_fetch, and tools that HTTPCall makes, are as good as their grades say.
// REVERTTEST_UPDATE=1 writes the grades that the kit finds. Of the tools that HTTPCall
// makes each has a digest of its own, so none is in the file: who makes one grades it.
func TestGrades(t *testing.T) {
	now := &current{}
	server := httptest.NewServer(now)
	t.Cleanup(server.Close)
	network, err := handle.ParseNetwork(server.Listener.Addr().String())
	require.NoError(t, err)
	world := func(w *reverttest.Wire) (reverttest.TestEnv, error) {
		s := &service{etags: true, keys: true, replays: true, items: map[string]map[string]any{"old": {"id": "old", "name": "before"}}, rev: map[string]int{}, byKey: map[string]string{}}
		now.at = &wired{s, w}
		return reverttest.TestEnv{
			Process: func() ([]agent.Option, error) {
				client, err := handle.New(handle.Options{Allow: []handle.Network{network}})
				return []agent.Option{agent.Driver(client)}, err
			},
			Snapshot: s.shown,
			Foreign: map[string]func() error{"puts old and i1": func() error {
				s.foreign(func() {
					s.put("old", map[string]any{"name": "theirs"}, "")
					s.put("i1", map[string]any{"name": "theirs"}, "")
				})
				return nil
			}},
		}, nil
	}
	fetch := builtin.Tools()[0]
	r := reverttest.Test(t, fetch, provenance.NotUndoable, reverttest.Config{NewEnv: world, Inputs: []any{tool.Args{"url": server.URL + "/items/old", "method": "DELETE"}}})
	reverttest.SaveGrades(t, "grades.json", r)
	runs, graded := r.Runs, 1
	for _, call := range []struct {
		name string
		args tool.Args
		want provenance.Grade
	}{
		{"item_create", tool.Args{"name": "a"}, provenance.Compensable},
		{"item_put", tool.Args{"id": "old", "name": "b"}, provenance.Compensable},
		{"item_delete", tool.Args{"id": "old"}, provenance.Compensable},
		{"item_get", tool.Args{"id": "old"}, provenance.ReadOnly},
		{"item_drop", tool.Args{"id": "old"}, provenance.NotUndoable},
	} {
		s := &service{etags: true, keys: true, replays: true}
		for _, one := range s.calls(server.URL) {
			if one.Name() != call.name {
				continue
			}
			r := reverttest.Test(t, one, call.want, reverttest.Config{NewEnv: world, Inputs: []any{call.args}, Seed: 1, Runs: statcheck.Size(15, 400)})
			require.Equal(t, call.want, r.Grade)
			runs, graded = runs+r.Runs, graded+1
		}
	}
	t.Logf("proved: fault kit, web tools: %d tools in %d runs with faults, %d violations", graded, runs, map[bool]int{true: 1}[t.Failed()])
}
