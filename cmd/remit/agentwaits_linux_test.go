package main

import (
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/cmd/remit/internal/approval"
)

// killDaemon ends the resident process at once.
func (p *agentPlace) killDaemon() {
	p.t.Helper()
	pid := p.daemon()
	require.NotZero(p.t, pid)
	fd, err := unix.PidfdOpen(pid, 0)
	require.NoError(p.t, err)
	require.NoError(p.t, unix.PidfdSendSignal(fd, syscall.SIGKILL, nil, 0))
	for {
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1); err == nil {
			break
		}
	}
	require.NoError(p.t, unix.Close(fd))
}

// TestApprovalSurvivesTheDaemon kills the resident process between a question,
// its approval and the repeated call, in a client without questions.
func TestApprovalSurvivesTheDaemon(t *testing.T) {
	p := newAgentPlace(t)
	c := p.client()
	use := func(id string) string {
		members := toolUse(id, "Write", map[string]any{"file_path": filepath.Join(p.project, ".mcp.json"), "content": "{}"})
		members["permission_mode"] = "bypassPermissions"
		return c.sends(p.event("s1", "PreToolUse", members))
	}
	said := use("u1")
	require.Contains(t, said, "a person must approve it")
	call := regexp.MustCompile(`c_[a-z0-9]+`).FindString(said)
	p.killDaemon()
	states, err := filepath.Glob(p.at("state/remit/project-*"))
	require.NoError(t, err)
	require.Len(t, states, 1)
	require.NoError(t, approval.WriteSettings(states[0], approval.Settings{Unattended: true})) // the test has no terminal
	code, out := p.person("approve", call)
	require.Zero(t, code, out)
	require.Contains(t, out, "it runs when the agent repeats it")
	c.sends(p.event("s1", "UserPromptSubmit", map[string]any{"prompt": "it is approved", "prompt_id": "p2"}))
	p.killDaemon()
	require.Contains(t, use("u2"), `"permissionDecision":"allow"`)
	require.NoError(t, os.WriteFile(filepath.Join(p.project, ".mcp.json"), []byte("{}"), 0o600))
	c.sends(p.event("s1", "PostToolUse", toolUse("u2", "Write", map[string]any{})))
	p.killDaemon()
	said = use("u3")
	require.Contains(t, said, "a person must approve it")
	require.NotContains(t, said, call, "one approval is for one call")
	code, out = p.person("show", call)
	require.Zero(t, code, out)
	require.Contains(t, out, "done")
}
