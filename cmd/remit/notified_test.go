//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// TestServersTellOfWaitingCalls checks that the server and the gateway tell
// people of a pending call on standard error and by --notify, and that the
// client gets no command that approves it.
func TestServersTellOfWaitingCalls(t *testing.T) {
	remit := build(t)
	inner, innerState := testPlace(t)
	config := filepath.Join(t.TempDir(), "gateway.json")
	args, err := json.Marshal([]string{"serve", "--workspace", inner, "--state", innerState})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `{"mcpServers": {"in": {"command": %q, "args": %s}}}`, remit, args), 0o600))
	policy := filepath.Join(t.TempDir(), "ask.rego")
	require.NoError(t, os.WriteFile(policy, []byte("package remit\n\nask contains \"look\" if true\n"), 0o600))
	for name, tt := range map[string]struct {
		command []string
		tool    string
	}{
		"serve":   {[]string{"serve"}, "file_write"},
		"gateway": {[]string{"gateway", "--config", config}, "in__file_write"},
	} {
		t.Run(name, func(t *testing.T) {
			workspace, state := testPlace(t)
			file := filepath.Join(t.TempDir(), "told")
			var errs bytes.Buffer
			cmd := exec.Command(remit, append(tt.command, "--policy", policy, "--on-ask", "wait", "--workspace", workspace, "--state", state,
				"--notify", `echo "$REMIT_CALL $REMIT_TOOL" > "$TOLD"`)...)
			cmd.Stderr, cmd.Env = &errs, append(os.Environ(), "TOLD="+file)
			cs := joinAs(t, "2025-11-25", &sdk.CommandTransport{Command: cmd})
			r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: tt.tool, Arguments: map[string]any{"path": "a.txt", "content": "x"}})
			require.NoError(t, err)
			call, _ := r.Meta["remit.dev/call"].(string)
			text, err := json.Marshal(r)
			require.NoError(t, err)
			require.NotContains(t, string(text), "remit approve")
			require.NotContains(t, string(text), state)
			require.NoError(t, cs.Close()) // the command has ended, and so has the notified program
			told, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, call+" "+tt.tool+"\n", string(told))
			require.Contains(t, errs.String(), "asks to run "+tt.tool+": call "+call+" waits for approval")
			require.Contains(t, errs.String(), "remit pending "+call)
		})
	}
}
