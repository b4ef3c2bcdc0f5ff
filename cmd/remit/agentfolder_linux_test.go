package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFolderMadeAgain: the folder of a project is deleted and made again while a session works in it. The session says what helps, and a new one works.
func TestFolderMadeAgain(t *testing.T) {
	p := newAgentPlace(t)
	writes := p.writer()
	require.Contains(t, writes("s1", "u1"), `"permissionDecision":"allow"`)
	require.NoError(t, os.Rename(p.project, p.at("old"))) // its inode stays in use, so that the new folder has another one
	require.Contains(t, writes("s1", "u2"), "no such file or directory")
	require.NoError(t, os.Mkdir(p.project, 0o700))
	for _, use := range []string{"u3", "u4"} {
		said := writes("s1", use)
		require.Contains(t, said, `"permissionDecision":"deny"`)
		require.Contains(t, said, "A person must begin a new session of the agent")
		require.NotContains(t, said, "A retry may help")
	}
	require.Contains(t, writes("s2", "u5"), `"permissionDecision":"allow"`)
	p.endDaemon()
	require.Contains(t, writes("s1", "u6"), "A person must begin a new session of the agent", "another process knows it, too")
	require.Contains(t, writes("s2", "u7"), `"permissionDecision":"allow"`)
}

// writer lets the agent do anything, and returns what the hook answers before a session writes a file.
func (p *agentPlace) writer() func(session, use string) string {
	p.t.Helper()
	own := p.at("home/.config/remit/coding-agent")
	require.NoError(p.t, os.MkdirAll(own, 0o700))
	require.NoError(p.t, os.WriteFile(filepath.Join(own, "p.rego"), []byte("package remit\n\nallow contains \"all\" if true\n"), 0o600))
	c := p.client()
	return func(session, use string) string {
		p.t.Helper()
		return c.sends(p.event(session, "PreToolUse", toolUse(use, "Write", map[string]any{"file_path": filepath.Join(p.project, use), "content": "x"})))
	}
}
