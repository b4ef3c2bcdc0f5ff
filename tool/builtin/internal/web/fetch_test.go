package web_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	handle "github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	builtin "github.com/remit-dev/remit/tool/builtin/internal/web"
)

func TestFetch(t *testing.T) {
	s := newService(t, nil)
	s.holding("x", map[string]any{})
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/picture":
			w.Header().Set("Content-Type", "image/png")
			w.Header().Set("Set-Cookie", "a=b")
			_, _ = w.Write([]byte{0x89, 'P', 0xff})
		case "/latin":
			w.Header().Set("Content-Type", "text/plain; charset=iso-8859-1")
			_, _ = w.Write([]byte("plain"))
		case "/odd":
			w.Header()["Content-Type"] = []string{"?"}
			_, _ = w.Write([]byte("text"))
		case "/echo":
			w.Header().Set("Content-Type", "text/plain")
			_, _ = w.Write([]byte(r.Header.Get("X-A") + r.Header.Get("Idempotency-Key")))
		default:
			s.ServeHTTP(w, r)
		}
	})
	tx := begin(t, runtimeOf(t, s))
	fetch := func(args tool.Args, want tool.Status) map[string]any {
		out := invoke(t, tx, "http_fetch", args, want)
		var got map[string]any
		if want == tool.StatusDone {
			require.NoError(t, json.Unmarshal(out.Output, &got))
			class := effect.Pivot
			if m, _ := args["method"].(string); m == "" || m == "GET" || m == "HEAD" {
				class = effect.Pure
			}
			require.Equal(t, class, out.EffectClass)
		}
		return got
	}
	got := fetch(tool.Args{"url": s.URL + "/items/x?y=1"}, tool.StatusDone)
	require.InDelta(t, 200, got["status"], 0)
	require.JSONEq(t, `{"id":"x"}`, got["body"].(string)) //nolint:errcheck,forcetypeassert // a text by the schema of the answer
	require.Equal(t, s.URL+"/items/x?y=1", got["url"])
	got = fetch(tool.Args{"url": s.URL + "/picture"}, tool.StatusDone)
	require.Equal(t, "iVD/", got["body_base64"])
	require.NotContains(t, got["headers"], "Set-Cookie")
	require.Equal(t, "cGxhaW4=", fetch(tool.Args{"url": s.URL + "/latin"}, tool.StatusDone)["body_base64"])
	require.Equal(t, "text", fetch(tool.Args{"url": s.URL + "/odd"}, tool.StatusDone)["body"])
	require.Equal(t, "ak", fetch(tool.Args{"url": s.URL + "/echo", "method": "PUT", "headers": map[string]string{"X-A": "a"}, "idempotency_key": "k"}, tool.StatusDone)["body"])
	require.InDelta(t, 404, fetch(tool.Args{"url": s.URL + "/items/none", "method": "DELETE"}, tool.StatusDone)["status"], 0)
	require.Empty(t, fetch(tool.Args{"url": s.URL + "/items/x", "method": "HEAD"}, tool.StatusDone)["body"])
	before := len(s.requests())
	for _, args := range []tool.Args{
		{},
		{"url": ""},
		{"url": "nonsense"},
		{"url": "file:///etc/passwd"},
		{"url": s.URL + "/", "method": "TRACE"},
		{"url": s.URL + "/", "method": "get"},
		{"url": s.URL + "/", "headers": map[string]string{"Host": "x"}},
		{"url": s.URL + "/", "headers": map[string]string{"A": "b\nc"}},
		{"url": s.URL + "/", "body": "x"},
		{"url": s.URL + "/", "idempotency_key": "k"},
		{"url": "http://0x7f.1/"},
		{"url": "https://a@b/"},
		{"url": s.URL + "/", "nosuch": 1},
	} {
		out := invoke(t, tx, "http_fetch", args, tool.StatusInvalid)
		require.NotEmpty(t, out.Error.Why)
	}
	require.Len(t, s.requests(), before)
	invoke(t, tx, "http_fetch", tool.Args{"url": s.URL + "/items", "method": "POST", "body": `{"name":"a"}`}, tool.StatusDone)
	rep, err := tx.Revert(t.Context(), revert.Options{})
	require.Error(t, err)
	require.Contains(t, rep.NotReverted()[0].Why, "has no compensation")
	require.Len(t, rep.NotReverted(), 2, "of the PUT too, and not of what was refused or only read: %+v", rep.NotReverted())
}

// TestToolsOfCalls: what cannot be a call is refused when it is made.
func TestToolsOfCalls(t *testing.T) {
	fine := builtin.Call{Name: "one", Description: "One.", Method: "PUT", URL: "https://a.example/items/{id}", Undo: &handle.Compensation{}}
	made, err := builtin.HTTPCall(fine)
	require.NoError(t, err)
	require.Equal(t, effect.Compensable, made.Class())
	require.True(t, made.CanRevert())
	require.True(t, made.CanVerify())
	require.ElementsMatch(t, []perm.ResourceAccess{
		{Action: perm.Connect, Resource: "https://a.example/items/{id}", Method: "PUT"},
		{Action: perm.Connect, Resource: "https://a.example/items/{id}", Method: "GET"},
		{Action: perm.Connect, Resource: "https://a.example/items/{id}", Method: "DELETE"},
	}, made.Spec().Needs)
	for name, change := range map[string]func(*builtin.Call){
		"no name": func(c *builtin.Call) { c.Name = "" }, "method": func(c *builtin.Call) { c.Method = "FETCH" }, "read with undo": func(c *builtin.Call) { c.Method = "GET" },
		"keyed read": func(c *builtin.Call) { c.Method, c.Undo, c.Keyed = "GET", nil, true }, "host": func(c *builtin.Call) { c.URL = "https://{id}.example/" },
		"all host": func(c *builtin.Call) { c.URL = "https://{id}" }, "part of a segment": func(c *builtin.Call) { c.URL = "https://a.example/item-{id}" },
		"no argument": func(c *builtin.Call) { c.Input = json.RawMessage(`{"type":"object","properties":{}}`) }, "no schema": func(c *builtin.Call) { c.Input = json.RawMessage(`[`) },
		"no URL": func(c *builtin.Call) { c.URL = "ftp://a.example/" }, "find unkeyed": func(c *builtin.Call) { c.Undo.Find = "https://a.example/?k={key}" },
		"replays unkeyed": func(c *builtin.Call) { c.Undo.Replays = true }, "number in the path": func(c *builtin.Call) {
			c.Input = json.RawMessage(`{"type":"object","properties":{"id":{"type":"integer"}}}`)
		},
		"item elsewhere": func(c *builtin.Call) { c.Undo.Item = "https://b.example/{x}" }, "undo method": func(c *builtin.Call) { c.Undo.Method = "GET" },
		"undo header": func(c *builtin.Call) { c.Undo.Headers = map[string]string{"Host": "x"} }, "both bodies": func(c *builtin.Call) { c.Undo.Before, c.Undo.Body = true, json.RawMessage(`{}`) },
		"before of what is made": func(c *builtin.Call) { c.Undo.Before, c.Undo.Item = true, "https://a.example/{x}" }, "url without item": func(c *builtin.Call) { c.Undo.URL = "https://a.example/{x}" },
		"before to a url": func(c *builtin.Call) { c.Undo.Before, c.Undo.URL = true, "https://a.example/x" }, "broken template": func(c *builtin.Call) { c.Undo.Item = "https://a.example/{" },
		"header": func(c *builtin.Call) { c.Headers = map[string]string{"Authorization": "x"} },
	} {
		c, undo := fine, *fine.Undo
		c.Undo = &undo
		change(&c)
		_, err := builtin.HTTPCall(c)
		require.Error(t, err, name)
	}
	s := newService(t, nil)
	input := json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"},"n":{},"q":{"type":"string"}}}`)
	rt := runtimeOf(t, s, agentTools(t,
		builtin.Call{Name: "get", Description: "Get.", Method: "GET", URL: s.URL + "/items/{id}?n={n}&q={q}", Input: input, Headers: map[string]string{"X-A": "1"}}))
	tx := begin(t, rt)
	for _, args := range []tool.Args{
		{"id": "a/b", "n": 1, "q": "q"},
		{"id": "..", "n": 1, "q": "q"},
		{"id": "a", "n": map[string]any{}, "q": "q"},
		{"id": "a", "n": nil, "q": "q"},
		{"id": "a", "n": 1},
		{"n": 1, "q": "q"},
	} {
		invoke(t, tx, "get", args, tool.StatusInvalid)
	}
	invoke(t, tx, "get", tool.Args{"id": "a b?c#d", "n": true, "q": "x&y=z /"}, tool.StatusDone)
	require.Equal(t, "GET /items/a%20b%3Fc%23d?n=true&q=x%26y%3Dz+%2F", s.requests()[len(s.requests())-1])
	require.Equal(t, 1, strings.Count(strings.Join(s.requests(), "\n"), "/items/a"))
}
