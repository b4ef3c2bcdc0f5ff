package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// canaryCount is how many secrets are planted, and canaryServices how many of them
// are sent to a service.
const canaryCount, canaryServices = 50, 3

func canaryValue(i int) string {
	return fmt.Sprintf([]string{"canary-%02d-5f1e9a7c", `ca"n\a<ry>&%02d-5f1e/9a7c+==`, "ca nary=%02d?5f1e%%9a7c"}[i%3], i)
}

// canaryForms are the ways in which a value is looked for.
func canaryForms(value string) []string {
	js, _ := json.Marshal(value)
	raw := []byte(value)
	forms := []string{value, string(js[1 : len(js)-1]), hex.EncodeToString(raw), strings.ToUpper(hex.EncodeToString(raw)), url.QueryEscape(value), url.PathEscape(value)}
	for i := range 3 { // inside a longer text: the groups that no neighbour shares
		text := base64.StdEncoding.EncodeToString(append(bytes.Repeat([]byte("x"), i), value...))
		forms = append(forms, text[4:len(text)-4])
	}
	return forms
}

// leaks lists the values that stand in what was written.
func leaks(written map[string][]byte) (all []string) {
	for i := range canaryCount {
		for _, form := range canaryForms(canaryValue(i)) {
			for place, data := range written {
				if bytes.Contains(data, []byte(form)) {
					all = append(all, form+" in "+place)
				}
			}
		}
	}
	return all
}

// filesOf reads everything below a folder, whatever is being written there.
func filesOf(t *testing.T, dir string) map[string][]byte {
	all := map[string][]byte{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // gone by now
		}
		if data, err := os.ReadFile(path); err == nil {
			all[path] = data
		}
		return nil
	}))
	return all
}

// echoServers are services that repeat the credential that they are sent, in every form,
// wherever an answer has room for it.
type echoServers struct {
	t     *testing.T
	state string

	mu        sync.Mutex
	leaked    []string // found in the state folder while a call was under way
	wal       bool
	responses int
}

func (p *echoServers) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	files := filesOf(p.t, p.state)
	for name := range files {
		p.wal = p.wal || strings.HasSuffix(name, "-wal")
	}
	value := r.Header.Get("X-Key")
	for name, data := range files {
		if value != "" && (bytes.Contains(data, []byte(value)) || bytes.Contains(data, []byte(hex.EncodeToString([]byte(value))))) {
			p.leaked = append(p.leaked, name)
		}
	}
	if value != "" {
		p.responses++
	}
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Etag", fmt.Sprintf("%q", hex.EncodeToString([]byte(value))+r.URL.Path))
	w.Header().Set("X-Echo", value)
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasPrefix(r.URL.Path, "/fails"):
		w.WriteHeader(http.StatusTeapot)
	case strings.HasPrefix(r.URL.Path, "/broken"):
		w.Header().Set("Content-Encoding", value)
	}
	echo := []string{"Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+value)), base64.RawURLEncoding.EncodeToString([]byte(value)), url.QueryEscape(value), hex.EncodeToString([]byte(value))}
	_ = json.NewEncoder(w).Encode(map[string]any{"id": "new", "echo": echo, "raw": []byte(value), value: 1})
}

// TestCanariesThroughTheCommand plants 50 values where the command takes secrets from,
// lets services repeat some of them and programs look for all of them, and searches
// every byte that any command wrote: answers, reports, logs, the journal also while it
// is written to, and what programs wrote.
func TestCanariesThroughTheCommand(t *testing.T) {
	workspace, state := testPlace(t)
	p := &echoServers{t: t, state: state}
	dir := filepath.Dir(workspace)
	secrets, credentials, allow, calls := map[string]string{}, []any{}, []string{}, []any{}
	var script strings.Builder
	for i := range canaryCount {
		name := fmt.Sprintf("CANARY_%d", i)
		t.Setenv(name, canaryValue(i)) // programs are started from this very process
		secrets[strings.ToLower(name)] = "env:" + name
	}
	for i := range canaryServices {
		server := httptest.NewServer(http.HandlerFunc(p.serve))
		t.Cleanup(server.Close)
		secret := fmt.Sprintf("canary_%d", i)
		allow = append(allow, server.Listener.Addr().String())
		credentials = append(credentials, map[string]string{"origin": server.URL, "secret": secret, "header": "X-Key"})
		calls = append(calls, map[string]any{
			"name": fmt.Sprintf("make_%d", i), "description": "Make an item.", "method": "PUT", "url": server.URL + "/items/{id}", "secret": secret,
			"undo": map[string]any{"method": "PUT", "body": map[string]any{"gone": true}},
		})
		for _, path := range []string{"/whoami", "/fails", "/broken"} {
			_, _ = fmt.Fprintf(&script, "{\"tool\":\"http_fetch\",\"args\":{\"url\":%q}}\n", server.URL+path)
		}
		_, _ = fmt.Fprintf(&script, "{\"tool\":\"make_%d\",\"args\":{\"id\":\"a\"}}\n", i)
	}
	if hasSandbox() {
		script.WriteString(`{"tool":"shell_run","args":{"script":"env > env.txt; cat /proc/*/environ > environ.txt 2>/dev/null; cat /proc/1/mem > mem.txt 2>/dev/null; cat /proc/*/cmdline; env; kill -SEGV $$"}}` + "\n")
		script.WriteString(`{"tool":"process_run","args":{"argv":["env"]}}` + "\n")
	}
	services, policy := filepath.Join(dir, "services.json"), filepath.Join(dir, "p.rego")
	config, err := json.Marshal(map[string]any{"allow": allow, "secrets": secrets, "credentials": credentials, "calls": calls})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(services, config, 0o600))
	require.NoError(t, os.WriteFile(policy, []byte("package remit\nallow contains \"everything\"\n"), 0o600))
	written := map[string][]byte{}
	command := func(args ...string) string {
		var out, errs bytes.Buffer
		w := testEnv(strings.NewReader(script.String()), &out, &errs)
		w.Getenv = os.Getenv
		code := run(t.Context(), args, w)
		written["remit "+strings.Join(args, " ")] = fmt.Appendf(nil, "%d %s %s", code, out.String(), errs.String())
		return out.String()
	}
	reach := []string{"--state", state, "--services", services}
	var txns []string
	explained := 0
	for _, how := range [][]string{{"--json"}, nil} {
		at := append(append([]string{"run", "--workspace", workspace, "--policy", policy, "--at-end", "leave-open", "--keep-going", "-"}, reach...), how...)
		for l := range strings.Lines(command(at...)) {
			var a struct{ Call, Txn string }
			if json.Unmarshal([]byte(l), &a) != nil {
				continue
			}
			if a.Call == "" {
				txns = append(txns, a.Txn)
				continue
			}
			command("show", "--state", state, a.Call)
			if explained++; explained < 6 {
				command("policy", "explain", "--state", state, a.Call)
			}
		}
	}
	require.Len(t, txns, 1)
	for _, args := range [][]string{{"log", "--state", state}, {"log", "--json", "--state", state}, {"show", txns[0], "--state", state}, {"show", "--json", txns[0], "--state", state}, {"diff", txns[0], "--state", state}, {"doctor"}} {
		command(args...)
	}
	for _, verb := range [][]string{{"recover"}, {"revert", "--preview", txns[0]}, {"revert", txns[0]}, {"redo", txns[0]}, {"revert", "--force", "--by", "me", txns[0]}} {
		command(append(verb, reach...)...)
	}
	command("fsck", "--state", state)
	for _, place := range []string{state, workspace} {
		for name, data := range filesOf(t, place) {
			written[name] = data
		}
	}
	require.Empty(t, leaks(written))
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Empty(t, p.leaked)
	require.True(t, p.wal, "the journal's log was looked into too")
	require.Greater(t, p.responses, 4*canaryServices, "the services knew the values")
	require.Contains(t, string(written["remit log --state "+state]), "make_0")
}
