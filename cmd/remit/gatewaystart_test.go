//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// TestServerThatHangs: of three servers one hangs and one ends at once. The client is answered while the one hangs, the good one is used,
// also in a session that began before it was there, and a call of the other says which server is not there, and why.
func TestServerThatHangs(t *testing.T) {
	remit := build(t)
	workspace, state := testPlace(t)
	inner, innerState := testPlace(t)
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	require.NoError(t, os.WriteFile(filepath.Join(inner, "a.txt"), []byte("hello"), 0o600))
	config, allow := filepath.Join(dir, "gateway.json"), filepath.Join(dir, "allow.rego")
	require.NoError(t, os.WriteFile(allow, []byte("package remit\n\nallow contains \"all\" if true\n"), 0o600))
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `{"mcpServers": {
		"hang": {"command": "sh", "args": ["-c", "echo $$ > %[1]s.new && mv %[1]s.new %[1]s && while read x; do :; done"]},
		"gone": {"command": "sh", "args": ["-c", "echo there is no key >&2"]},
		"in": {"command": %[2]q, "args": ["serve", "--workspace", %[3]q, "--state", %[4]q]}
	}}`, pid, remit, inner, innerState), 0o600))

	cmd := exec.Command(remit, "gateway", "--config", config, "--policy", allow, "--workspace", workspace, "--state", state)
	cs := joinAs(t, "2025-11-25", &sdk.CommandTransport{Command: cmd})
	defer func() { require.NoError(t, cs.Close()) }()
	call := func(name string, args map[string]any) (string, bool) {
		t.Helper()
		r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
		require.NoError(t, err)
		text := ""
		for _, c := range r.Content {
			if part, ok := c.(*sdk.TextContent); ok {
				text += part.Text
			}
		}
		return text, r.IsError
	}
	text, failed := call("in__file_read", map[string]any{"path": "a.txt"})
	require.False(t, failed, text)
	require.Contains(t, text, "hello")
	text, failed = call("gone__x", nil)
	require.True(t, failed)
	require.Contains(t, text, "The call did not begin, and had no effect: server gone ")
	require.Contains(t, text, "it ended before it answered; it wrote: there is no key")
	tools, err := cs.ListTools(t.Context(), nil)
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(toolNames(tools)), "in__file_read")

	awaitFile(t, pid)
	raw, err := os.ReadFile(pid)
	require.NoError(t, err)
	n, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(n, 0), "it hangs still")
}

func toolNames(r *sdk.ListToolsResult) (names []string) {
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	return names
}

// TestServersOfAKilledGateway: a server that ignores the end of its input, and that it is asked to end, does not outlive a gateway that was
// killed; nor does what it started.
func TestServersOfAKilledGateway(t *testing.T) {
	remit := build(t)
	workspace, state := testPlace(t)
	dir := t.TempDir()
	alive, config := filepath.Join(dir, "alive"), filepath.Join(dir, "gateway.json")
	require.NoError(t, syscall.Mkfifo(alive, 0o600))
	stubborn := `trap "" TERM HUP; exec 3>` + alive + `; echo there; (while :; do sleep 60; done) & while :; do sleep 60; done`
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `{"mcpServers": {"s": {"command": "sh", "args": ["-c", %q]}}}`, stubborn), 0o600))
	cmd := exec.Command(remit, "gateway", "--config", config, "--workspace", workspace, "--state", state)
	in, err := cmd.StdinPipe() // it waits for a client
	require.NoError(t, err)
	defer func() { _ = in.Close() }()
	said, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	f, err := os.Open(alive) // when the server has opened it too
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	lines := bufio.NewScanner(said)
	for lines.Scan() && !strings.Contains(lines.Text(), "line=there") { // which the gateway reads once it has the server
	}
	require.NoError(t, lines.Err())
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	_, err = io.ReadAll(f) // until all that has it open has ended
	require.NoError(t, err)
}
