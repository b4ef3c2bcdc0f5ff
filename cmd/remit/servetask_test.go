//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/serve"
)

// TestServeTaskKilled: a call that waits is a task; the server is killed, somebody approves the call meanwhile, and the next server
// lets it run and has its result.
func TestServeTaskKilled(t *testing.T) {
	remit := build(t)
	workspace, state := testPlace(t)
	policy := filepath.Join(t.TempDir(), "p.rego")
	require.NoError(t, os.WriteFile(policy, []byte("package remit\nask contains \"it writes\" if input.tool.name == \"file_write\"\n"), 0o600))
	start := func() (*exec.Cmd, func(method, params string) map[string]any) {
		cmd, where, token := serving(t, remit, "serve", "--workspace", workspace, "--state", state, "--policy", policy, "--on-ask", "wait")
		return cmd, func(method, params string) map[string]any {
			return asTaskClient(t, where, token, method, params)
		}
	}
	first, ask := start()
	made := ask("tools/call", `"name":"file_write","arguments":{"path":"a.txt","content":"hi"}`)
	require.Equal(t, "task", made["resultType"], "%v", made)
	id, _ := made["taskId"].(string)
	require.Equal(t, "working", ask("tasks/get", `"taskId":"`+id+`"`)["status"])
	require.NoError(t, first.Process.Kill())
	_ = first.Wait()

	require.NoError(t, os.WriteFile(filepath.Join(state, "approval.json"), []byte(`{"unattended":true}`), 0o600)) // a test has no terminal
	said, err := exec.Command(remit, "approve", "--workspace", workspace, "--state", state, id).CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.NoFileExists(t, filepath.Join(workspace, "a.txt"))
	_, ask = start()
	is := ask("tasks/get", `"taskId":"`+id+`"`)
	for is["status"] == "working" {
		is = ask("tasks/get", `"taskId":"`+id+`"`)
	}
	require.Equal(t, "completed", is["status"], "%v", is)
	require.FileExists(t, filepath.Join(workspace, "a.txt"))
}

// TestServeAskedBefore: the person at the client was asked, and the server is started again to ask somebody else, or nobody: what the
// client answers by then approves nothing.
func TestServeAskedBefore(t *testing.T) {
	remit := build(t)
	workspace, state := testPlace(t)
	policy := filepath.Join(t.TempDir(), "p.rego")
	require.NoError(t, os.WriteFile(policy, []byte("package remit\nask contains \"it writes\" if input.tool.name == \"file_write\"\n"), 0o600))
	const call = `"name":"file_write","arguments":{"path":"a.txt","content":"hi"}`
	said := ""
	for _, how := range []string{"elicit", "wait", "deny", "elicit"} {
		cmd, where, token := serving(t, remit, "serve", "--workspace", workspace, "--state", state, "--policy", policy, "--on-ask", how)
		r := asTaskClient(t, where, token, "tools/call", call+said)
		if said == "" {
			require.Equal(t, "input_required", r["resultType"], "%v", r)
			sealed, _ := r["requestState"].(string)
			said = `,"requestState":"` + sealed + `","inputResponses":{"approval":{"action":"accept","content":{"approve":true}}}`
			how = "first"
		}
		file := filepath.Join(workspace, "a.txt")
		if how == "elicit" {
			require.FileExists(t, file, "%v", r)
		} else {
			require.NoFileExists(t, file, "%s: %v", how, r)
		}
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
	}
}

// asTaskClient sends one request of a client that knows tasks, and returns its result.
func asTaskClient(t *testing.T, url, token, method, params string) map[string]any {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + revisions[0] + `",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader([]byte(body)))
	require.NoError(t, err)
	for name, value := range map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": revisions[0], "Mcp-Method": method,
	} {
		req.Header.Set(name, value)
	}
	if method == "tools/call" {
		var of struct{ Name string }
		require.NoError(t, json.Unmarshal([]byte("{"+params+"}"), &of))
		req.Header.Set("Mcp-Name", of.Name)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	if _, event, ok := bytes.Cut(data, []byte("data: ")); ok {
		data = event
	}
	var answer struct {
		Result map[string]any `json:"result"`
	}
	require.NoError(t, json.NewDecoder(bytes.NewReader(data)).Decode(&answer), "%s", data)
	return answer.Result
}

// serving serves over HTTP, in a process of its own, until the test ends.
func serving(t *testing.T, remit string, args ...string) (cmd *exec.Cmd, url, token string) {
	cmd = exec.Command(remit, append(args[:len(args):len(args)], "--http", "127.0.0.1:0", "--json")...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(t, err)
	var where serve.Listening
	require.NoError(t, json.Unmarshal(line, &where))
	raw, err := os.ReadFile(where.TokenFile)
	require.NoError(t, err)
	return cmd, where.URL, strings.TrimSpace(string(raw))
}
