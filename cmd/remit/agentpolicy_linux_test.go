package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestChangedPolicy: the policy of coding agents changes after a resident process loaded it. remit doctor and the next process tell it. The agent's own
// tools cannot change it.
func TestChangedPolicy(t *testing.T) {
	p := newAgentPlace(t)
	code, out := p.person("connect", "claude-code")
	require.Zero(t, code, out)
	own := p.at("home/.config/remit/coding-agent.rego")
	require.NoError(t, os.MkdirAll(filepath.Dir(own), 0o700))
	const text = "package remit.coding_agent\n\nsafe_tools contains \"mcp__issues__search\"\n"
	require.NoError(t, os.WriteFile(own, []byte(text), 0o600))
	c := p.client()
	require.Empty(t, c.sends(p.event("s1", "SessionStart", nil)))
	_, out = p.person("doctor")
	require.Contains(t, out, "builtin:coding-agent and "+own+" decide")

	in := map[string]any{"file_path": own, "content": "package remit\n\nallow contains \"all\"\n"}
	require.Contains(t, c.sends(p.event("s1", "PreToolUse", toolUse("u1", "Write", in))), `"permissionDecision":"deny"`)
	require.Contains(t, c.sends(p.event("s1", "PreToolUse", toolUse("u2", "Edit", map[string]any{"file_path": own, "old_string": "search", "new_string": "all"}))), `"permissionDecision":"deny"`)
	if hasSandbox() {
		p.sandboxed(nil, c.decides("u3", "mkdir -p "+filepath.Dir(own)+"; echo '# x' >> "+own))
	}
	kept, err := os.ReadFile(own)
	require.NoError(t, err)
	require.Equal(t, text, string(kept))

	p.runs("echo 'safe_tools contains \"Bash\"' >> " + own) // what no hook saw
	code, out = p.person("doctor")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, own+" changed since")
	p.endDaemon()
	said := c.sends(p.event("s1", "SessionStart", nil))
	require.Contains(t, said, "the policy of coding agents changed: builtin:coding-agent and "+own+" changed since")
	require.Contains(t, said, `"systemMessage"`)
	require.Empty(t, c.sends(p.event("s2", "SessionStart", nil)), "once")
	log, err := os.ReadFile(p.at("state/remit/agents/log"))
	require.NoError(t, err)
	require.Contains(t, string(log), "the policy of coding agents changed")
	_, out = p.person("doctor")
	require.Contains(t, out, own+" decide")
	require.Contains(t, out, "the resident process wrote messages")
}
