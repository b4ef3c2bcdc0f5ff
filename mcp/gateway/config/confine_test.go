package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp/gateway/config"
)

// TestConfine: the sandbox that is drafted reads what a server is made of, and nothing of what it works with.
func TestConfine(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{
		"work/notes.txt", "work/server.js", "home/secret", "home/alone.js",
		"npm/node_modules/far/index.js", "npm/node_modules/far/node_modules/deep/index.js",
		"venv/pyvenv.cfg", "venv/bin/server", "node/include/node/node.h", "node/bin/node",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(at(name)), 0o700))
		require.NoError(t, os.WriteFile(at(name), nil, 0o700))
	}
	require.NoError(t, os.MkdirAll(at("npm/node_modules/.bin"), 0o700))
	require.NoError(t, os.Symlink("../far/index.js", at("npm/node_modules/.bin/far")))
	require.NoError(t, os.Symlink("node_modules/far/index.js", at("npm/start")))
	roots := map[string]string{"workspace": at("work")}
	for name, tt := range map[string]struct {
		server config.Server
		reads  []string
	}{
		"a program of the system":       {config.Server{Command: "sh", Args: []string{"-c", "exit"}}, nil},
		"an installed package":          {config.Server{Command: "sh", Args: []string{at("npm/node_modules/far/index.js"), at("work"), at("home")}}, []string{at("npm/node_modules")}},
		"a package in a package":        {config.Server{Command: "sh", Args: []string{at("npm/node_modules/far/node_modules/deep/index.js")}}, []string{at("npm/node_modules")}},
		"a link to a package":           {config.Server{Command: at("npm/node_modules/.bin/far")}, []string{at("npm/node_modules")}},
		"a link from elsewhere":         {config.Server{Command: at("npm/start")}, []string{at("npm/node_modules"), at("npm/start")}},
		"an environment of Python":      {config.Server{Command: at("venv/bin/server")}, []string{at("venv")}},
		"a Node.js of one's own":        {config.Server{Command: at("node/bin/node"), Args: []string{at("home/alone.js")}}, []string{at("home/alone.js"), at("node")}},
		"by a path from its folder":     {config.Server{Command: "sh", Args: []string{"alone.js"}, Dir: at("home")}, []string{at("home/alone.js")}},
		"what is in a root":             {config.Server{Command: "sh", Args: []string{at("work/server.js"), at("work/notes.txt")}}, nil},
		"what there is none of":         {config.Server{Command: "nosuch", Args: []string{at("home/nothing.js")}}, nil},
		"with a drafted tool":           {config.Server{Command: "sh", Tools: map[string]config.Entry{"x": {Draft: true}}}, nil},
		"a folder that it works with":   {config.Server{Command: "sh", Args: []string{at("home"), dir}}, nil},
		"the environment of a registry": {config.Server{Command: "sh", Env: map[string]string{"KEY": at("home/secret")}}, nil},
	} {
		tt.server.Name = "s"
		d, ok, why := tt.server.Confine(roots)
		require.True(t, ok, "%s: %s", name, why)
		var box struct{ Roots, Readable []string }
		require.NoError(t, json.Unmarshal(d.Entry, &box))
		require.Equal(t, []string{"workspace"}, box.Roots, name)
		require.Equal(t, tt.reads, box.Readable, name)
		require.Empty(t, d.Tool, name)
	}
	for want, server := range map[string]config.Server{
		"":                       {URL: "https://tools.example/mcp"},
		"npx fetches it over":    {Command: "npx", Args: []string{"-y", "far"}},
		"uvx fetches it over":    {Command: "/home/me/bin/uvx", Args: []string{"far"}},
		"its tool x is no draft": {Command: "sh", Tools: map[string]config.Entry{"x": {}}},
	} {
		_, ok, why := server.Confine(roots)
		require.False(t, ok, want)
		require.Contains(t, why, want)
	}
	_, ok, why := config.Server{Command: "sh", Sandbox: &config.Sandbox{}}.Confine(roots)
	require.False(t, ok)
	require.Empty(t, why, "it has one")
}
