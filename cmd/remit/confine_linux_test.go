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

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/mcp/gateway/config"
)

// writerScript is a server whose one tool writes a file into the folder that it is started with. It reads no JSON: it looks for what
// the messages that it knows hold.
const writerScript = `
while read -r line; do
	id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
	case "$line" in
	*'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"writer","version":"1"}}' ;;
	*'"tools/list"'*) result='{"tools":[{"name":"put","inputSchema":{"type":"object"}}]}' ;;
	*'"tools/call"'*) echo written > "$1/put.txt" && result='{"content":[{"type":"text","text":"put"}]}' ;;
	*) [ -n "$id" ] && printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"there is no such method"}}\n' "$id"; continue ;;
	esac
	printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
`

// TestDraftedSandbox: init --sandbox drafts the sandbox of a server that starts in one, so that what it wrote is known and reverted.
// Of the others it says why they got none, and they are drafted as before.
func TestDraftedSandbox(t *testing.T) {
	if !hasSandbox() {
		t.Skip("this machine has no sandbox of the level strict")
	}
	remit := build(t)
	workspace, state := testPlace(t)
	dir := t.TempDir()
	file, script, other := filepath.Join(dir, "gateway.json"), filepath.Join(dir, "writer.sh"), filepath.Join(dir, "other")
	require.NoError(t, os.WriteFile(script, []byte(writerScript), 0o600))
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `{"mcpServers": {
		"writer": {"command": "sh", "args": [%[1]q, %[2]q]},
		"outside": {"command": "sh", "args": ["-c", "cat %[3]s >&2 && exec sh %[1]s %[2]s"]},
		"edited": {"command": "sh", "args": [%[1]q, %[2]q]},
		"gone": {"command": "nosuch"}
	}, "remit": {"servers": {"edited": {"tools": {"put": {"effectClass": "pivot"}}}}}}`, script, workspace, other), 0o600))
	at := []string{"--config", file, "--workspace", workspace, "--state", state}
	run := func(want int, args ...string) (out, errs string) {
		t.Helper()
		var o, e strings.Builder
		cmd := exec.Command(remit, args...)
		cmd.Stdout, cmd.Stderr = &o, &e
		_ = cmd.Run()
		require.Equal(t, want, cmd.ProcessState.ExitCode(), "%s%s", &o, &e)
		return o.String(), e.String()
	}
	out, errs := run(int(cli.ExitInternal), append([]string{"init", "--sandbox", "--write"}, at...)...)
	require.Contains(t, out, "drafted 2 entries and the sandbox of 1 server in ")
	require.Contains(t, errs, "server outside gets no sandbox\n     why   it does not start there: it ended before it answered; it wrote: cat: "+other)
	require.Contains(t, errs, "server edited gets no sandbox\n     why   the entry of its tool put is no draft any more")
	require.Equal(t, 1, strings.Count(errs, "remit: server gone "), errs)
	require.NotContains(t, errs, "server writer")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var written struct {
		Remit struct {
			Servers map[string]struct {
				Sandbox *config.Sandbox `json:"sandbox"`
			} `json:"servers"`
		} `json:"remit"`
	}
	require.NoError(t, json.Unmarshal(text, &written), "%s", text)
	servers := written.Remit.Servers
	require.Equal(t, &config.Sandbox{Roots: []string{"workspace"}, Readable: []string{script}}, servers["writer"].Sandbox)
	require.Nil(t, servers["outside"].Sandbox)
	require.Nil(t, servers["edited"].Sandbox)

	cs := joinAs(t, "2025-11-25", &sdk.CommandTransport{Command: exec.Command(remit, append([]string{"gateway"}, at...)...)})
	r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "writer__put", Arguments: map[string]any{}})
	require.NoError(t, err)
	require.False(t, r.IsError, "%+v", r.Content)
	require.FileExists(t, filepath.Join(workspace, "put.txt"))
	txn, ok := r.Meta["remit.dev/txn"].(string)
	require.True(t, ok)
	require.NoError(t, cs.Close())
	run(0, "revert", txn, "--workspace", workspace, "--state", state)
	require.NoFileExists(t, filepath.Join(workspace, "put.txt"))
}
