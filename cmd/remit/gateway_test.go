//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// TestGateway: a client writes through remit with another server, which is remit too; what it did is taken back by a command that
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
	r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "in__file_write", Arguments: map[string]any{"path": "a.txt", "content": "x"}})
	require.NoError(t, err)
	require.False(t, r.IsError, "%+v", r.Content)
	require.FileExists(t, filepath.Join(inner, "a.txt"))
	txn, ok := r.Meta["remit.dev/txn"].(string)
	require.True(t, ok)
	require.NoError(t, cs.Close())

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
	out := run("gateway", "accept", "in/file_read", "--config", config, "--workspace", workspace, "--state", state)
	require.Contains(t, out, "accepted in/file_read: it is new")
	require.Contains(t, out, `"name": "file_read"`)
	for _, bad := range [][]string{{"gateway"}, {"init"}, {"gateway", "accept", "nobody", "--config", config, "--state", state}, {"gateway", "--config", "/nowhere"}} {
		require.Error(t, exec.Command(remit, bad...).Run(), "%v", bad)
	}
}
