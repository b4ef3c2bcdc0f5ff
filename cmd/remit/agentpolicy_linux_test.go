package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// TestOwnPolicyTakesEffect: the policy changes while the resident process runs. It decides from the next session on, and the person is told. A policy that
// does not load denies new sessions, and those that run keep theirs. remit doctor says what is so.
func TestOwnPolicyTakesEffect(t *testing.T) {
	p := newAgentPlace(t)
	own := p.at("home/.config/remit/coding-agent")
	require.NoError(t, os.MkdirAll(own, 0o700))
	write := func(text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(own, "p.rego"), []byte("package remit\n\nallow contains \"all\" if true\n"+text), 0o600))
	}
	write("broken {{")
	code, out := p.person("doctor")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "the policy of coding agents does not load", "no client is connected")
	write("")
	code, out = p.person("connect", "claude-code")
	require.Zero(t, code, out)
	_, out = p.person("doctor")
	require.Contains(t, out, own+" decides")

	c := p.client()
	uses := 0
	does := func(session string) string {
		t.Helper()
		uses++
		use := fmt.Sprint("u", uses)
		in := map[string]any{"file_path": filepath.Join(p.project, use), "content": "x"}
		said := c.sends(p.event(session, "PreToolUse", toolUse(use, "Write", in)))
		if strings.Contains(said, `"permissionDecision":"allow"`) {
			require.NoError(t, os.WriteFile(filepath.Join(p.project, use), []byte("x"), 0o600))
			c.sends(p.event(session, "PostToolUse", toolUse(use, "Write", in)))
		}
		return said
	}
	require.Empty(t, c.sends(p.event("s1", "SessionStart", nil)))
	require.Contains(t, does("s1"), `"permissionDecision":"allow"`)
	process := p.daemon()
	for range 3 { // each asks who listens
		_, out = p.person("doctor")
		require.NotContains(t, out, "the resident process wrote messages")
	}

	write("deny contains \"no writes\" if input.access.action == \"write\"\n")
	code, out = p.person("doctor")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "the change takes effect at the next session of an agent")
	require.NotContains(t, out, "in force")
	require.Contains(t, does("s1"), `"permissionDecision":"allow"`, "no session began")
	require.Contains(t, c.sends(p.event("s2", "SessionStart", nil)), "the policy of coding agents changed: "+own+" changed since")
	require.Contains(t, does("s2"), "no writes")
	require.Contains(t, does("s1"), "no writes", "the sessions of a process share its policy")
	_, out = p.person("doctor")
	require.Contains(t, out, own+" decides")

	write("")
	require.Contains(t, does("s3"), `"permissionDecision":"allow"`, "a session that begins without a start event")
	write("broken {{")
	code, out = p.person("doctor")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "sessions that already run keep the earlier policy")
	said := c.sends(p.event("s4", "SessionStart", nil))
	require.Contains(t, said, `"systemMessage"`)
	require.Contains(t, said, "remit policy check "+own)
	said = does("s4")
	require.Contains(t, said, `"permissionDecision":"deny"`)
	require.Contains(t, said, own+"/p.rego:")
	require.NotContains(t, said, "remit approve")
	require.Contains(t, does("s1"), `"permissionDecision":"allow"`)
	write("deny contains \"mended\" if input.access.action == \"write\"\n")
	require.Contains(t, does("s4"), "mended")
	require.Equal(t, process, p.daemon(), "one process did all this")
}
