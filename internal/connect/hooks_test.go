package connect_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/connect"
)

const settingsFile = "home/.claude/settings.json"

// hookHome is a home with hooks in the scope of the user.
func hookHome(t *testing.T) *testHome {
	w := newTestHome(t)
	w.Hooks = []connect.Scope{connect.User}
	return w
}

// TestHooksNeedNoFile: what is missing is created for each client, and removed
// again with its folders.
func TestHooksNeedNoFile(t *testing.T) {
	for _, name := range []string{"claude-code", "codex", "cursor", "gemini-cli", "opencode"} {
		w := hookHome(t)
		folders := w.folders()
		preview, err := w.client(name).Connect(w.Environment, connect.Preview)
		require.NoError(t, err)
		require.True(t, preview.Changed())
		require.Empty(t, w.tree("home", "project", "state"))
		require.True(t, w.connect(name).Changed(), name)
		require.Empty(t, w.tree("project"))
		require.False(t, w.connect(name).Changed(), name)
		for _, f := range w.disconnect(name).Files {
			require.True(t, f.Identical)
			require.Equal(t, connect.StateAbsent, f.State)
		}
		require.Empty(t, w.tree("home", "project", "state"))
		require.Equal(t, folders, w.folders())
	}
}

// TestBrokenSettings: settings that are no JSON are named with the place, and
// nothing is written.
func TestBrokenSettings(t *testing.T) {
	w := hookHome(t)
	w.write(settingsFile, "{ \"hooks\": {\n")
	before := w.tree("home", "project", "state")
	_, err := w.client("claude-code").Connect(w.Environment, connect.Write)
	var file *connect.FileError
	require.ErrorAs(t, err, &file)
	require.Equal(t, w.at(settingsFile), file.Path)
	require.Equal(t, 2, file.Line)
	require.Equal(t, before, w.tree("home", "project", "state"))
}

// TestHooksFollowTheirScopes: connecting again moves them, and disconnecting
// finds them in each project.
func TestHooksFollowTheirScopes(t *testing.T) {
	w := hookHome(t)
	w.Hooks = []connect.Scope{connect.Local}
	w.connect("claude-code")
	require.Contains(t, w.read("project/.claude/settings.local.json"), `"onFailure": "block"`)
	require.NoFileExists(t, w.at(settingsFile))
	w.Hooks = []connect.Scope{connect.User, connect.Project}
	w.connect("claude-code")
	require.NoFileExists(t, w.at("project/.claude/settings.local.json"))
	require.FileExists(t, w.at("project/.claude/settings.json"))
	require.FileExists(t, w.at("project/.claude/commands/remit/undo.md"))
	require.FileExists(t, w.at(settingsFile))
	w.Project = ""
	w.disconnect("claude-code")
	require.Empty(t, w.tree("home", "project", "state"))

	env := map[string]string{"CLAUDE_CONFIG_DIR": w.at("home/elsewhere")}
	w.Env = func(name string) string { return env[name] }
	w.Hooks = []connect.Scope{connect.User}
	w.connect("claude-code")
	require.FileExists(t, w.at("home/elsewhere/settings.json"))
	require.FileExists(t, w.at("home/elsewhere/commands/remit/log.md"))
	w.disconnect("claude-code")
	require.Empty(t, w.tree("home", "project", "state"))
}

// TestPartsOfAClient: hooks without servers, servers without hooks, and both.
func TestPartsOfAClient(t *testing.T) {
	w := hookHome(t)
	w.write("home/.claude.json", one)
	before := w.tree("home")
	w.HooksOnly = true
	r := w.connect("claude-code")
	require.Equal(t, one, w.read("home/.claude.json"))
	require.Equal(t, connect.HooksOn, r.Coverage.OwnTools)
	w.HooksOnly = false
	w.connect("claude-code")
	require.Contains(t, w.read("home/.claude.json"), `"remit"`)
	w.Hooks = nil
	w.connect("claude-code")
	require.NoFileExists(t, w.at(settingsFile))
	require.Contains(t, w.read("home/.claude.json"), `"remit"`)
	w.disconnect("claude-code")
	require.Equal(t, before, w.tree("home", "state"))
}

// TestHooksOfAMovedRemit are told, and written anew by connecting again.
func TestHooksOfAMovedRemit(t *testing.T) {
	for name, clientFile := range map[string]string{"claude-code": settingsFile, "codex": "home/.codex/hooks.json", "opencode": "home/.config/opencode/plugins/remit.js"} {
		w := hookHome(t)
		w.Command = "/no/where/my remit's/remit"
		w.connect(name)
		w.Command = "/opt/remit/bin/remit"
		status, err := w.client(name).Status(w.Environment)
		require.NoError(t, err)
		require.Equal(t, connect.HooksStale, status.Coverage.OwnTools, name)
		require.True(t, w.connect(name).Changed())
		require.Contains(t, w.read(clientFile), w.Command)
		require.NotContains(t, w.read(clientFile), "/no/where")
		w.disconnect(name)
		require.Empty(t, w.tree("home", "project", "state"))
	}
	w := newTestHome(t)
	w.write("home/.claude.json", one)
	w.Command = "/no/where/remit"
	w.connect("claude-code")
	w.Command = "/opt/remit/bin/remit"
	status, err := w.client("claude-code").Status(w.Environment)
	require.NoError(t, err)
	require.Equal(t, []string{`server "remit" starts /no/where/remit, which is missing: remit connect claude-code writes the current path`}, status.Files[0].Notes)
}

// TestCrashBetweenFiles: after each prefix of the writes, connect and
// disconnect both continue.
func TestCrashBetweenFiles(t *testing.T) {
	start := func() *testHome {
		w := hookHome(t)
		w.write("home/.claude.json", one)
		w.write(settingsFile, "{\r\n\t\"hooks\": {\"Stop\": [{\"hooks\": []}]} // mine\r\n}")
		return w
	}
	w := start()
	before := w.tree("home")
	w.connect("claude-code")
	connected := w.tree("home")
	names := sorted(connected)
	for _, moved := range []bool{false, true} {
		for n := range len(names) + 1 {
			for _, next := range []string{"connect", "disconnect"} {
				w := start()
				if moved { // an earlier connect is done, and another path of remit is written
					w.Command = "/old/remit"
					w.connect("claude-code")
					w.Command = "/opt/remit/bin/remit"
				}
				was := w.tree("home")
				w.connect("claude-code")
				// The records are written before the files: undo the last files.
				for _, name := range names[n:] {
					if old, there := was[name]; there {
						w.write(name, old)
					} else {
						require.NoError(t, os.Remove(w.at(name)))
					}
				}
				if next == "connect" {
					w.connect("claude-code")
					status, err := w.client("claude-code").Status(w.Environment)
					require.NoError(t, err)
					require.Equal(t, connect.HooksOn, status.Coverage.OwnTools)
					require.Len(t, w.tree("home"), len(connected))
				}
				for _, f := range w.disconnect("claude-code").Files {
					require.True(t, f.Identical, "%s %d %s: %v", next, n, f.Path, f.Notes)
				}
				require.Equal(t, before, w.tree("home", "state"), "%s after %d files", next, n)
			}
		}
	}
}

// TestFilesOfOthersStay: remit overwrites no file that it did not write, and
// removes none that changed.
func TestFilesOfOthersStay(t *testing.T) {
	w := hookHome(t)
	w.write("home/.config/opencode/plugins/remit.js", "mine")
	_, err := w.client("opencode").Connect(w.Environment, connect.Write)
	require.ErrorContains(t, err, "remit.js: remit connect writes this file, and another one is there")
	require.NoError(t, os.Remove(w.at("home/.config/opencode/plugins/remit.js")))
	w.connect("opencode")
	w.write("home/.config/opencode/plugins/remit.js", "changed")
	require.False(t, w.connect("opencode").Changed())
	r := w.disconnect("opencode")
	require.False(t, r.Files[0].Identical)
	require.Equal(t, map[string]string{"home/.config/opencode/plugins/remit.js": "changed"}, w.tree("home", "state"))

	w = hookHome(t)
	w.write("home/.cursor/hooks.json", `{"version": 1, "hooks": {"stop": [{"command": "/x/remit hook cursor"}]}}`)
	_, err = w.client("cursor").Connect(w.Environment, connect.Write)
	require.ErrorContains(t, err, "it has a hook of remit for stop, and no record of it")
	w.write("home/.cursor/hooks.json", `{"version": 1, "hooks": {"stop": {}}}`)
	_, err = w.client("cursor").Connect(w.Environment, connect.Write)
	require.ErrorContains(t, err, `hooks.json:1:34: "stop" is not a list`)

	// A settings file that became a link is not removed.
	w = hookHome(t)
	w.connect("gemini-cli")
	w.write("dotfiles/settings.json", w.read("home/.gemini/settings.json"))
	require.NoError(t, os.Remove(w.at("home/.gemini/settings.json")))
	require.NoError(t, os.Symlink(w.at("dotfiles/settings.json"), w.at("home/.gemini/settings.json")))
	w.disconnect("gemini-cli")
	require.Equal(t, "{}\n", w.read("dotfiles/settings.json"))
}

// TestLinkedSettings: hooks go through a link, which stays one.
func TestLinkedSettings(t *testing.T) {
	w := hookHome(t)
	w.write("dotfiles/settings.json", "{}")
	require.NoError(t, os.MkdirAll(filepath.Dir(w.at(settingsFile)), 0o755))
	require.NoError(t, os.Symlink("../../dotfiles/settings.json", w.at(settingsFile)))
	w.connect("claude-code")
	require.Contains(t, w.read("dotfiles/settings.json"), "PreToolUse")
	w.disconnect("claude-code")
	require.Equal(t, "{}", w.read("dotfiles/settings.json"))
	target, err := os.Readlink(w.at(settingsFile))
	require.NoError(t, err)
	require.Equal(t, "../../dotfiles/settings.json", target)
}

// TestSwitchesOfClients: hooks that the client does not run do not count as
// coverage.
func TestSwitchesOfClients(t *testing.T) {
	for _, tt := range [][3]string{
		{"claude-code", settingsFile, `{"disableAllHooks": true}`},
		{"gemini-cli", "home/.gemini/settings.json", `{"hooksConfig": {"enabled": false}}`},
		{"codex", codexFile, "[features]\nhooks = false\n"},
	} {
		w := hookHome(t)
		w.write(tt[1], tt[2])
		require.Equal(t, connect.HooksOff, w.connect(tt[0]).Coverage.OwnTools)
		status, err := w.client(tt[0]).Status(w.Environment)
		require.NoError(t, err)
		require.Equal(t, connect.HooksOff, status.Coverage.OwnTools)
		require.Contains(t, strings.Join(status.Coverage.Notes, " "), "turns off every hook")
	}
}

// TestFailuresOfAHook runs the command line of a hook before a call: each way
// to fail becomes exit code 2, and the answers of remit stay as they are.
func TestFailuresOfAHook(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh")
	}
	w := hookHome(t)
	w.Command = w.at("my remit's/remit")
	w.connect("codex")
	var v struct {
		Hooks map[string][]struct{ Hooks []struct{ Command string } }
	}
	require.NoError(t, json.Unmarshal([]byte(w.read("home/.codex/hooks.json")), &v))
	line := v.Hooks["PreToolUse"][0].Hooks[0].Command
	for _, tt := range []struct {
		script, out, err string
		code             int
	}{
		{`cat; echo " $*"`, "event hook codex\n", "", 0},
		{`echo no >&2; exit 2`, "", "no\n", 2},
		{`exit 7`, "", "remit failed, so the call does not run\n", 2},
		{`kill -9 $$`, "", "remit failed, so the call does not run\n", 2},
		{"", "", "remit failed, so the call does not run\n", 2},
	} {
		if tt.script == "" {
			require.NoError(t, os.Remove(w.Command))
		} else {
			require.NoError(t, os.MkdirAll(filepath.Dir(w.Command), 0o755))
			require.NoError(t, os.WriteFile(w.Command, []byte("#!/bin/sh\n"+tt.script+"\n"), 0o755))
		}
		cmd := exec.Command("sh", "-c", line)
		cmd.Stdin = strings.NewReader("event")
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run()
		require.Equal(t, tt.code, cmd.ProcessState.ExitCode(), tt.script)
		require.Equal(t, tt.out, out.String())
		require.True(t, strings.HasSuffix(errs.String(), tt.err), errs.String())
	}
}

// TestCrashOfDisconnect: the files are restored and the records are still
// there.
func TestCrashOfDisconnect(t *testing.T) {
	for _, next := range []string{"connect", "disconnect"} {
		w := hookHome(t)
		w.write("home/.claude.json", one)
		before := w.tree("home")
		w.connect("claude-code")
		connected, records := w.tree("home"), w.tree("state")
		w.disconnect("claude-code")
		for name, text := range records {
			w.write(name, text)
		}
		if next == "connect" {
			w.connect("claude-code")
			require.Equal(t, connected, w.tree("home"))
		}
		w.disconnect("claude-code")
		require.Equal(t, before, w.tree("home", "state"))
	}
}

// TestListsBesideServers: a server stays if a list of its client restricts it.
func TestListsBesideServers(t *testing.T) {
	const server = `{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}, "mcp": `
	for text, want := range map[string][]string{
		`{"excluded": ["a"]}}`: {"it is disabled", ""},
		`{"allowed": ["a"]}}`:  {`"mcp.allowed"`, `"mcp.allowed"`},
		`{"allowed": []}}`:     {"", ""},
	} {
		w := newTestHome(t)
		w.Env = func(name string) string { return map[string]string{"GEMINI_CLI_HOME": w.at("home/gemini")}[name] }
		w.write("home/gemini/.gemini/settings.json", server+text)
		r := w.connect("gemini-cli")
		for _, s := range r.Files[0].Servers {
			require.Contains(t, s.Why, want[s.Name[0]-'a'])
			require.Equal(t, s.Why == "", want[s.Name[0]-'a'] == "")
		}
	}
	w := newTestHome(t)
	w.write("project/opencode.json", `{"agent": {"x": {"permission": {"my_a_*": "deny"}}}, "mcp": {"my a": {"type": "local", "command": ["a"]}, "b": {"type": "local", "command": "b"}}}`)
	r := w.connect("opencode")
	require.False(t, r.Changed())
	for _, f := range r.Files {
		for _, s := range f.Servers {
			require.NotEmpty(t, s.Why)
		}
	}
}

// TestAnyFile connects files that no client of a name has, each by itself.
func TestAnyFile(t *testing.T) {
	w := newTestHome(t)
	w.write("home/a.json", one)
	w.write("home/b.json", strings.Replace(one, "mcpServers", "servers", 1))
	before := w.tree("home")
	a, b := connect.FileClient(w.at("home/a.json"), "mcpServers"), connect.FileClient(w.at("home/b.json"), "servers")
	for _, c := range []connect.Client{a, b} {
		require.False(t, c.HasHooks(w.Environment, connect.User))
		r, err := c.Connect(w.Environment, connect.Write)
		require.NoError(t, err)
		require.Equal(t, connect.StateRouted, r.Files[0].State)
	}
	connected := w.tree("home")
	all, err := connect.FileClients(w.Environment)
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, w.at("home/a.json"), all[0].Title())
	_, err = b.Disconnect(w.Environment, connect.Write)
	require.NoError(t, err)
	require.Equal(t, connected["home/a.json"], w.read("home/a.json"))
	_, err = all[0].Disconnect(w.Environment, connect.Write)
	require.NoError(t, err)
	require.Equal(t, before, w.tree("home", "state"))
	_, err = a.Disconnect(w.Environment, connect.Write)
	require.ErrorIs(t, err, connect.ErrNotConnected)
}

// TestHooksOnWindows need no sh, and say that a failure lets the call run.
func TestHooksOnWindows(t *testing.T) {
	w := hookHome(t)
	w.OS, w.Command = "windows", w.at("my tools/remit.exe")
	r := w.connect("codex")
	require.EqualValues(t, "runs", r.Coverage.OnFailure)
	require.Contains(t, w.read("home/.codex/hooks.json"), `"command": "\"`+w.Command+`\" hook codex"`)
	require.Equal(t, connect.HooksOn, r.Coverage.OwnTools)
}

// TestSecretsOfSettings: a preview of settings hides variables and headers
// anywhere in them.
func TestSecretsOfSettings(t *testing.T) {
	w := hookHome(t)
	w.write(settingsFile, "{\n  \"env\": {\"TOKEN\": \"hunter2-hunter2\"},\n  \"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"http\", \"headers\": {\"A\": \"hunter3-hunter3\"}}]}]}\n}\n")
	r, err := w.client("claude-code").Connect(w.Environment, connect.Preview)
	require.NoError(t, err)
	for _, f := range r.Files {
		require.NotContains(t, f.Diff, "hunter")
		if f.Path == w.at(settingsFile) {
			require.Contains(t, f.Diff, "(hidden)")
			require.Contains(t, f.Diff, "+")
		}
	}
}

// TestPartialHooks: an event that a person took out is told, and comes back.
func TestPartialHooks(t *testing.T) {
	w := hookHome(t)
	w.write("remit", "")
	w.Command = w.at("remit")
	w.connect("cursor")
	text := w.read("home/.cursor/hooks.json")
	w.write("home/.cursor/hooks.json", strings.Replace(text, `"preToolUse"`, `"mine"`, 1))
	status, err := w.client("cursor").Status(w.Environment)
	require.NoError(t, err)
	require.Equal(t, connect.HooksPartial, status.Coverage.OwnTools)
	w.write("home/.cursor/hooks.json", strings.Replace(text, "120", "5", 1))
	status, err = w.client("cursor").Status(w.Environment)
	require.NoError(t, err)
	require.Equal(t, connect.HooksOther, status.Coverage.OwnTools)
	w.write("home/.cursor/hooks.json", "{}")
	require.Equal(t, connect.HooksOn, w.connect("cursor").Coverage.OwnTools)
	w.disconnect("cursor")
	require.Equal(t, "{}", w.read("home/.cursor/hooks.json"))
}
