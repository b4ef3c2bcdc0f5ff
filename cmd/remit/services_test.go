package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// echoService is a service that knows who it is talked to by.
type echoService struct {
	mu    sync.Mutex
	items map[string]string
	who   []string
}

func (s *echoService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.who = append(s.who, r.Header.Get("Authorization"))
	id := strings.TrimPrefix(r.URL.Path, "/items/")
	switch {
	case r.Header.Get("Authorization") != "Bearer "+planted:
		w.WriteHeader(http.StatusUnauthorized)
	case r.Method == http.MethodPost:
		body, _ := io.ReadAll(r.Body)
		s.items["new"] = string(body)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":"new"}`)
	case r.URL.Path == "/whoami":
		_, _ = fmt.Fprintf(w, "you are %s, %x", r.Header.Get("Authorization"), planted)
	case s.items[id] == "":
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodDelete:
		delete(s.items, id)
	default:
		_, _ = io.WriteString(w, s.items[id])
	}
}

const planted = "planted-token-0123456789"

// TestServices runs calls of a service that a file describes, with a credential, and
// reverts them in another run of the command. The secret is in nothing that was
// written.
func TestServices(t *testing.T) {
	s := &echoService{items: map[string]string{}}
	server := httptest.NewServer(s)
	defer server.Close()
	workspace, state := testPlace(t)
	dir := filepath.Dir(workspace)
	config, err := json.Marshal(map[string]any{
		"allow": []string{server.Listener.Addr().String()}, "secrets": map[string]string{"shelf": "env:SHELF_TOKEN"},
		"credentials": []any{map[string]string{"origin": server.URL, "secret": "shelf"}},
		"calls": []any{map[string]any{
			"name": "item_create", "description": "Make an item.", "method": "POST", "url": server.URL + "/items", "secret": "shelf",
			"input": map[string]any{"type": "object", "properties": map[string]any{"name": map[string]string{"type": "string"}}, "additionalProperties": false},
			"undo":  map[string]string{"item": server.URL + "/items/{id}"},
		}},
	})
	require.NoError(t, err)
	services, policy := filepath.Join(dir, "services.json"), filepath.Join(dir, "p.rego")
	require.NoError(t, os.WriteFile(services, config, 0o600))
	require.NoError(t, os.WriteFile(policy, []byte(`package remit
allow contains "the shelf" if { input.access.action == "connect"; input.access.resource.host == "127.0.0.1"; input.call.effect_class != "pivot" }
allow contains "its token" if { input.access.action == "use"; input.access.resource.name == "shelf" }
`), 0o600))
	script := `{"tool":"item_create","args":{"name":"tea"}}
{"tool":"http_fetch","args":{"url":"` + server.URL + `/whoami"}}
{"tool":"http_fetch","args":{"url":"` + server.URL + `/items","method":"POST","body":"x"}}
`
	var all bytes.Buffer
	command := func(code int, args ...string) string {
		var out, errs bytes.Buffer
		w := testEnv(strings.NewReader(script), &out, &errs)
		w.Getenv = func(name string) string { return map[string]string{"SHELF_TOKEN": planted}[name] }
		require.Equal(t, code, run(t.Context(), args, w), out.String()+errs.String())
		all.WriteString(out.String() + errs.String())
		return out.String()
	}
	reach := []string{"--state", state, "--services", services}
	out := command(3, append(append([]string{"run", "--workspace", workspace, "--policy", policy, "--json"}, reach...), "-")...)
	require.Contains(t, command(0, "tools", "--services", services, "item_create"), "needs    connect POST "+server.URL+"/items")
	require.Contains(t, command(0, "tools", "--services", services, "--policy", policy, "--why", "item_create"), "is offered")
	require.Contains(t, command(0, "tools", "check", "--services", services, "item_create"), "1 tool looked at")
	lines := strings.Split(out, "\n")
	require.Contains(t, lines[0], `"status":"done"`)
	require.Contains(t, lines[0], `"effect_class":"compensable"`)
	require.Contains(t, lines[1], `"status":"done"`)
	require.Contains(t, lines[1], `you are Bearer (hidden), (hidden)`)
	require.Contains(t, lines[1], `"effect_class":"pure"`)
	require.Contains(t, lines[2], `"status":"denied"`, "a POST that nothing reverts")
	require.Equal(t, map[string]string{"new": `{"name":"tea"}`}, s.items)
	command(0, "log", "--state", state)
	var summary struct{ Txn string }
	require.NoError(t, json.Unmarshal([]byte(lines[3]), &summary))
	command(0, "show", "--state", state, summary.Txn)
	command(0, "diff", "--state", state, summary.Txn)
	command(0, append([]string{"revert", "--preview", summary.Txn}, reach...)...)
	command(6, "revert", "--state", state, summary.Txn) // without the file, the service is not reached
	command(0, append([]string{"revert", summary.Txn}, reach...)...)
	require.Empty(t, s.items)
	command(0, "fsck", "--state", state)
	require.NotContains(t, all.String(), planted)
	require.NotEmpty(t, s.who)
	require.NoError(t, filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		require.NotContains(t, string(data), planted, path)
		require.NotContains(t, string(data), fmt.Sprintf("%x", planted), path)
		return err
	}))
}
