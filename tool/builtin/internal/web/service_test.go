package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	handle "github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
	builtin "github.com/remit-dev/remit/tool/builtin/internal/web"
)

// service is a REST service of items, which counts what it does.
type service struct {
	*httptest.Server
	etags, keys, replays bool // what it knows of
	late                 time.Duration
	stamps               bool                               // each write leaves another number in the item
	hook                 func(r *http.Request) (status int) // before anything else; 0: go on
	drop                 func(r *http.Request) string       // "before" or "after" its effect the connection breaks; "500" it answers so after it

	mu      sync.Mutex
	items   map[string]map[string]any
	rev     map[string]int
	byKey   map[string]string
	last    int
	effects []string // methods that had one
	seen    []string // every request
}

func newService(t *testing.T, change func(*service)) *service {
	s := &service{etags: true, keys: true}
	if change != nil {
		change(s)
	}
	s.start()
	t.Cleanup(s.Close)
	return s
}

func (s *service) start() {
	s.items, s.rev, s.byKey = map[string]map[string]any{}, map[string]int{}, map[string]string{}
	s.Server = httptest.NewServer(s)
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, r.Method+" "+r.URL.RequestURI())
	how := ""
	if s.drop != nil && r.Method != http.MethodGet {
		how = s.drop(r)
	}
	if how == "before" {
		panic(http.ErrAbortHandler)
	}
	if s.hook != nil {
		if status := s.hook(r); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	status, out := s.handle(r, body)
	switch how {
	case "after":
		panic(http.ErrAbortHandler)
	case "500":
		status = 500
	}
	w.Header().Set("Content-Type", "application/json")
	if id, ok := out["id"].(string); ok && s.etags && status < 300 {
		w.Header().Set("ETag", `"r`+strconv.Itoa(s.rev[id])+`"`)
	}
	w.WriteHeader(status)
	if out != nil {
		_ = json.NewEncoder(w).Encode(out)
	} else if list := s.list(r); list != nil {
		_ = json.NewEncoder(w).Encode(list)
	}
}

func (s *service) list(r *http.Request) any {
	if r.Method != http.MethodGet || r.URL.Path != "/items" {
		return nil
	}
	found := []any{}
	if id, ok := s.byKey[r.URL.Query().Get("key")]; ok && s.items[id] != nil {
		found = append(found, s.items[id])
	}
	return map[string]any{"data": found}
}

func (s *service) handle(r *http.Request, body []byte) (int, map[string]any) {
	id := strings.TrimPrefix(r.URL.Path, "/items/")
	var in map[string]any
	_ = json.Unmarshal(body, &in)
	key := r.Header.Get("Idempotency-Key")
	switch {
	case r.URL.Path == "/items" && r.Method == http.MethodGet:
		if !s.keys {
			return 404, map[string]any{}
		}
		return 200, nil
	case r.URL.Path == "/items" && r.Method == http.MethodPost:
		if was, ok := s.byKey[key]; ok && s.replays && key != "" {
			return 201, map[string]any{"id": was}
		}
		if in["name"] == "bad" {
			return 422, map[string]any{"error": "no"}
		}
		s.last++
		id = "i" + strconv.Itoa(s.last)
		if key != "" {
			s.byKey[key] = id
		}
		return 201, s.put(id, in, "POST")
	case strings.HasSuffix(id, "/cancel"):
		id = strings.TrimSuffix(id, "/cancel")
		s.items[id]["cancelled"] = true
		s.rev[id]++
		s.effects = append(s.effects, "CANCEL")
		return 200, s.items[id]
	case s.items[id] == nil && r.Method != http.MethodPut:
		return 404, map[string]any{}
	case r.Method == http.MethodGet:
		return 200, s.items[id]
	}
	if m := r.Header.Get("If-Match"); s.etags && m != "" && m != `"r`+strconv.Itoa(s.rev[id])+`"` || s.items[id] != nil && r.Header.Get("If-None-Match") == "*" {
		return 412, map[string]any{}
	}
	switch r.Method {
	case http.MethodPut:
		return 200, s.put(id, in, "PUT")
	case http.MethodPatch:
		return 200, s.put(id, in, "PATCH")
	case http.MethodDelete:
		delete(s.items, id)
		s.effects = append(s.effects, "DELETE")
		return 204, nil
	}
	return 405, map[string]any{}
}

func (s *service) put(id string, in map[string]any, method string) map[string]any {
	if in == nil {
		in = map[string]any{}
	}
	in["id"] = id
	s.items[id] = in
	s.rev[id]++
	if s.stamps {
		in["stamp"] = s.rev[id]
	}
	s.effects = append(s.effects, method)
	return in
}

// holding seeds an item, without an effect that counts.
func (s *service) holding(id string, item map[string]any) {
	s.foreign(func() {
		item["id"] = id
		s.items[id] = item
	})
}

// requests is what was asked, in order.
func (s *service) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// foreign runs f as the change of another client.
func (s *service) foreign(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *service) state() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, _ := json.Marshal(s.items)
	return string(raw)
}

func (s *service) done() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.effects, " ")
}

// calls are the tools of the service.
func (s *service) calls(url string) []tool.Tool {
	create := &handle.Compensation{Item: url + "/items/{id}"}
	if s.keys {
		create.Find, create.FindIn = url+"/items?key={key}", "data"
	}
	create.Replays = s.replays
	input := json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"},"size":{"type":"integer"}},"required":["name"],"additionalProperties":false}`)
	withID := json.RawMessage(strings.Replace(string(input), `"required":["name"]`, `"required":["id","name"]`, 1))
	var out []tool.Tool
	for _, c := range []builtin.Call{
		{Name: "item_create", Description: "Make an item.", Method: "POST", URL: url + "/items", Input: input, Keyed: s.keys || s.replays, Undo: create},
		{Name: "item_put", Description: "Put an item.", Method: "PUT", URL: url + "/items/{id}", Input: withID, Undo: &handle.Compensation{Method: "PUT", Before: true}},
		{Name: "item_delete", Description: "Delete an item.", Method: "DELETE", URL: url + "/items/{id}", Undo: &handle.Compensation{Method: "PUT", Before: true}},
		{Name: "item_get", Description: "Get an item.", Method: "GET", URL: url + "/items/{id}"},
		{Name: "item_drop", Description: "Delete an item for good.", Method: "DELETE", URL: url + "/items/{id}"},
	} {
		made, err := builtin.HTTPCall(c)
		if err != nil {
			panic(err)
		}
		out = append(out, made)
	}
	return out
}

func everything() perm.Engine {
	return perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "everything"}}}), nil
	})
}

// parts are the options of a runtime that has the service's tools.
func (s *service) parts(url, allow string) []agent.Option {
	network, err := handle.ParseNetwork(allow)
	if err != nil {
		panic(err)
	}
	client, err := handle.New(handle.Options{Late: max(s.late, 1), Allow: []handle.Network{network}})
	if err != nil {
		panic(err)
	}
	return []agent.Option{
		agent.Tools(s.calls(url)...), agent.Tools(builtin.Tools()...), agent.Driver(client),
		agent.Policy(everything()), agent.Log(slog.New(slog.DiscardHandler)),
	}
}

func runtimeOf(t *testing.T, s *service, opts ...agent.Option) *agent.Runtime {
	rt, err := agent.New(append(s.parts(s.URL, s.Listener.Addr().String()), opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	return rt
}

func begin(t *testing.T, rt *agent.Runtime) *agent.Txn {
	session, err := rt.Session(t.Context(), perm.Principal{ID: "agent"})
	require.NoError(t, err)
	tx, err := session.Begin(t.Context())
	require.NoError(t, err)
	return tx
}

func invoke(t *testing.T, tx *agent.Txn, name string, args tool.Args, want tool.Status) tool.Outcome {
	out, _ := tx.Invoke(t.Context(), name, args)
	require.Equal(t, want, out.Status, "%s: %+v", name, out.Error)
	return out
}

func TestCreatedIsReverted(t *testing.T) {
	s := newService(t, nil)
	rt := runtimeOf(t, s)
	tx := begin(t, rt)
	out := invoke(t, tx, "item_create", tool.Args{"name": "a", "size": 3}, tool.StatusDone)
	require.EqualValues(t, "applied", out.Verdict.Presence)
	require.Contains(t, string(out.Output), `"status":201`)
	require.JSONEq(t, `{"i1":{"id":"i1","name":"a","size":3}}`, s.state())
	invoke(t, tx, "item_put", tool.Args{"id": "i1", "name": "b"}, tool.StatusDone)
	invoke(t, tx, "item_put", tool.Args{"id": "own", "name": "c"}, tool.StatusDone)
	invoke(t, tx, "item_delete", tool.Args{"id": "i1"}, tool.StatusDone)
	require.JSONEq(t, `{"own":{"id":"own","name":"c"}}`, s.state())
	rep, err := tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err, "%+v", rep)
	require.Equal(t, "{}", s.state())
	require.Equal(t, "POST PUT PUT DELETE PUT DELETE PUT DELETE", s.done())
}

// TestChangedByOthers checks that a revert keeps the change that another client
// made after a call. This holds in this process and in a later one. The revert
// reverts everything else.
func TestChangedByOthers(t *testing.T) {
	for name, test := range map[string]struct {
		call    string
		args    tool.Args
		foreign func(*service)
		left    string
	}{
		"changed":           {"item_create", tool.Args{"name": "a"}, func(s *service) { s.put("i1", map[string]any{"name": "theirs"}, "") }, `{"i1":{"id":"i1","name":"theirs"}}`},
		"changed of a put":  {"item_put", tool.Args{"id": "x", "name": "a"}, func(s *service) { s.put("x", map[string]any{"name": "theirs"}, "") }, `{"x":{"id":"x","name":"theirs"}}`},
		"made again":        {"item_delete", tool.Args{"id": "old"}, func(s *service) { s.put("old", map[string]any{"name": "theirs"}, "") }, `{"old":{"id":"old","name":"theirs"}}`},
		"deleted of a put":  {"item_put", tool.Args{"id": "old", "name": "a"}, func(s *service) { delete(s.items, "old") }, `{}`},
		"without versions":  {"item_create", tool.Args{"name": "a"}, func(s *service) { s.put("i1", map[string]any{"name": "theirs"}, "") }, `{"i1":{"id":"i1","name":"theirs"}}`},
		"changed meanwhile": {"item_put", tool.Args{"id": "old", "name": "a"}, func(s *service) { s.put("old", map[string]any{"name": "theirs"}, "") }, `{"old":{"id":"old","name":"theirs"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, func(s *service) { s.etags = name != "without versions" })
			if strings.Contains(fmt.Sprint(test.args), "old") {
				s.foreign(func() { s.put("old", map[string]any{"name": "before"}, "") })
			}
			journal := journal.Memory()
			rt := runtimeOf(t, s, agent.Journal(journal))
			tx := begin(t, rt)
			invoke(t, tx, test.call, test.args, tool.StatusDone)
			require.NoError(t, tx.Commit(t.Context()))
			s.foreign(func() { test.foreign(s) })
			for range 2 { // here, and in a process that has the journal alone
				rep, err := rt.Revert(t.Context(), tx.ID(), revert.Options{})
				require.ErrorIs(t, err, agent.ErrPartialRevert)
				require.Equal(t, effect.Conflict, rep.NotReverted()[0].Outcome, "%+v", rep)
				// Force does not overwrite a change that the runtime could not
				// restore.
				rep, err = rt.Revert(t.Context(), tx.ID(), revert.Options{Force: true, By: "kim"})
				require.ErrorIs(t, err, agent.ErrPartialRevert)
				require.Equal(t, effect.Conflict, rep.NotReverted()[0].Outcome, "%+v", rep)
				require.Contains(t, rep.NotReverted()[0].Why, "not overwritten")
				left := s.state()
				if !slices.Contains([]string{test.left}, left) {
					require.JSONEq(t, test.left, left)
				}
				rt = runtimeOf(t, s, agent.Journal(journal))
			}
		})
	}
}
