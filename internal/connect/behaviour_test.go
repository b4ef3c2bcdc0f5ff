package connect_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/connect"
	"github.com/remit-dev/remit/mcp/gateway/config"
)

const (
	cursorFile  = "home/.cursor/mcp.json"
	codexFile   = "home/.codex/config.toml"
	gatewayFile = "home/.config/remit/gateway.json"
)

const one = "{\n  \"mcpServers\": {\n    \"fs\": {\n      \"command\": \"fs\"\n    }\n  }\n}\n"

// TestNothingToRoute: what names no servers stays as it is, and is no error.
func TestNothingToRoute(t *testing.T) {
	for _, text := range []string{"", " \n", "\ufeff", "{}", "{\"mcpServers\": {}}", "{\"mcpServers\": null}", "// none\n{}"} {
		w := newTestHome(t)
		w.write(cursorFile, text)
		r := w.connect("cursor")
		require.False(t, r.Changed())
		require.Equal(t, connect.StateEmpty, r.Files[0].State, "%q", text)
		require.Equal(t, map[string]string{cursorFile: text}, w.tree("home", "project", "state"))
		_, err := w.client("cursor").Disconnect(w.Environment, connect.Write)
		require.ErrorIs(t, err, connect.ErrNotConnected)
	}
	w := newTestHome(t)
	for _, c := range connect.Clients() {
		r := w.connect(c.Name())
		for _, f := range r.Files {
			require.Equal(t, connect.StateAbsent, f.State)
		}
	}
	require.Empty(t, w.tree("home", "project", "state"))
}

// TestInvalidFiles: each is told with its place, none of its values is repeated, and
// nothing is written anywhere.
func TestInvalidFiles(t *testing.T) {
	for _, tt := range []struct{ client, file, text, want string }{
		{"cursor", cursorFile, "{\n  \"mcpServers\": {\n", "mcp.json:3:1: "},
		{"cursor", cursorFile, "{\"mcpServers\": {\"fs\": {\"command\": hunter2}}}", "mcp.json:1:35: it is no valid value"},
		{"cursor", cursorFile, "{\"é\": 1,\n \"mcpServers\": []}", "mcp.json:2:16: \"mcpServers\" is not an object"},
		{"cursor", cursorFile, "[]", "mcp.json:1:1: it is not an object"},
		{"cursor", cursorFile, "{\"mcpServers\": {},\n\"mcpServers\": {}}", "mcp.json:2:1: \"mcpServers\" is there twice"},
		{"cursor", cursorFile, "{\"mcpServers\": {\"fs\": {\"command\":\"a\"},\n  \"f\\u0073\": {}}}", "mcp.json:2:3: \"fs\" is there twice"},
		{"cursor", cursorFile, "{\"mcpServers\": {\"fs\": {\"command\":\"a\", \"command\":\"b\"}}}", "mcp.json:1:39: \"command\" is there twice"},
		{"cursor", cursorFile, "{\"mcpServers\": {\"remit\": {\"command\":\"x\"},\n \"fs\": {\"command\":\"a\"}}}", "mcp.json:1:17: there is a server \"remit\""},
		{"cursor", cursorFile, "{\"a\": \"\xff\"}", "mcp.json:1:8: it is not UTF-8 here"},
		{"cursor", cursorFile, "\xff\xfe{\x00}\x00", "mcp.json: it is UTF-16"},
		{"codex", codexFile, "x = 1\n[mcp_servers.fs\n", "config.toml:2:16: "},
		{"codex", codexFile, "[mcp_servers.fs]\ncommand = \"a\"\ncommand = \"b\"\n", "config.toml:3:1: "},
		{"codex", codexFile, "[mcp_servers.fs]\n[mcp_servers.fs]\n", "config.toml:2:"},
		{"codex", codexFile, "mcp_servers = { fs = { command = \"a\" } }\n", "config.toml:1:1: \"mcp_servers\" is written on one line"},
		{"claude-code", "home/.claude.json", "{\"projects\": {\"/a\": {\"mcpServers\": 1}}}", ".claude.json:1:36: "},
	} {
		w := newTestHome(t)
		w.write(tt.file, tt.text)
		_, err := w.client(tt.client).Connect(w.Environment, connect.Write)
		require.ErrorContains(t, err, tt.want, "%q", tt.text)
		require.NotContains(t, err.Error(), "hunter2")
		require.Equal(t, map[string]string{tt.file: tt.text}, w.tree("home", "project", "state"))
		status, err := w.client(tt.client).Status(w.Environment)
		require.NoError(t, err)
		if !strings.Contains(tt.want, "remit") {
			require.Equal(t, connect.StateUnreadable, status.Files[0].State)
			require.Contains(t, status.Files[0].Error, tt.want)
		}
	}
	w := newTestHome(t)
	w.write(cursorFile, one)
	w.write(gatewayFile, "{")
	_, err := w.client("cursor").Connect(w.Environment, connect.Write)
	require.ErrorContains(t, err, "gateway.json:1:2: ")
	require.Equal(t, one, w.read(cursorFile))
}

// TestMarksAndLineEnds: what editors on Windows leave stays as it is.
func TestMarksAndLineEnds(t *testing.T) {
	w := newTestHome(t)
	text := "\ufeff" + strings.ReplaceAll(one, "\n", "\r\n")
	w.write(cursorFile, text)
	w.connect("cursor")
	after := w.read(cursorFile)
	require.True(t, strings.HasPrefix(after, "\ufeff{\r\n"))
	require.NotContains(t, strings.ReplaceAll(after, "\r\n", ""), "\n")
	require.Contains(t, after, "\"remit\": {\r\n      \"command\"")
	w.disconnect("cursor")
	require.Equal(t, text, w.read(cursorFile))
}

// TestFileStaysWhatItWas: a link stays a link, bits and owner stay.
func TestFileStaysWhatItWas(t *testing.T) {
	fileStaysWhatItWas(t, false)
	if os.Getuid() == 0 {
		fileStaysWhatItWas(t, true)
	}
}

func fileStaysWhatItWas(t *testing.T, foreign bool) {
	w := newTestHome(t)
	w.write("dotfiles/cursor.json", one)
	real := w.at("dotfiles/cursor.json")
	require.NoError(t, os.Chmod(real, 0o640))
	if foreign {
		require.NoError(t, os.Chown(real, 12345, 23456))
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(w.at(cursorFile)), 0o755))
	require.NoError(t, os.Symlink("../../dotfiles/cursor.json", w.at(cursorFile)))
	look := func() {
		target, err := os.Readlink(w.at(cursorFile))
		require.NoError(t, err)
		require.Equal(t, "../../dotfiles/cursor.json", target)
		info, err := os.Stat(real)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o640), info.Mode())
		if foreign {
			require.Equal(t, [2]uint32{12345, 23456}, ownerOf(info))
		}
		entries, err := os.ReadDir(w.at("dotfiles"))
		require.NoError(t, err)
		require.Len(t, entries, 1)
	}
	w.connect("cursor")
	require.Contains(t, w.read("dotfiles/cursor.json"), `"remit"`)
	look()
	w.disconnect("cursor")
	require.Equal(t, one, w.read("dotfiles/cursor.json"))
	look()
}

// TestWhatMustNotBeReplaced: a file that is read-only, has other names, is a folder or
// leads nowhere is refused before anything is written.
func TestWhatMustNotBeReplaced(t *testing.T) {
	for _, tt := range []struct {
		want string
		make func(w *testHome)
	}{
		{"it is read-only", func(w *testHome) { require.NoError(w.t, os.Chmod(w.at(cursorFile), 0o444)) }},
		{"other names", func(w *testHome) { require.NoError(w.t, os.Link(w.at(cursorFile), w.at("home/.cursor/other"))) }},
		{"not a file", func(w *testHome) {
			require.NoError(w.t, os.Remove(w.at(cursorFile)))
			require.NoError(w.t, os.Mkdir(w.at(cursorFile), 0o755))
		}},
		{"leads nowhere", func(w *testHome) {
			require.NoError(w.t, os.Remove(w.at(cursorFile)))
			require.NoError(w.t, os.Symlink("nowhere", w.at(cursorFile)))
		}},
	} {
		w := newTestHome(t)
		w.write(cursorFile, one)
		tt.make(w)
		_, err := w.client("cursor").Connect(w.Environment, connect.Write)
		require.ErrorContains(t, err, tt.want)
		require.Empty(t, w.tree("state"))
		_, err = os.Stat(w.at(gatewayFile))
		require.ErrorIs(t, err, os.ErrNotExist)
	}
}

// TestForeignChangesStay checks that disconnect keeps the changes that a user
// made after connect. It removes what connect added.
func TestForeignChangesStay(t *testing.T) {
	before := "{\n  \"starts\": 1,\n  \"mcpServers\": {\n    // the files\n    \"fs\": {\"command\": \"fs\"}, // all\n    \"git\": {\"command\": \"git\"}\n  },\n  \"end\": true\n}\n"
	for _, tt := range []struct {
		name        string
		change, yet func(connected string) string
		note        string
	}{
		{
			"elsewhere",
			func(c string) string {
				return strings.Replace(strings.Replace(c, "1", "99", 1), "\"end\": true", "\"end\": false", 1)
			},
			func(string) string {
				return "{\n  \"starts\": 99,\n  \"mcpServers\": {\n    // the files\n    \"fs\": {\"command\": \"fs\"},\n    \"git\": {\"command\": \"git\"} // all\n  },\n  \"end\": false\n}\n"
			},
			"what remit connect added is removed",
		},
		{
			"a server more",
			func(c string) string {
				return strings.Replace(c, "\"mcpServers\": {", "\"mcpServers\": {\n    \"new\": {\"command\": \"new\"},", 1)
			},
			func(string) string {
				return "{\n  \"starts\": 1,\n  \"mcpServers\": {\n    \"new\": {\"command\": \"new\"},\n    // the files\n    \"fs\": {\"command\": \"fs\"},\n    \"git\": {\"command\": \"git\"} // all\n  },\n  \"end\": true\n}\n"
			},
			"what remit connect added is removed",
		},
		{
			"a server of a name that was there",
			func(c string) string {
				return strings.Replace(c, "\"mcpServers\": {", "\"mcpServers\": {\n    \"fs\": {\"command\": \"another\"},", 1)
			},
			func(string) string {
				return "{\n  \"starts\": 1,\n  \"mcpServers\": {\n    \"fs\": {\"command\": \"another\"},\n    // the files\n    \"git\": {\"command\": \"git\"} // all\n  },\n  \"end\": true\n}\n"
			},
			`server "fs" is there again, and another one than before`,
		},
		{
			"the gateway's entry",
			func(c string) string { return strings.Replace(c, "\"gateway\"", "\"gateway\", \"--verbose\"", 1) },
			func(c string) string {
				return strings.Replace(c, "    } // all\n", "    },\n    \"fs\": {\"command\": \"fs\"},\n    \"git\": {\"command\": \"git\"} // all\n", 1)
			},
			`server "remit" was changed since`,
		},
		{
			"the gateway is out already",
			func(string) string {
				return "{\"mcpServers\": {\"fs\": {\"command\": \"fs\"}, \"git\": {\"command\": \"git\"}}}"
			},
			func(c string) string { return c },
			"it does not lead to the gateway any more",
		},
		{
			"the table is gone",
			func(string) string { return "{\n  \"x\": 1\n}" },
			func(string) string {
				return "{\n  \"x\": 1,\n  \"mcpServers\": {\n    \"fs\": {\n      \"command\": \"fs\"\n    },\n    \"git\": {\n      \"command\": \"git\"\n    }\n  }\n}"
			},
			"what remit connect added is removed",
		},
		{"it is empty", func(string) string { return "" }, func(string) string { return "" }, "it is empty now"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newTestHome(t)
			w.write(cursorFile, before)
			w.connect("cursor")
			foreign := tt.change(w.read(cursorFile))
			w.write(cursorFile, foreign)
			want := tt.yet(foreign)
			r := w.disconnect("cursor")
			require.Equal(t, want, w.read(cursorFile))
			require.False(t, r.Files[0].Identical)
			require.Contains(t, strings.Join(r.Files[0].Notes, "\n"), tt.note)
			backup, err := os.ReadFile(r.Files[0].Backup)
			require.NoError(t, err)
			require.Equal(t, before, string(backup), "the backup stays")
			_, err = w.client("cursor").Disconnect(w.Environment, connect.Write)
			require.ErrorIs(t, err, connect.ErrNotConnected)
		})
	}
}

func TestForeignChangesStayInTOML(t *testing.T) {
	before := "a = 1\n\n[mcp_servers.fs]\ncommand = \"fs\" # this\n\n[other]\nb = 2\n\n[mcp_servers.git]\ncommand = \"git\"\n"
	w := newTestHome(t)
	w.write(codexFile, before)
	w.connect("codex")
	connected := w.read(codexFile)
	require.Equal(t, "a = 1\n\n[mcp_servers.remit]\ncommand = \"/opt/remit/bin/remit\"\nargs = [\"gateway\", \"--config\", \""+w.at(gatewayFile)+"\"]\n\n[other]\nb = 2\n\n",
		connected)
	w.write(codexFile, strings.Replace(connected, "b = 2", "b = 3\n\n[mcp_servers.new]\ncommand = \"new\"", 1))
	w.disconnect("codex")
	require.Equal(t, "a = 1\n\n[mcp_servers.fs]\ncommand = \"fs\" # this\n\n[mcp_servers.git]\ncommand = \"git\"\n\n[other]\nb = 3\n\n[mcp_servers.new]\ncommand = \"new\"\n\n",
		w.read(codexFile))
}

// TestFileIsGone checks that the backup keeps the content of a file that the
// user removed after connect.
func TestFileIsGone(t *testing.T) {
	w := newTestHome(t)
	w.write(cursorFile, one)
	w.connect("cursor")
	require.NoError(t, os.Remove(w.at(cursorFile)))
	r := w.disconnect("cursor")
	require.Equal(t, connect.StateAbsent, r.Files[0].State)
	backup, err := os.ReadFile(r.Files[0].Backup)
	require.NoError(t, err)
	require.Equal(t, one, string(backup))
}

// TestConnectingAgain takes in what came since, and disconnecting then leaves all of it.
func TestConnectingAgain(t *testing.T) {
	w := newTestHome(t)
	w.write(cursorFile, one)
	w.connect("cursor")
	w.write(cursorFile, strings.Replace(w.read(cursorFile), "\"mcpServers\": {", "\"mcpServers\": {\n    \"new\": {\n      \"command\": \"new\"\n    },", 1))
	status, err := w.client("cursor").Status(w.Environment)
	require.NoError(t, err)
	require.Equal(t, connect.StateMixed, status.Files[0].State)

	require.True(t, w.connect("cursor").Changed())
	status, err = w.client("cursor").Status(w.Environment)
	require.NoError(t, err)
	require.Equal(t, connect.StateRouted, status.Files[0].State)
	require.Contains(t, w.read(gatewayFile), `"new"`)
	require.Contains(t, w.read(gatewayFile), `"fs"`)

	r := w.disconnect("cursor")
	require.True(t, r.Files[0].Identical)
	require.Equal(t, "{\n  \"mcpServers\": {\n    \"new\": {\n      \"command\": \"new\"\n    },\n    \"fs\": {\n      \"command\": \"fs\"\n    }\n  }\n}\n", w.read(cursorFile))
	require.Equal(t, map[string]string{cursorFile: w.read(cursorFile)}, w.tree("home", "state"))
}

// TestTheCommandMoved: connecting again leads to where remit is now.
func TestTheCommandMoved(t *testing.T) {
	w := newTestHome(t)
	w.write(cursorFile, one)
	w.connect("cursor")
	w.Command = "/usr/bin/remit"
	require.True(t, w.connect("cursor").Changed())
	require.Contains(t, w.read(cursorFile), `"/usr/bin/remit"`)
	require.True(t, w.disconnect("cursor").Files[0].Identical)
	require.Equal(t, one, w.read(cursorFile))
}

// TestWorkspace: a client that starts its servers anywhere has the gateway work in a folder that is named, until another one is. That of a
// project works in the project.
func TestWorkspace(t *testing.T) {
	w := newTestHome(t)
	w.write(cursorFile, one)
	w.write("project/.cursor/mcp.json", one)
	w.Workspace = "work"
	_, err := w.client("cursor").Connect(w.Environment, connect.Write)
	require.ErrorContains(t, err, `the workspace "work" is not an absolute path`)
	w.Workspace = "/work"
	w.connect("cursor")
	require.Regexp(t, `"--workspace",\s+"/work"\s`, w.read(cursorFile))
	require.NotContains(t, w.read("project/.cursor/mcp.json"), "--workspace")
	w.Workspace = ""
	require.False(t, w.connect("cursor").Changed())
	w.Workspace = "/other"
	w.connect("cursor")
	require.Regexp(t, `"--workspace",\s+"/other"\s`, w.read(cursorFile))
	require.NotContains(t, w.read(cursorFile), `"/work"`)
	w.disconnect("cursor")
	require.Equal(t, one, w.read(cursorFile))
}

// TestDefinitionFollowsItsClient: what only this client brought follows it.
func TestDefinitionFollowsItsClient(t *testing.T) {
	w := newTestHome(t)
	w.write(cursorFile, one)
	w.connect("cursor")
	w.write(cursorFile, strings.ReplaceAll(one, `"command": "fs"`, `"command": "fs2"`))
	w.connect("cursor")
	require.Contains(t, w.read(gatewayFile), `"fs2"`)
	w.disconnect("cursor")
	require.Equal(t, strings.ReplaceAll(one, `"command": "fs"`, `"command": "fs2"`), w.read(cursorFile))
	require.Empty(t, w.tree("home/.config", "state"))
}

// TestTwoClients share a server that is one, and cannot both have one name for two.
func TestTwoClients(t *testing.T) {
	w := newTestHome(t)
	w.write(cursorFile, one)
	codex := "[mcp_servers.fs]\ncommand = \"fs\"\nargs = []\ntool_timeout_sec = 9\n"
	w.write(codexFile, codex)
	w.connect("cursor")
	gateway := w.read(gatewayFile)
	require.Empty(t, w.connect("codex").Gateways, "it is the same server")
	require.Equal(t, gateway, w.read(gatewayFile))

	w.write(cursorFile, strings.ReplaceAll(one, `"command": "fs"`, `"command": "fs2"`))
	_, err := w.client("cursor").Connect(w.Environment, connect.Write)
	require.ErrorContains(t, err, "which came from Codex", "it would change what another client has")
	require.Equal(t, gateway, w.read(gatewayFile))
	w.write(cursorFile, one)
	w.connect("cursor")
	r := w.disconnect("cursor")
	require.Equal(t, []string{"fs, which is also from Codex (" + w.at(codexFile) + ")"}, r.Gateways[0].Kept)
	require.Equal(t, gateway, w.read(gatewayFile))
	w.disconnect("codex")
	require.Equal(t, map[string]string{cursorFile: one, codexFile: codex}, w.tree("home", "state"))

	w.connect("cursor")
	w.write(codexFile, "# Mine.\n[mcp_servers.fs]\ncommand = \"fs\"\nargs = [\"--all\"]\n")
	before := w.tree("home", "state")
	_, err = w.client("codex").Connect(w.Environment, connect.Write)
	var conflict *connect.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, "fs", conflict.Name)
	require.Equal(t, w.at(gatewayFile), conflict.Gateway)
	require.ErrorContains(t, err, "that of Codex at "+w.at(codexFile)+":2:14")
	require.ErrorContains(t, err, "the one at "+w.at(gatewayFile)+":3:5, which came from Cursor ("+w.at(cursorFile)+")")
	require.Equal(t, before, w.tree("home", "state"))

	w.Gateway = w.at("home/other.json")
	w.connect("codex")
	require.Contains(t, w.read("home/other.json"), "--all")
}

// TestOneConfigurationForAll: the scopes of one client meet in a configuration that is named.
func TestOneConfigurationForAll(t *testing.T) {
	w := newTestHome(t)
	w.write(cursorFile, one)
	w.write("project/.cursor/mcp.json", strings.ReplaceAll(one, `"command": "fs"`, `"command": "here"`))
	w.Gateway = w.at("home/all.json")
	_, err := w.client("cursor").Connect(w.Environment, connect.Write)
	require.ErrorContains(t, err, `there are two servers "fs": that of Cursor at `+w.at("project/.cursor/mcp.json")+":3:5, and that of Cursor at "+w.at(cursorFile)+":3:5")
	w.Gateway = ""
	w.connect("cursor")
}

// TestTheGatewaysOwnStays checks that connect and disconnect keep comments,
// order and rules that the user wrote into the gateway's configuration.
func TestTheGatewaysOwnStays(t *testing.T) {
	w := newTestHome(t)
	own := "{\n\t// mine\n\t\"mcpServers\": {\n\t\t\"own\": {\"command\": \"own\"}, // first\n\t},\n\t\"policy\": \"strict\", // last\n}\n"
	w.write(gatewayFile, own)
	w.write(cursorFile, one)
	w.connect("cursor")
	got := w.read(gatewayFile)
	require.Equal(t, "{\n\t// mine\n\t\"mcpServers\": {\n\t\t\"own\": {\"command\": \"own\"},\n\t\t\"fs\": {\n\t\t\t\"command\": \"fs\"\n\t\t}, // first\n\t},\n\t\"policy\": \"strict\", // last\n}\n", got)
	info, err := os.Stat(w.at(gatewayFile))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode(), "it may hold secrets now")
	w.disconnect("cursor")
	require.Equal(t, own, w.read(gatewayFile))

	w.connect("cursor")
	ruled := strings.Replace(w.read(gatewayFile), "\"command\": \"fs\"", "\"command\": \"fs\",\n\t\t\t\"tools\": {}", 1)
	w.write(gatewayFile, ruled)
	require.Empty(t, w.connect("cursor").Gateways, "rules do not make another server of it")
	r := w.disconnect("cursor")
	require.Equal(t, []string{"fs, which was changed since"}, r.Gateways[0].Kept)
	require.Equal(t, ruled, w.read(gatewayFile))
	require.Equal(t, one, w.read(cursorFile))
}

// TestSecretsStayPrivate: files that hold them are the user's alone, and a preview does
// not show them.
func TestSecretsStayPrivate(t *testing.T) {
	w := newTestHome(t)
	w.write(cursorFile, `{"mcpServers": {"a": {"command": "a", "env": {"T": "s3cret\"value", "P": "pin1"}}, "b": {"url": "https://b", "headers": {"K": "another secret"}}}}`)
	w.write(codexFile, "[mcp_servers.c]\ncommand = 'c'\n[mcp_servers.c.env]\nT = 's3cret-of-codex'\n")
	for _, name := range []string{"cursor", "codex"} {
		shown, err := w.client(name).Connect(w.Environment, connect.Preview)
		require.NoError(t, err)
		w.connect(name)
		back, err := w.client(name).Disconnect(w.Environment, connect.Preview)
		require.NoError(t, err)
		for _, r := range []connect.Report{shown, back} {
			require.NotEmpty(t, r.Gateways[0].Diff)
			for _, text := range []string{r.Files[0].Diff, r.Gateways[0].Diff} {
				require.Contains(t, text, "(hidden)")
				require.NotContains(t, text, "s3cret")
				require.NotContains(t, text, "pin1")
				require.NotContains(t, text, "another secret")
			}
		}
	}
	require.Contains(t, w.read(gatewayFile), `"s3cret\"value"`)
	private := map[string]os.FileMode{gatewayFile: 0o600}
	for name := range w.tree("state") {
		private[name] = 0o600
	}
	require.Len(t, private, 5)
	for name := range private {
		info, err := os.Stat(w.at(name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode(), name)
		info, err = os.Stat(filepath.Dir(w.at(name)))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), name)
	}
}

// TestOtherSystems: where clients keep their files depends on the system and on variables.
func TestOtherSystems(t *testing.T) {
	for _, tt := range []struct{ os, client, file, gateway string }{
		{"darwin", "claude-desktop", "home/Library/Application Support/Claude/claude_desktop_config.json", "home/Library/Application Support/remit/gateway.json"},
		{"windows", "claude-desktop", "roaming/Claude/claude_desktop_config.json", "roaming/remit/gateway.json"},
		{"linux", "claude-code", "claude/.claude.json", "xdg/remit/gateway.json"},
		{"linux", "codex", "codex/config.toml", "xdg/remit/gateway.json"},
	} {
		w := newTestHome(t)
		w.OS = tt.os
		w.Env = func(name string) string {
			return map[string]string{"APPDATA": w.at("roaming"), "XDG_CONFIG_HOME": w.at("xdg"), "CODEX_HOME": w.at("codex"), "CLAUDE_CONFIG_DIR": w.at("claude")}[name]
		}
		text := one
		if tt.client == "codex" {
			text = "[mcp_servers.fs]\ncommand = \"fs\"\n"
		}
		w.write(tt.file, text)
		require.True(t, w.connect(tt.client).Changed(), tt.file)
		require.Contains(t, w.read(tt.gateway), `"fs"`)
	}
}

// TestAProjectThatIsTheHome has one file in two scopes, which is edited once.
func TestAProjectThatIsTheHome(t *testing.T) {
	w := newTestHome(t)
	w.write(cursorFile, one)
	w.Project = w.Home
	require.Len(t, w.connect("cursor").Files, 2, "servers and hooks")
	w.disconnect("cursor")
	require.Equal(t, one, w.read(cursorFile))
}

func TestPlaceIsAbsolute(t *testing.T) {
	w := newTestHome(t)
	for _, p := range []connect.Environment{
		{Home: w.Home, State: w.State},
		{Home: "home", State: w.State, Command: "/x"},
		{Home: w.Home, State: "", Command: "/x"},
		{Home: w.Home, State: w.State, Command: "/x", Project: "p"},
		{Home: w.Home, State: w.State, Command: "/x", Gateway: "g.json"},
	} {
		c := w.client("cursor")
		_, err := c.Connect(p, connect.Write)
		require.ErrorContains(t, err, "is not an absolute path")
		_, err = c.Disconnect(p, connect.Write)
		require.ErrorContains(t, err, "is not an absolute path")
		_, err = c.Status(p)
		require.ErrorContains(t, err, "is not an absolute path")
	}
	_, err := connect.ClientByName("curser")
	require.ErrorContains(t, err, `did you mean "cursor"?`)
	_, err = connect.ClientByName("emacs")
	require.ErrorContains(t, err, "valid are claude-code, claude-desktop, codex, cursor, gemini-cli, opencode, vscode, windsurf")
	r, err := connect.Client{}.Connect(w.Environment, connect.Write)
	require.NoError(t, err)
	require.Empty(t, r.Files, "the zero client has none")
}

// TestTimeoutsOfServersAreThoseOfTheGateway: one that is slow is waited for as long as before.
func TestTimeoutsOfServersAreThoseOfTheGateway(t *testing.T) {
	w := newTestHome(t)
	w.write(codexFile, "[mcp_servers.a]\ncommand = 'a'\nstartup_timeout_sec = 20\n[mcp_servers.b]\ncommand = 'b'\nstartup_timeout_sec = 7.5\ntool_timeout_sec = 90\n[mcp_servers.c]\ncommand = 'c'\nenabled = false\nstartup_timeout_sec = 99\n")
	w.connect("codex")
	require.Contains(t, w.read(codexFile), "\nstartup_timeout_sec = 20\ntool_timeout_sec = 90\n[mcp_servers.c]")
}

// TestWhatWasThereIsNobodysToTake checks that disconnect keeps a server that
// the gateway had before connect, even if the client has it too.
func TestWhatWasThereIsNobodysToTake(t *testing.T) {
	w := newTestHome(t)
	w.write(gatewayFile, one)
	w.write(cursorFile, one)
	w.connect("cursor")
	require.False(t, w.connect("cursor").Changed())
	w.disconnect("cursor")
	require.Equal(t, one, w.read(gatewayFile))
}

// TestRulesAreNotOverwritten: a server with rules beside it that becomes another one is told
// of, and the rules stay as they are.
func TestRulesAreNotOverwritten(t *testing.T) {
	w := newTestHome(t)
	w.write(cursorFile, one)
	w.connect("cursor")
	ruled := strings.Replace(w.read(gatewayFile), `"command": "fs"`, `"tools": {}, "command": "fs"`, 1)
	w.write(gatewayFile, ruled)
	w.write(cursorFile, strings.ReplaceAll(one, `"command": "fs"`, `"command": "fs2"`))
	_, err := w.client("cursor").Connect(w.Environment, connect.Write)
	require.ErrorContains(t, err, `there are two servers "fs"`)
	require.Equal(t, ruled, w.read(gatewayFile))
}

// TestAServerStaysWithItsRules: the gateway refuses rules for a server that is not there, and another client may need it.
func TestAServerStaysWithItsRules(t *testing.T) {
	w := newTestHome(t)
	w.write(cursorFile, one)
	w.write(codexFile, "[mcp_servers.other]\ncommand = \"other\"\n")
	w.connect("cursor")
	w.connect("codex")
	ruled := strings.TrimSuffix(w.read(gatewayFile), "\n}\n") + ",\n  \"remit\": {\"servers\": {\"fs\": {\"tools\": {\"t\": {\"effectClass\": \"pure\"}}}}}\n}\n"
	w.write(gatewayFile, ruled)
	r := w.disconnect("cursor")
	require.Equal(t, []string{"fs, which has rules"}, r.Gateways[0].Kept)
	require.Equal(t, one, w.read(cursorFile))
	require.Equal(t, ruled, w.read(gatewayFile))
	_, err := config.Parse(gatewayFile, []byte(w.read(gatewayFile)), os.LookupEnv)
	require.NoError(t, err)

	w.connect("cursor")
	w.disconnect("cursor")
	require.Equal(t, ruled, w.read(gatewayFile))
	r = w.disconnect("codex")
	require.Equal(t, []string{"other"}, r.Gateways[0].Removed, "nobody has written rules for it")
	_, err = config.Parse(gatewayFile, []byte(w.read(gatewayFile)), os.LookupEnv)
	require.NoError(t, err)

	w.write(cursorFile, strings.ReplaceAll(one, `"fs"`, `"fs3"`))
	w.connect("cursor")
	w.write(gatewayFile, strings.Replace(w.read(gatewayFile), `"servers": {"fs"`, `"servers": [], "was": {"fs"`, 1))
	r = w.disconnect("cursor")
	require.Equal(t, []string{"fs3"}, r.Gateways[0].Removed, "rules that cannot be read hold nobody up")
}

// TestNoGapIsLeft where servers that followed each other go.
func TestNoGapIsLeft(t *testing.T) {
	w := newTestHome(t)
	w.write(codexFile, "[mcp_servers.a]\ncommand = 'a'\n\n[mcp_servers.b]\ncommand = 'b'\n\n[mcp_servers.c]\ncommand = 'c'\n\n[other]\nx = 1\n")
	w.connect("codex")
	require.Equal(t, "[mcp_servers.remit]\ncommand = \"/opt/remit/bin/remit\"\nargs = [\"gateway\", \"--config\", \""+w.at(gatewayFile)+"\"]\n\n[other]\nx = 1\n", w.read(codexFile))
}
