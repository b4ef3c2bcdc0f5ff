package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// fromNPM is the folder in which .ci/mcp-servers has installed clients and servers of the protocol.
func fromNPM(t *testing.T) (modules string) {
	dir := os.Getenv("REMIT_MCP_SERVERS")
	if dir == "" {
		t.Skip("needs programs from npm: .ci/mcp-servers installs them, and runs this")
	}
	return filepath.Join(dir, "node_modules")
}

// realPlace is a workspace with a gateway's configuration, in which server-memory is pure for the one tool that is called.
func realPlace(t *testing.T, modules string) (dir string, flags map[string][]string) {
	dir = t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "ws"), 0o755))
	memory, err := json.Marshal(memoryServer(modules, dir))
	require.NoError(t, err)
	config := fmt.Sprintf(`{"mcpServers": {"memory": %s}, "remit": {"servers": {"memory": {"tools": {"read_graph": {"effectClass": "pure"}}}}}}`, memory)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gateway.json"), []byte(config), 0o600))
	place := []string{"--workspace", filepath.Join(dir, "ws"), "--state"}
	return dir, map[string][]string{
		"serve":   append(append([]string{"serve"}, place...), filepath.Join(dir, "serve")),
		"gateway": append(append([]string{"gateway", "--config", filepath.Join(dir, "gateway.json")}, place...), filepath.Join(dir, "gateway")),
	}
}

func memoryServer(modules, dir string) map[string]any {
	return map[string]any{
		"command": filepath.Join(modules, "node", "bin", "node"),
		"args":    []string{filepath.Join(modules, "@modelcontextprotocol", "server-memory", "dist", "index.js")},
		"env":     map[string]string{"MEMORY_FILE_PATH": filepath.Join(dir, "memory.jsonl")},
	}
}

// TestInspector: the protocol's Inspector lists and calls what there is, in both ways of the protocol, over standard streams and
// HTTP, at the server and at the gateway.
func TestInspector(t *testing.T) {
	modules, remit := fromNPM(t), build(t)
	eras := map[string]string{"modern": revisions[0], "legacy": revisions[1]}
	for _, command := range []string{"serve", "gateway"} {
		for era, revision := range eras {
			t.Run(command+"/"+era, func(t *testing.T) {
				t.Parallel()
				dir, flags := realPlace(t, modules)
				own := exec.Command(remit, flags[command]...)
				cs := joinAs(t, revision, &sdk.CommandTransport{Command: own})
				if command == "gateway" { // which answers before its server does: a call waits for that
					_, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "memory__read_graph", Arguments: map[string]any{}})
					require.NoError(t, err)
				}
				want := listedBy(t, cs)
				require.NoError(t, cs.Close())

				// In a script, since the Inspector takes flags of the command for its own.
				script := filepath.Join(dir, "run")
				text := fmt.Sprintf("#!/bin/sh\nexec '%s' '%s'\n", remit, strings.Join(flags[command], "' '"))
				require.NoError(t, os.WriteFile(script, []byte(text), 0o700))
				inspected(t, modules, era, command, want, []string{script})

				_, url, token := serving(t, remit, flags[command]...)
				inspected(t, modules, era, command, want, []string{"--transport", "http", "--server-url", url, "--header", "Authorization: Bearer " + token})
			})
		}
	}
}

// inspected holds what the Inspector says against what there is.
func inspected(t *testing.T, modules, era, command string, want []listedTool, target []string) {
	var list struct{ Tools []listedTool }
	inspect(t, modules, era, target, &list, "--method", "tools/list")
	require.Equal(t, want, list.Tools)

	name, args, says := "file_write", `{"path":"a.txt","content":"hello"}`, "wrote 5 bytes"
	if command == "gateway" {
		name, args, says = "memory__read_graph", `{}`, `"entities"`
	}
	var r result
	inspect(t, modules, era, target, &r, "--method", "tools/call", "--tool-name", name, "--tool-args-json", args)
	require.False(t, r.IsError)
	require.Contains(t, r.Content[0].Text, says)
	require.Equal(t, "done", r.Meta.Status)
}

// listedTool is what both clients say of a tool.
type listedTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	InputSchema any    `json:"inputSchema"`
	Annotations any    `json:"annotations"`
}

func listedBy(t *testing.T, cs *sdk.ClientSession) (all []listedTool) {
	t.Helper()
	list, err := cs.ListTools(t.Context(), nil)
	require.NoError(t, err)
	raw, err := json.Marshal(list.Tools)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &all))
	require.Greater(t, len(all), 4)
	return all
}

// inspect runs the Inspector once.
func inspect(t *testing.T, modules, era string, target []string, into any, what ...string) {
	t.Helper()
	main := filepath.Join(modules, ".bin", "mcp-inspector")
	args := append(append([]string{main, "--cli", "--protocol-era", era}, target...), what...)
	cmd := exec.Command(filepath.Join(modules, "node", "bin", "node"), args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + filepath.Join(modules, "node", "bin") + ":" + os.Getenv("PATH")}
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Logf("%s", exit.Stderr)
	}
	require.NoError(t, err, "%s", out)
	require.NoError(t, json.Unmarshal(out, into), "%s", out)
}

// TestRealClients: after remit connect, Claude Code and Codex themselves see the gateway in the place of the server that they had, and
// Claude Code reaches it; after remit disconnect they see the server again. They have a home of their own and no network.
func TestRealClients(t *testing.T) {
	modules, remit := fromNPM(t), build(t)
	home := t.TempDir()
	server := memoryServer(modules, home)
	claude, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"memory": server}})
	require.NoError(t, err)
	args, err := json.Marshal(server["args"])
	require.NoError(t, err)
	codex := fmt.Sprintf("[mcp_servers.memory]\ncommand = %q\nargs = %s\nenv = { MEMORY_FILE_PATH = %q }\n", server["command"], args, filepath.Join(home, "memory.jsonl"))
	require.NoError(t, os.Mkdir(filepath.Join(home, ".codex"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".claude.json"), claude, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".codex", "config.toml"), []byte(codex), 0o600))
	project := t.TempDir()
	run := func(program string, args ...string) string {
		t.Helper()
		alone := append([]string{"-rn", "sh", "-c", `ip link set lo up && exec "$@"`, "sh", program}, args...)
		cmd := exec.Command("unshare", alone...)
		cmd.Dir, cmd.Env = project, []string{"HOME=" + home, "PATH=" + filepath.Join(modules, "node", "bin") + ":" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s %v: %s", program, args, out)
		return string(out)
	}
	list := map[string]func() string{
		"claude-code": func() string { return run(filepath.Join(modules, ".bin", "claude"), "mcp", "list") },
		"codex":       func() string { return run(filepath.Join(modules, ".bin", "codex"), "mcp", "list") },
	}
	for client, says := range list {
		before := says()
		require.Contains(t, before, "memory", client)
		run(remit, "connect", client)
		connected := says()
		require.Contains(t, connected, "remit", client)
		require.Contains(t, connected, "gateway --config", client)
		require.NotContains(t, connected, "server-memory", client)
		if client == "claude-code" {
			require.Contains(t, connected, "Connected", "it starts the gateway and speaks to it")
			require.NotContains(t, connected, "Failed")
		}
	}
	for client, says := range list {
		run(remit, "disconnect", client)
		require.Contains(t, says(), "server-memory", client)
	}
}
