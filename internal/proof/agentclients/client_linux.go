package agentclients

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Versions of what is installed. The facts in docs/evidence/agent-clients.md
// are about these.
const (
	nodeVersion     = "22.23.3"
	claudeVersion   = "2.1.330"
	codexVersion    = "0.169.0"
	geminiVersion   = "0.61.0"
	opencodeVersion = "1.18.33"
)

// Client is a coding agent.
type Client struct {
	// Name is the one that remit's commands take.
	Name, Version string

	npm, bin string
	dir      string // where it is installed
	driver   driver
}

// driver is how an agent is run.
type driver struct {
	// env returns its environment, beside what all agents have.
	env func(s Session) []string
	// run runs the prompts of a session in order, and returns an outcome for each.
	run func(t *testing.T, p *place, s Session) []Outcome
	// hooks returns the files, by path in its home, that configure a hook.
	hooks func(h Hook) map[string]string
}

// Clients returns the agents that are known, none of them installed.
func Clients() []Client {
	return []Client{
		{Name: "claude-code", Version: claudeVersion, npm: "@anthropic-ai/claude-code", bin: "claude", driver: claude()},
		{Name: "codex", Version: codexVersion, npm: "@openai/codex", bin: "codex", driver: codex()},
		{Name: "gemini-cli", Version: geminiVersion, npm: "@google/gemini-cli", bin: "gemini", driver: gemini()},
		{Name: "opencode", Version: opencodeVersion, npm: "opencode-ai", bin: "opencode", driver: opencode()},
	}
}

// Install installs the agent from npm if the cache folder of the user does not
// hold it, and returns it ready to run. It skips the test in short mode, or if
// npm is missing or cannot reach its registry.
func (c Client) Install(t *testing.T) Client {
	t.Helper()
	if testing.Short() {
		t.Skip("installs and runs a program from npm")
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	root := filepath.Join(cache, "remit-agent-clients")
	if _, err := fromNPM(t.Context(), root, "node", nodeVersion, filepath.Join(".bin", "node")); err != nil {
		t.Skipf("needs Node.js from npm: %v", err)
	}
	dir, err := fromNPM(t.Context(), root, c.npm, c.Version, filepath.Join(".bin", c.bin))
	if err != nil {
		t.Skipf("needs %s from npm: %v", c.Name, err)
	}
	c.dir = filepath.Join(dir, ".bin")
	return c
}

// Package installs a package from npm beside the agents, and returns its folder
// of modules. It skips the test if that cannot be done.
func Package(t *testing.T, name, version string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	dir, err := fromNPM(t.Context(), filepath.Join(cache, "remit-agent-clients"), name, version, name)
	if err != nil {
		t.Skipf("needs %s from npm: %v", name, err)
	}
	return dir
}

// fromNPM returns the folder of modules with a package, of which it expects one
// file or folder. It installs the package beside its place, and moves it there
// when it is complete.
func fromNPM(ctx context.Context, root, pkg, version, has string) (modules string, err error) {
	dir := filepath.Join(root, filepath.Base(pkg)+"-"+version)
	modules = filepath.Join(dir, "node_modules")
	if _, err := os.Stat(filepath.Join(modules, has)); err == nil {
		return modules, nil
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", errors.New("npm is not installed")
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(root, "installing-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", fresh, pkg+"@"+version)
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install %s@%s: %w\n%s", pkg, version, err, said)
	}
	if err := os.Rename(fresh, dir); err != nil {
		if _, there := os.Stat(filepath.Join(modules, has)); there != nil { // another test was first
			return "", err
		}
	}
	return modules, nil
}

// program returns the path of the agent's program.
func (c Client) program() string { return filepath.Join(c.dir, c.bin) }

// node returns the folder with the program of Node.js.
func (c Client) node() string {
	return filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(c.dir))), "node-"+nodeVersion, "node_modules", ".bin")
}
