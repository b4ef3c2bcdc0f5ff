package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/proof/treecheck"
)

// manyServer is one server of npm, as its users start it. Its packages and versions stand in .ci/mcp-servers.
type manyServer struct {
	name, program string
	args          []string
	fails         bool // where its native parts were not built: it is named then
	tool          string
	input         map[string]any // of a call that writes, if tool is set
	inside        bool           // it writes in the workspace
}

// manyServers work without a network. WS stands for the workspace.
func manyServers() []manyServer {
	return []manyServer{
		{name: "filesystem", program: "mcp-server-filesystem", args: []string{"WS"}, tool: "write_file", input: map[string]any{"path": "WS/a.txt", "content": "x"}, inside: true},
		{name: "fastfs", program: "fast-filesystem-mcp", tool: "fast_write_file", input: map[string]any{"path": "WS/fast.txt", "content": "x"}, inside: true},
		{name: "commands", program: "mcp-server-commands", tool: "run_command", input: map[string]any{"command": "echo x > made.txt; rm a.txt"}, inside: true},
		{name: "bash", program: "bash-command-mcp", tool: "run", input: map[string]any{"command": "mkdir d; echo y > d/b.txt"}, inside: true},
		{name: "runner", program: "mcp-server-code-runner", tool: "run-code", input: map[string]any{"languageId": "javascript", "code": "require('fs').writeFileSync('WS/r.txt', 'x')"}, inside: true},
		{name: "bank", program: "mcp-server-memory-bank", tool: "memory_bank_write", input: map[string]any{"projectName": "p", "fileName": "f.md", "content": "x"}, inside: true},
		{name: "memory", program: "mcp-server-memory", tool: "create_entities", input: map[string]any{"entities": []any{map[string]any{"name": "n", "entityType": "t", "observations": []any{"o"}}}}},
		{name: "tasks", program: "mcp-taskmanager", tool: "request_planning", input: map[string]any{"originalRequest": "r", "tasks": []any{map[string]any{"title": "t", "description": "d"}}}},
		{name: "everything", program: "mcp-server-everything"},
		{name: "thinking", program: "mcp-server-sequential-thinking"},
		{name: "pdf", program: "mcp-pdf-server", args: []string{"--stdio"}},
		browserServer(),
		{name: "git", program: "git-mcp-server", tool: "git_init", input: map[string]any{"path": "WS/repository"}, inside: true},
		{name: "mcpgit", program: "mcp-git", tool: "git_init", input: map[string]any{"repo_path": "WS"}, inside: true},
		{name: "time", program: "time-mcp"},
		{name: "sqlite-npx", program: "mcp-server-sqlite-npx", args: []string{"WS/x.db"}, fails: true, tool: "create_table", input: map[string]any{"query": "CREATE TABLE t (a TEXT)"}, inside: true},
		{name: "sqlite", program: "mcp-sqlite-server", args: []string{"WS/y.db"}, fails: true, tool: "query", input: map[string]any{"sql": "CREATE TABLE t (a TEXT)"}, inside: true},
		{name: "shell", program: "mcp-shell-server", fails: true},
		{name: "keeper", program: "mcp-memory-keeper", fails: true, tool: "context_save", input: map[string]any{"key": "k", "value": "v"}},
		{name: "obsidian", program: "obsidian-mcp", args: []string{"WS/vault"}, fails: true, tool: "obsidian_create_note", input: map[string]any{"vault": "vault", "path": "n.md", "content": "x"}, inside: true},
	}
}

// browserServer writes a picture of an empty page where there is a browser.
func browserServer() manyServer {
	s := manyServer{name: "playwright", program: "playwright-mcp", args: []string{"--headless"}}
	if chromium, err := exec.LookPath("chromium"); err == nil {
		s.args = append(s.args, "--no-sandbox", "--executable-path", chromium, "--output-dir", "WS/shots")
		s.tool, s.input, s.inside = "browser_take_screenshot", map[string]any{"scale": "css", "filename": "WS/shots/p.png"}, true
	}
	return s
}

// manyPlace is a workspace. remit connect led the servers of its client through the gateway.
type manyPlace struct {
	ws, config, out string
	command         func(args ...string) *exec.Cmd
}

func newManyPlace(t *testing.T) *manyPlace {
	t.Helper()
	modules := os.Getenv("REMIT_MCP_SERVERS")
	if modules == "" {
		t.Skip("REMIT_MCP_SERVERS names no folder in which npm installed the servers; .ci/mcp-servers does")
	}
	if _, err := os.Stat(filepath.Join(modules, "node_modules", ".bin", "fast-filesystem-mcp")); err != nil {
		t.Skip("the folder of REMIT_MCP_SERVERS lacks these servers: ", err)
	}
	remit, home, p := build(t), t.TempDir(), &manyPlace{ws: t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(p.ws, "a.txt"), []byte("a"), 0o644))
	require.NoError(t, os.MkdirAll(filepath.Join(p.ws, "vault", ".obsidian"), 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(p.ws, "repository"), 0o755))
	entries := map[string]any{}
	for _, s := range manyServers() {
		args := []string{}
		for _, a := range s.args {
			args = append(args, strings.ReplaceAll(a, "WS", p.ws))
		}
		entries[s.name] = map[string]any{"command": filepath.Join(modules, "node_modules", ".bin", s.program), "args": args, "env": map[string]string{
			"MEMORY_FILE_PATH": filepath.Join(home, "memory.json"), "TASK_MANAGER_FILE_PATH": filepath.Join(home, "tasks.json"), "MEMORY_BANK_ROOT": p.ws,
		}}
	}
	raw, err := json.Marshal(map[string]any{"mcpServers": entries})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(home, ".claude.json"), raw, 0o600))
	p.command = func(args ...string) *exec.Cmd {
		cmd := exec.Command(remit, args...)
		cmd.Dir, cmd.Env = p.ws, append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=")
		return cmd
	}
	said, _ := p.command("connect", "claude-code", "--init").CombinedOutput() // with 1 where a server cannot be had
	config := regexp.MustCompile(`drafted [1-9]\d* entries in (\S+)`).FindStringSubmatch(string(said))
	require.Len(t, config, 2, "%s", said)
	p.out, p.config = string(said), config[1]
	return p
}

// gateway starts the gateway for a client. The person at that client gives each answer by calling answer.
func (p *manyPlace) gateway(t *testing.T, answer func() string) *sdk.ClientSession {
	t.Helper()
	person := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		r := &sdk.ElicitResult{Action: answer()}
		if r.Action == "accept" {
			r.Content = map[string]any{"approve": true}
		}
		return r, nil
	}})
	cs, err := person.Connect(t.Context(), &sdk.CommandTransport{Command: p.command("gateway", "--config", p.config)}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = cs.Close() })
	return cs
}

// TestManyServers puts remit connect --init in front of twenty servers of npm: each tool of those that start has an entry, so that it runs or
// asks, the others are named, and after each call that writes a revert leaves the folder as it was and says what is unknown.
func TestManyServers(t *testing.T) {
	p := newManyPlace(t)
	ws, out, command := p.ws, p.out, p.command
	asked := 0
	cs := p.gateway(t, func() string { asked++; return "accept" })
	var again []string
	drafted, err := os.ReadFile(p.config)
	require.NoError(t, err)
	tools := map[string]int{}
	for one, err := range cs.Tools(t.Context(), nil) {
		require.NoError(t, err)
		server, name, of := strings.Cut(one.Name, "__")
		if !of {
			require.True(t, strings.HasPrefix(one.Name, "txn_"), one.Name)
			continue
		}
		tools[server]++
		require.Contains(t, string(drafted), `"`+name+`"`, "%s has an entry", one.Name)
	}
	for _, s := range manyServers() {
		t.Run(s.name, func(t *testing.T) {
			if tools[s.name] == 0 {
				require.True(t, s.fails, "%s", out)
				require.Contains(t, out, "server "+s.name+" cannot be had")
				t.Skip("its native parts were not built, or its Node.js is not here; remit names it and says why")
			}
			t.Logf("%d tools", tools[s.name])
			if s.tool == "" {
				return
			}
			var input map[string]any
			text, err := json.Marshal(s.input)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(string(text), "WS", ws)), &input))
			was, err := treecheck.Capture(ws)
			require.NoError(t, err)
			before := asked
			r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: s.name + "__" + s.tool, Arguments: input})
			require.NoError(t, err)
			answer, err := json.Marshal(r.Content)
			require.NoError(t, err)
			require.False(t, r.IsError, "%s", answer)
			require.Greater(t, asked, before, "a person is asked")
			is, err := treecheck.Capture(ws)
			require.NoError(t, err)
			require.Equal(t, s.inside, len(treecheck.Compare(was, is)) > 0, "it writes in the workspace: %s", answer)
			txn, ok := r.Meta["remit.dev/txn"].(string)
			require.True(t, ok)
			cmd := command("revert", txn)
			report, err := cmd.CombinedOutput()
			require.Error(t, err)
			require.Equal(t, int(cli.ExitPartial), cmd.ProcessState.ExitCode(), "%s", report)
			require.Contains(t, string(report), "the call was not confined to workspace", "it says what is unknown")
			is, err = treecheck.Capture(ws)
			require.NoError(t, err)
			for _, d := range treecheck.Compare(was, is) {
				if !strings.Contains(d.String(), "directory mtime") { // which no undo restores
					require.True(t, reportsPath(string(report), d.Path), "%s is told of:\n%s", d, report)
				}
			}
			if strings.Contains(string(report), "has it open for writing") {
				again = append(again, txn)
			}
		})
	}
	// What a server kept open is restored once it has ended, as the report advises.
	require.NoError(t, cs.Close())
	for _, txn := range again {
		report, err := command("revert", txn).CombinedOutput()
		require.Error(t, err, "what it did elsewhere is still unknown")
		require.NotContains(t, string(report), "conflict")
		require.Contains(t, string(report), "restored")
	}
	for _, name := range []string{"x.db", "y.db"} {
		if is, err := os.Stat(filepath.Join(ws, name)); err == nil {
			require.Zero(t, is.Size(), name)
		}
	}
}

// reportsPath reports whether a report of a revert tells of a difference: of the path itself, or of a folder that it lies in.
func reportsPath(report, at string) bool {
	for ; at != "." && at != "/"; at = path.Dir(at) {
		if regexp.MustCompile(`conflict +` + regexp.QuoteMeta(at) + `\n|[(/ ]` + regexp.QuoteMeta(at) + ` \(new\)`).MatchString(report) {
			return true
		}
	}
	return false
}

// TestEachToolOfManyServers calls each tool of those servers once, but for two that only wait, with the least that its schema wants. A person says no to every question. Each
// call runs, or is asked about; none is refused without a word on what to do.
func TestEachToolOfManyServers(t *testing.T) {
	p := newManyPlace(t)
	asked := 0
	cs := p.gateway(t, func() string { asked++; return "decline" })
	type seen struct{ ran, failed, asked int }
	counts := map[string]*seen{}
	for one, err := range cs.Tools(t.Context(), nil) {
		require.NoError(t, err)
		server, name, of := strings.Cut(one.Name, "__")
		if !of || name == "trigger-long-running-operation" || name == "browser_wait_for" {
			continue
		}
		if counts[server] == nil {
			counts[server] = &seen{}
		}
		before := asked
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		r, err := cs.CallTool(ctx, &sdk.CallToolParams{Name: one.Name, Arguments: least(one.InputSchema)})
		cancel()
		require.NoError(t, err, one.Name)
		answer, err := json.Marshal(r.Content)
		require.NoError(t, err)
		switch c := counts[server]; {
		case asked > before:
			c.asked++
			require.True(t, r.IsError, one.Name)
			require.Contains(t, string(answer), "Denied: ", one.Name)
		case r.IsError:
			c.failed++
			require.NotContains(t, string(answer), "Denied: ", "the policy refuses %s without a question", one.Name)
			require.NotEmpty(t, r.Content, one.Name)
		default:
			c.ran++
		}
	}
	for _, s := range manyServers() {
		if c := counts[s.name]; c != nil {
			t.Logf("%-12s %2d ran, %2d failed by themselves, %2d asked", s.name, c.ran, c.failed, c.asked)
		}
	}
}

// least is the smallest input that a schema seems to want.
func least(schema any) any {
	s, _ := schema.(map[string]any)
	if some, _ := s["enum"].([]any); len(some) > 0 {
		return some[0]
	}
	for _, either := range []string{"anyOf", "oneOf"} {
		if some, _ := s[either].([]any); len(some) > 0 {
			return least(some[0])
		}
	}
	switch s["type"] {
	case "object":
		out := map[string]any{}
		properties, _ := s["properties"].(map[string]any)
		wanted, _ := s["required"].([]any)
		for _, name := range wanted {
			out[name.(string)] = least(properties[name.(string)]) //nolint:errcheck // a schema names its members by texts
		}
		return out
	case "array":
		if n, _ := s["minItems"].(float64); n > 0 {
			return []any{least(s["items"])}
		}
		return []any{}
	case "string":
		return "x"
	case "number", "integer":
		if n, ok := s["minimum"].(float64); ok {
			return n
		}
		return 1
	case "boolean":
		return false
	}
	return nil
}
