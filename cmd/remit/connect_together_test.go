//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/gateway"
)

// TestConnectTogether connects several clients at once, each by a process of its own, and disconnects them at once: none loses what
// another one did, what two of them share is there until the last is gone, and in the end all is as it was.
func TestConnectTogether(t *testing.T) {
	remit := build(t)
	shared := `"shared": {"command": "s"}`
	files := map[string]string{
		".cursor/mcp.json":                          fmt.Sprintf(`{"mcpServers": {%s, "of-cursor": {"command": "a"}}}`, shared),
		".claude.json":                              fmt.Sprintf(`{"mcpServers": {%s, "of-claude": {"command": "b"}}}`, shared),
		".codeium/windsurf/mcp_config.json":         fmt.Sprintf(`{"mcpServers": {%s, "of-windsurf": {"command": "c"}}}`, shared),
		".codex/config.toml":                        "[mcp_servers.shared]\ncommand = \"s\"\n\n[mcp_servers.of-codex]\ncommand = \"d\"\n",
		".config/Code/User/mcp.json":                fmt.Sprintf(`{"servers": {%s, "of-code": {"command": "e"}}}`, shared),
		".config/Claude/claude_desktop_config.json": fmt.Sprintf(`{"mcpServers": {%s, "of-desktop": {"command": "f"}}}`, shared),
	}
	for round := range 6 {
		home := t.TempDir()
		for name, text := range files {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(home, name), []byte(text), 0o600))
		}
		all := func(verb string) {
			var at sync.WaitGroup
			for _, client := range gateway.ClientNames() {
				at.Go(func() {
					cmd := exec.Command(remit, verb, client)
					if verb == "connect" {
						cmd.Args = append(cmd.Args, "--workspace", home) // one of them wants to be told
					}
					cmd.Dir, cmd.Env = t.TempDir(), []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
					if out, err := cmd.CombinedOutput(); err != nil {
						t.Errorf("round %d: %s %s: %v: %s", round, verb, client, err, out)
					}
				})
			}
			at.Wait()
		}
		all("connect")
		var gateway struct{ McpServers map[string]any }
		text, err := os.ReadFile(filepath.Join(home, ".config/remit/gateway.json"))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &gateway))
		require.Equal(t, []string{"of-claude", "of-code", "of-codex", "of-cursor", "of-desktop", "of-windsurf", "shared"},
			slices.Sorted(maps.Keys(gateway.McpServers)), "round %d", round)
		all("disconnect")
		for name, text := range files {
			got, err := os.ReadFile(filepath.Join(home, name))
			require.NoError(t, err)
			require.Equal(t, text, string(got), "round %d", round)
		}
		require.NoFileExists(t, filepath.Join(home, ".config/remit/gateway.json"), "round %d", round)
	}
}
