//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// TestGateway: a client writes through remit with another server, which is remit too; what it did is reverted by a command that
// starts the server anew, and finds the configuration by itself. A tool that the server changes is shown, and accepted.
func TestGateway(t *testing.T) {
	remit := build(t)
	workspace, state := testPlace(t)
	inner, innerState := testPlace(t)
	config := filepath.Join(t.TempDir(), "gateway.json")
	args, err := json.Marshal([]string{"serve", "--workspace", inner, "--state", innerState, "--session", filepath.Join(t.TempDir(), "session")})
	require.NoError(t, err)
	write := func(more string) {
		text := fmt.Sprintf(`{"mcpServers": {"in": {"command": %q, "args": %s}} /* mine */ %s}`, remit, args, more)
		require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	}
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(remit, args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	write("")
	require.Contains(t, run("init", "--config", config, "--workspace", workspace, "--state", state), `in/file_read {"draft":true,"effectClass":"pure"`)
	run("init", "--config", config, "--workspace", workspace, "--state", state, "--write")
	drafted, err := os.ReadFile(config)
	require.NoError(t, err)
	require.Contains(t, string(drafted), "/* mine */")
	require.Contains(t, string(drafted), `"file_read"`)

	allow := filepath.Join(t.TempDir(), "allow.rego")
	require.NoError(t, os.WriteFile(allow, []byte("package remit\n\nallow contains \"all\" if true\n"), 0o600))
	write(`, "remit": {"servers": {"in": {"tools": {"file_write": {
		"undo": {"compensate": {"tool": "txn_revert", "args": {"call": {"$from": "/output/_meta/remit.dev~1call"}}}}}}}}}`)
	cmd := exec.Command(remit, "gateway", "--config", config, "--policy", allow, "--workspace", workspace, "--state", state)
	cmd.Stderr = os.Stderr
	cs := joinAs(t, "2025-11-25", &sdk.CommandTransport{Command: cmd})
	for _, name := range allToolNames(t, cs) {
		require.True(t, strings.HasPrefix(name, "in__") || strings.HasPrefix(name, "txn_"), "%s is no tool of a server", name)
	}
	r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "shell_run", Arguments: map[string]any{"command": "touch ran"}})
	require.True(t, err != nil || r.IsError, "it is not served")
	require.NoFileExists(t, filepath.Join(workspace, "ran"))
	own := joinAs(t, "2025-11-25", &sdk.CommandTransport{Command: exec.Command(remit, "gateway", "--own-tools", "--config", config, "--policy", allow, "--workspace", workspace, "--state", t.TempDir())})
	_, err = own.CallTool(t.Context(), &sdk.CallToolParams{Name: "in__file_read", Arguments: map[string]any{"path": "none"}}) // which waits for the server
	require.NoError(t, err)
	require.Subset(t, allToolNames(t, own), []string{"shell_run", "file_write", "txn_begin", "in__file_write"})
	require.NoError(t, own.Close())
	r, err = cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "in__file_write", Arguments: map[string]any{"path": "a.txt", "content": "x"}})
	require.NoError(t, err)
	require.False(t, r.IsError, "%+v", r.Content)
	require.FileExists(t, filepath.Join(inner, "a.txt"))
	txn, ok := r.Meta["remit.dev/txn"].(string)
	require.True(t, ok)
	require.NoError(t, cs.Close())

	// Who approves a call of a server sees what it is given.
	ask := filepath.Join(t.TempDir(), "ask.rego")
	require.NoError(t, os.WriteFile(ask, []byte("package remit\n\nask contains \"look\" if true\n"), 0o600))
	waits := joinAs(t, "2025-11-25", &sdk.CommandTransport{Command: exec.Command(remit, "gateway", "--config", config, "--policy", ask, "--on-ask", "wait", "--workspace", workspace, "--state", state)})
	_, err = waits.CallTool(t.Context(), &sdk.CallToolParams{Name: "in__file_write", Arguments: map[string]any{"path": strings.Repeat("deep/", 100) + "b.txt", "content": "its content"}})
	require.NoError(t, err)
	require.NoError(t, waits.Close())
	require.Contains(t, run("pending", "--workspace", workspace, "--state", state), `input     {"content":"its content","path":"`+strings.Repeat("deep/", 100)+`b.txt"}`)

	run("revert", "--state", state, txn)
	require.NoFileExists(t, filepath.Join(inner, "a.txt"))

	require.Contains(t, run("gateway", "accept", "--config", config, "--workspace", workspace, "--state", state), "nothing is in quarantine")
	pins := filepath.Join(state, "mcp", "gateway-pins.json")
	raw, err := os.ReadFile(pins)
	require.NoError(t, err)
	var accepted struct {
		V       int `json:"v"`
		Servers map[string]struct {
			Identity string                     `json:"identity"`
			Tools    map[string]json.RawMessage `json:"tools"`
			Offers   bool                       `json:"offers"`
		} `json:"servers"`
	}
	require.NoError(t, json.Unmarshal(raw, &accepted))
	require.Contains(t, accepted.Servers["in"].Tools, "file_read")
	delete(accepted.Servers["in"].Tools, "file_read")
	raw, err = json.Marshal(accepted)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(pins, raw, 0o600))
	refused, err := exec.Command(remit, "gateway", "accept", "in/file_read", "--config", config, "--workspace", workspace, "--state", state).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(refused), "a person must approve, and an agent can be behind this command", "no terminal is here")
	require.NoError(t, os.WriteFile(filepath.Join(state, "approval.json"), []byte(`{"unattended": true}`), 0o600)) // as a person says it
	out := run("gateway", "accept", "in/file_read", "--config", config, "--workspace", workspace, "--state", state)
	require.Contains(t, out, "accepted in/file_read: it is new")
	require.Contains(t, out, `"name": "file_read"`)
	for _, bad := range [][]string{{"gateway"}, {"init"}, {"gateway", "accept", "nobody", "--config", config, "--state", state}, {"gateway", "--config", "/nowhere"}} {
		require.Error(t, exec.Command(remit, bad...).Run(), "%v", bad)
	}
}

// allToolNames are the names of all tools that a server lists.
func allToolNames(t *testing.T, cs *sdk.ClientSession) (names []string) {
	t.Helper()
	for one, err := range cs.Tools(t.Context(), nil) {
		require.NoError(t, err)
		names = append(names, one.Name)
	}
	return names
}
