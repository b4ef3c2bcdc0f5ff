package hook

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/policyfile"
	"github.com/remit-dev/remit/internal/hookclient"
)

// TestPolicyOfAgents: the opening of a session makes the files of now decide.
// Files that do not load are an error, and the earlier policy remains.
func TestPolicyOfAgents(t *testing.T) {
	home, config := t.TempDir(), t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("HOME", config)
	t.Setenv("AppData", config)
	user, err := os.UserConfigDir()
	require.NoError(t, err)
	own := filepath.Join(user, "remit", "coding-agent")
	require.NoError(t, os.MkdirAll(filepath.Join(home, filepath.FromSlash(hookclient.Folder)), 0o700))
	var log bytes.Buffer
	p := &agentPolicy{log: slog.New(slog.NewTextHandler(&log, nil)), home: home, now: time.Now}
	require.Empty(t, p.engine.Revision(), "it denies everything until a policy loads")
	loads := func() string {
		t.Helper()
		require.NoError(t, p.refresh())
		is, err := policyfile.LoadAgents(policyfile.AgentPaths())
		require.NoError(t, err)
		require.Equal(t, is.Revision(), p.engine.Revision())
		was, err := policyfile.LoadedAgentPolicy(home)
		require.NoError(t, err)
		require.Equal(t, is.Revision(), was.Revision)
		return is.Revision()
	}
	write := func(text string) {
		require.NoError(t, os.MkdirAll(own, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(own, "p.rego"), []byte("package remit\n\n"+text), 0o600))
	}

	pack := loads()
	require.Empty(t, p.news())
	first := p.engine.Engine()
	require.Equal(t, pack, loads())
	require.Same(t, first, p.engine.Engine(), "the engine keeps its cache")

	write("allow contains \"all\"\n")
	require.NotEqual(t, pack, loads())
	require.Contains(t, p.news(), own+" is in force, and builtin:coding-agent was")
	require.Empty(t, p.news(), "once")

	write("allow contains \"all\"\n\nbroken {{\n")
	decides := p.engine.Engine()
	err = p.refresh()
	require.ErrorContains(t, err, "the policy of coding agents does not load: ")
	require.ErrorContains(t, err, filepath.ToSlash(own)+"/p.rego:")
	require.ErrorContains(t, err, "remit policy check "+own)
	require.NotContains(t, err.Error(), "\n")
	require.ErrorContains(t, p.refresh(), "does not load", "it is not forgotten")
	require.Contains(t, p.news(), "each call of this session is denied")
	require.Contains(t, p.news(), "does not load", "as long as it is so")
	require.Same(t, decides, p.engine.Engine())
	require.Equal(t, 1, strings.Count(log.String(), "no session of an agent opens"))

	write("deny contains \"all\"\n")
	loads()
	require.Contains(t, p.news(), own+" changed since")
	require.NoError(t, os.RemoveAll(own))
	require.Equal(t, pack, loads())
	require.Contains(t, p.news(), "builtin:coding-agent is in force")
}
