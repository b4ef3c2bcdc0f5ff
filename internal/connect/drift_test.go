package connect_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/connect"
)

// TestDrift changes the hooks of each client as an agent would, after they were connected.
func TestDrift(t *testing.T) {
	for _, c := range connect.Clients() {
		home, project := t.TempDir(), t.TempDir()
		p := connect.Environment{
			OS: "linux", Home: home, State: filepath.Join(home, "state"), Command: "/usr/bin/remit", Project: project, Hooks: []connect.Scope{connect.User}, HooksOnly: true,
		}
		if !c.HasHooks(p, connect.User) {
			d, err := c.Drift(p)
			require.NoError(t, err)
			require.Equal(t, connect.Drift{}, d)
			continue
		}
		t.Run(c.Name(), func(t *testing.T) {
			drift := func() connect.Drift {
				d, err := c.Drift(p)
				require.NoError(t, err)
				return d
			}
			require.False(t, drift().Connected)
			r, err := c.Connect(p, connect.Write)
			require.NoError(t, err)
			d := drift()
			require.True(t, d.Connected && d.Installed)
			require.Empty(t, d.Changes)
			var changed int
			for _, f := range r.Files {
				text, err := os.ReadFile(f.Path)
				if err != nil || !strings.Contains(string(text), "remit") {
					continue
				}
				changed++
				for name, to := range map[string]string{
					"a hook that starts another program": strings.Replace(string(text), "/usr/bin/remit", "/tmp/own", 1), "emptied": "{}\n",
					"a hook that does nothing": strings.Replace(string(text), "hook", "version", 1),
				} {
					if to == string(text) {
						continue // a file of commands has no hook
					}
					require.NoError(t, os.WriteFile(f.Path, []byte(to), 0o600))
					require.NotEmpty(t, drift().Changes, "%s: %s", f.Path, name)
				}
				require.NoError(t, os.Remove(f.Path))
				require.NotEmpty(t, drift().Changes, "%s: removed", f.Path)
				require.NoError(t, os.WriteFile(f.Path, text, 0o600))
				require.Empty(t, drift().Changes)
			}
			require.NotZero(t, changed)
		})
	}
}

// TestDriftByAProject turns the hooks off in the settings of a project, which an agent can write.
func TestDriftByAProject(t *testing.T) {
	for name, file := range map[string][2]string{
		"claude-code": {".claude/settings.local.json", `{"disableAllHooks": true}`}, "gemini-cli": {".gemini/settings.json", `{"hooksConfig": {"enabled": false}}`},
		"codex": {".codex/config.toml", "[features]\nhooks = false\n"},
	} {
		home, project := t.TempDir(), t.TempDir()
		p := connect.Environment{OS: "linux", Home: home, State: filepath.Join(home, "state"), Command: "/usr/bin/remit", Project: project, Hooks: []connect.Scope{connect.User}, HooksOnly: true}
		c, err := connect.ClientByName(name)
		require.NoError(t, err)
		_, err = c.Connect(p, connect.Write)
		require.NoError(t, err)
		path := filepath.Join(project, file[0])
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(file[1]), 0o600))
		d, err := c.Drift(p)
		require.NoError(t, err)
		require.Len(t, d.Changes, 1, name)
		require.Contains(t, d.Changes[0], "turns off every hook")
	}
}
