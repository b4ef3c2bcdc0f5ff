package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

// TestServersThatCanBeUndone is the second quick start: a client's servers come behind the gateway, drafts say what is known of them, the
// person at the client is asked before one writes in the workspace, and what it wrote is reverted.
func TestServersThatCanBeUndone(t *testing.T) {
	remit := build(t)
	home, workspace := t.TempDir(), t.TempDir()
	inner := filepath.Join(home, "inner")
	args, err := json.Marshal([]string{"serve", "--workspace", workspace, "--state", inner, "--session", filepath.Join(home, "session")})
	require.NoError(t, err)
	config := filepath.Join(home, ".claude.json")
	require.NoError(t, os.WriteFile(config, []byte(fmt.Sprintf(`{"mcpServers": {"notes": {"command": %q, "args": %s}}}`, remit, args)), 0o600))
	env := append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=")
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(remit, args...)
		cmd.Dir, cmd.Env = workspace, env
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	said := run("connect", "claude-code", "--init")
	require.Regexp(t, `drafted [1-9]\d* entries in `, said)
	require.NotContains(t, said, "remit init", "there is no next step")

	raw, err := os.ReadFile(config)
	require.NoError(t, err)
	var client struct {
		Servers map[string]struct {
			Command string
			Args    []string
			Env     map[string]string
		} `json:"mcpServers"`
	}
	require.NoError(t, json.Unmarshal(raw, &client))
	require.Len(t, client.Servers, 1)
	asked := 0
	for _, s := range client.Servers {
		cmd := exec.Command(s.Command, s.Args...)
		cmd.Dir, cmd.Env, cmd.Stderr = workspace, env, os.Stderr
		for name, value := range s.Env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		person := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			asked++
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
		}})
		cs, err := person.Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
		require.NoError(t, err)
		r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "notes__file_write", Arguments: map[string]any{"path": "a.txt", "content": "x"}})
		require.NoError(t, err)
		text, err := json.Marshal(r.Content)
		require.NoError(t, err)
		require.False(t, r.IsError, "%s", text)
		require.NoError(t, cs.Close())
	}
	require.NotZero(t, asked)
	require.FileExists(t, filepath.Join(workspace, "a.txt"))
	cmd := exec.Command(remit, "revert", "--last")
	cmd.Dir, cmd.Env = workspace, env
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, int(cli.ExitPartial), cmd.ProcessState.ExitCode(), "%s", out)
	require.Contains(t, string(out), "unknown")
	require.Contains(t, string(out), "its effects elsewhere, or on masked files there, are unknown")
	require.NoFileExists(t, filepath.Join(workspace, "a.txt"))
	require.Contains(t, run("revert", "--last"), "there is nothing to revert")
	require.Contains(t, run("show", regexp.MustCompile(`t_\w+`).FindString(string(out))), "observed in workspace, unknown elsewhere")
}
