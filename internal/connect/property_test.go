package connect_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/internal/connect"
	"github.com/remit-dev/remit/internal/proof/statcheck"
)

// gap draws white space and comments as they may stand between two parts of JSON.
func gap(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", " ", "\n", "\n\t", "\r\n  ", "\n    ", " /* { */ ", "\n// \"}\n  ", " // x\r\n"}).Draw(t, "gap")
}

func jsonText(t *rapid.T, v string) string {
	text, _ := json.Marshal(v)
	return string(text)
}

var (
	names  = rapid.StringOfN(rapid.SampledFrom([]rune("abc -_.é\"\\ü{}")), 1, 5, -1)
	values = rapid.SampledFrom([]string{"x", "", "a b", "${HOME}", "${env:KEY}", "${input:q}", "\"quoted\"", "\\", "#{}", "ü\n"})
)

// serverJSON draws one server's entry, sensible or not.
func serverJSON(t *rapid.T) string {
	v := jsonText(t, values.Draw(t, "value"))
	return rapid.SampledFrom([]string{
		`{"command": ` + v + `}`,
		`{"command": "x", "args": [` + v + "," + gap(t) + `"y"], "env": {"K":` + gap(t) + v + `}}`,
		`{` + gap(t) + `"url": "https://a"` + gap(t) + `,"headers": {"H": ` + v + `}` + gap(t) + `}`,
		`{"serverUrl": ` + v + `}`,
		`{"command": "x", "disabled": true}`,
		`{"command": "x", "future": [1.50, null, {"a": ` + v + `}]}`,
		`{}`, `null`, `{"command": 1}`,
	}).Draw(t, "server")
}

func objectJSON(t *rapid.T, members []string) string {
	var b strings.Builder
	b.WriteString("{")
	for i, m := range members {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(gap(t) + m + gap(t))
	}
	if len(members) > 0 && rapid.Bool().Draw(t, "trailing comma") {
		b.WriteString("," + gap(t))
	}
	return b.String() + gap(t) + "}"
}

func serversJSON(t *rapid.T) string {
	var members []string
	for _, name := range rapid.SliceOfNDistinct(names, 0, 4, rapid.ID[string]).Draw(t, "names") {
		members = append(members, jsonText(t, name)+gap(t)+":"+gap(t)+serverJSON(t))
	}
	return objectJSON(t, members)
}

// configJSON draws a configuration with something in it that is no server.
func configJSON(t *rapid.T) string {
	members := []string{`"first": [1, 2]`, `"mcpServers":` + gap(t) + serversJSON(t), `"servers": ` + serversJSON(t), `"last": "OTHER"`}
	if rapid.Bool().Draw(t, "projects") {
		members = append(members, `"projects": {"/p/a": {"x": 1, "mcpServers": `+serversJSON(t)+`}, "/p/b": {}}`)
	}
	members = rapid.Permutation(members).Draw(t, "order")
	return rapid.SampledFrom([]string{"", "\ufeff"}).Draw(t, "mark") + gap(t) + objectJSON(t, members) + gap(t)
}

func serversTOML(t *rapid.T) string {
	key := func(name string) string {
		text, _ := json.Marshal(name)
		return string(text)
	}
	end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
	blocks := []string{"[other]" + end + "x = \"OTHER\"" + end, "# alone" + end}
	for _, name := range rapid.SliceOfNDistinct(names, 0, 4, rapid.ID[string]).Draw(t, "names") {
		k, v := key(name), key(values.Draw(t, "value"))
		blocks = append(blocks, rapid.SampledFrom([]string{
			"[mcp_servers." + k + "]" + end + "command = " + v + " # why" + end,
			"[mcp_servers." + k + "]" + end + "command = 'x'" + end + "args = [" + end + v + ", # a" + end + "]" + end + end + "[mcp_servers." + k + ".env]" + end + "K = " + v + end,
			"[ mcp_servers . " + k + " ]" + end + "url = 'https://a'" + end + "enabled = true" + end + "startup_timeout_sec = 1.5" + end,
			"[mcp_servers." + k + ".env]" + end + "K = '''" + end + "[mcp_servers.z]" + end + "'''" + end,
			"[mcp_servers." + k + "]" + end + "command = 'x'" + end + "env_vars = ['A']" + end + "bearer_token_env_var = 'B'" + end,
		}).Draw(t, "block"))
	}
	blocks = rapid.Permutation(blocks).Draw(t, "order")
	head := rapid.SampledFrom([]string{"", "a = 1" + end, "mcp_servers.dotted.command = 'x'" + end, "[mcp_servers]" + end + "under = { command = 'x' }" + end}).Draw(t, "head")
	text := head + strings.Join(blocks, rapid.SampledFrom([]string{"", end, end + end}).Draw(t, "between"))
	if rapid.Bool().Draw(t, "no last line end") {
		text = strings.TrimRight(text, "\r\n")
	}
	return text
}

// TestConnectThenDisconnectIsTheIdentity checks that disconnect restores any
// configuration of any client. If the user changed another part of the file
// meanwhile, disconnect keeps the change and restores the servers.
func TestConnectThenDisconnectIsTheIdentity(t *testing.T) {
	statcheck.Checks(t, 100, 3000)
	rapid.Check(t, func(rt *rapid.T) {
		w := newTestHome(t)
		files := map[string]string{
			"claude-code": "home/.claude.json", "claude-desktop": "home/.config/Claude/claude_desktop_config.json", "codex": codexFile,
			"cursor": cursorFile, "gemini-cli": "home/.gemini/settings.json", "opencode": "home/.config/opencode/opencode.json", "vscode": "project/.vscode/mcp.json", "windsurf": "home/.codeium/windsurf/mcp_config.json",
		}
		c := rapid.SampledFrom(connect.Clients()).Draw(rt, "client")
		name, text := files[c.Name()], ""
		if c.Name() == "codex" {
			text = serversTOML(rt)
		} else {
			text = configJSON(rt)
		}
		if c.Name() == "opencode" {
			text = strings.ReplaceAll(text, `"mcpServers"`, `"mcp"`)
		}
		w.write(name, text)
		r, err := c.Connect(w.Environment, connect.Write)
		var conflict *connect.ConflictError
		if errors.As(err, &conflict) { // two of the names drawn could be taken for one another
			require.Equal(rt, map[string]string{name: text}, w.tree("home", "project", "state"))
			return
		}
		require.NoError(rt, err, "%s", text)
		if !r.Changed() {
			require.Equal(rt, map[string]string{name: text}, w.tree("home", "project", "state"))
			return
		}
		again, err := c.Connect(w.Environment, connect.Write)
		require.NoError(rt, err)
		require.False(rt, again.Changed())
		status, err := c.Status(w.Environment)
		require.NoError(rt, err)
		for _, f := range status.Files {
			require.NotContains(rt, []connect.FileState{connect.StateDirect, connect.StateMixed, connect.StateUnreadable}, f.State, "%s", w.read(name))
		}

		connected := w.read(name)
		done, err := c.Disconnect(w.Environment, connect.Write)
		require.NoError(rt, err)
		require.Equal(rt, text, w.read(name))
		for _, f := range done.Files {
			require.True(rt, f.Identical)
		}
		require.Equal(rt, map[string]string{name: text}, w.tree("home", "project", "state"))

		_, err = c.Connect(w.Environment, connect.Write)
		require.NoError(rt, err)
		require.Equal(rt, connected, w.read(name))
		w.write(name, strings.Replace(connected, "OTHER", "ANOTHER", 1))
		_, err = c.Disconnect(w.Environment, connect.Write)
		require.NoError(rt, err)
		want := strings.Replace(text, "OTHER", "ANOTHER", 1)
		require.Contains(rt, w.read(name), "ANOTHER")
		require.Equal(rt, servers(rt, c, w, name, want), servers(rt, c, w, name, w.read(name)), "%s", w.read(name))
		require.NoError(rt, os.RemoveAll(w.root))
	})
}

// servers is what the gateway would get of a text, in any order, and what stays.
func servers(t *rapid.T, c connect.Client, w *testHome, name, text string) (all []string) {
	w.write(name, text)
	w.Gateway = w.at("all.json")
	defer func() { w.Gateway = "" }()
	r, err := c.Connect(w.Environment, connect.Preview)
	var conflict *connect.ConflictError
	if err != nil {
		require.ErrorAs(t, err, &conflict, "%s", text)
		return []string{conflict.Name}
	}
	for _, f := range r.Files {
		for _, s := range f.Servers {
			all = append(all, s.Name+": "+s.Why)
		}
	}
	for _, g := range r.Gateways {
		for line := range strings.Lines(g.Diff) {
			all = append(all, strings.TrimRight(line, ",\n"))
		}
	}
	slices.Sort(all)
	return all
}
