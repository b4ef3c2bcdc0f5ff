package policyfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAgentPaths checks which policy a user's files make: a file extends the
// pack, a folder replaces it, and a file that does not load is an error.
func TestAgentPaths(t *testing.T) {
	home, pack := t.TempDir(), []string{"builtin:coding-agent"}
	t.Setenv("XDG_CONFIG_HOME", home)
	config := filepath.Join(home, "remit")
	require.NoError(t, os.Mkdir(config, 0o700))
	require.Equal(t, pack, AgentPaths())

	own := filepath.Join(config, "coding-agent.rego")
	require.NoError(t, os.WriteFile(own, []byte("package remit.coding_agent\n\nsafe_tools contains \"mcp__issues__search\"\n"), 0o600))
	paths := AgentPaths()
	require.Equal(t, []string{"builtin:coding-agent", own}, paths)
	_, err := Load(paths, false)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(own, []byte("package"), 0o600))
	_, err = Load(paths, false)
	require.Error(t, err)

	folder := filepath.Join(config, "coding-agent")
	require.NoError(t, os.Mkdir(folder, 0o700))
	require.Equal(t, []string{folder}, AgentPaths())
}

// TestChangedAgentPolicy: a policy of files that differs from the loaded one is
// a change, and another version of the pack is not.
func TestChangedAgentPolicy(t *testing.T) {
	home := t.TempDir()
	was, err := LoadedAgentPolicy(home)
	require.NoError(t, err)
	require.Zero(t, was)
	pack := AgentPolicy{Paths: []string{"builtin:coding-agent"}, Revision: "sha256:1"}
	require.Empty(t, pack.ChangedSince(was))
	newer := AgentPolicy{Paths: pack.Paths, Revision: "sha256:2"}
	require.Empty(t, newer.ChangedSince(pack))
	own := AgentPolicy{Paths: []string{"/c/coding-agent"}, Revision: "sha256:3"}
	require.Contains(t, own.ChangedSince(pack), "/c/coding-agent is in force, and builtin:coding-agent was")
	require.Contains(t, pack.ChangedSince(own), "builtin:coding-agent is in force")
	edited := AgentPolicy{Paths: own.Paths, Revision: "sha256:4"}
	require.Contains(t, edited.ChangedSince(own), "/c/coding-agent changed since")
	require.Empty(t, own.ChangedSince(own))
	require.Contains(t, own.WaitsSince(pack), "/c/coding-agent takes effect at the next session of an agent; builtin:coding-agent was loaded at")
	require.Contains(t, edited.WaitsSince(own), "the change takes effect at the next session")
	require.Empty(t, own.WaitsSince(own))
	require.NoError(t, os.MkdirAll(filepath.Dir(agentPolicyFile(home)), 0o700))
	require.NoError(t, own.Save(home))
	was, err = LoadedAgentPolicy(home)
	require.NoError(t, err)
	require.Equal(t, own, was)
	require.NoError(t, os.WriteFile(agentPolicyFile(home), []byte("{"), 0o600))
	_, err = LoadedAgentPolicy(home)
	require.Error(t, err)
}

// TestDigest: each change of what Load reads changes the digest, and nothing
// else does. What cannot be read has none.
func TestDigest(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "one.rego")
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	seen := map[string]bool{"": true}
	differs := func(why string, paths ...string) {
		t.Helper()
		digest := Digest(paths)
		require.False(t, seen[digest], why)
		require.Equal(t, digest, Digest(paths))
		seen[digest] = true
	}
	pack := []string{"builtin:coding-agent"}
	differs("the pack", pack...)
	write("one.rego", "a")
	differs("a folder", dir)
	differs("a file", append(pack, file)...)
	write("one.rego", "b")
	differs("another text of the file", append(pack, file)...)
	differs("another text in the folder", dir)
	write("two.rego", "")
	differs("another file in the folder", dir)
	write("data.json", "{}")
	differs("data", dir)
	require.NoError(t, os.Rename(file, filepath.Join(dir, "three.rego")))
	differs("another name", dir)
	before := Digest([]string{dir})
	write("notes.md", "x")
	require.Equal(t, before, Digest([]string{dir}), "no policy")
	require.Empty(t, Digest([]string{file}), "it is gone")
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "four.rego")))
	require.Empty(t, Digest([]string{dir}), "a file that cannot be read")
}
