package connect_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/internal/connect"
	"github.com/remit-dev/remit/internal/proof/statcheck"
)

// hookFiles has the file with hooks of each client that has one beside others'
// hooks, with an event.
var hookFiles = map[string][2]string{
	"claude-code": {"home/.claude/settings.json", "PreToolUse"},
	"codex":       {"home/.codex/hooks.json", "PreToolUse"},
	"cursor":      {"home/.cursor/hooks.json", "preToolUse"},
	"gemini-cli":  {"home/.gemini/settings.json", "BeforeTool"},
}

func listJSON(t *rapid.T, elements []string) string {
	object := objectJSON(t, elements)
	return "[" + object[1:len(object)-1] + "]"
}

// settingsJSON draws settings with hooks of other programs in them.
func settingsJSON(t *rapid.T, event string) string {
	var events []string
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{event, "Stop", "stop", "SessionStart", "Other"}), 0, 4, rapid.ID[string]).Draw(t, "events") {
		var others []string
		for range rapid.IntRange(0, 2).Draw(t, "others") {
			command := jsonText(t, "./"+values.Draw(t, "command"))
			others = append(others, rapid.SampledFrom([]string{
				`{"hooks": [{"type": "command",` + gap(t) + `"command": ` + command + `}]}`, `{"command": ` + command + `, "timeout": 1.50}`, `null`,
			}).Draw(t, "other"))
		}
		events = append(events, jsonText(t, name)+gap(t)+":"+gap(t)+listJSON(t, others))
	}
	members := []string{`"first": [1, 2]`, `"env": {"KEY": "OTHER"}`}
	if rapid.Bool().Draw(t, "hooks") {
		members = append(members, `"hooks":`+gap(t)+objectJSON(t, events))
	}
	if rapid.Bool().Draw(t, "servers") {
		members = append(members, `"mcpServers":`+gap(t)+serversJSON(t))
	}
	members = rapid.Permutation(members).Draw(t, "order")
	text := rapid.SampledFrom([]string{"", "\ufeff"}).Draw(t, "mark") + gap(t) + objectJSON(t, members) + gap(t)
	return rapid.SampledFrom([]string{text, text, text, text, "", " \r\n", "\ufeff", "{}"}).Draw(t, "text")
}

// TestHooksGoInAndOut checks that disconnect restores every file of a client
// with hooks, also one that was missing. If something else in the file changed
// meanwhile, or it was written anew, only the hooks go.
func TestHooksGoInAndOut(t *testing.T) {
	statcheck.Checks(t, 60, 3000)
	rapid.Check(t, func(rt *rapid.T) {
		w := newTestHome(t)
		defer func() { require.NoError(rt, os.RemoveAll(w.root)) }()
		w.Hooks = [][]connect.Scope{{connect.User}, {connect.Project}, {connect.User, connect.Project}}[rapid.IntRange(0, 2).Draw(rt, "scopes")]
		name := rapid.SampledFrom([]string{"claude-code", "codex", "cursor", "gemini-cli"}).Draw(rt, "client")
		user := hookFiles[name]
		files := map[string]string{}
		for _, file := range []string{user[0], strings.Replace(user[0], "home/", "project/", 1)} {
			if rapid.Bool().Draw(rt, "there") {
				files[file] = settingsJSON(rt, user[1])
				w.write(file, files[file])
			}
		}
		folders := w.folders()
		c := w.client(name)
		r, err := c.Connect(w.Environment, connect.Write)
		if conflict(err) {
			require.Equal(rt, files, w.tree("home", "project"))
			return
		}
		require.NoError(rt, err)
		require.True(rt, r.Changed())
		require.Equal(rt, connect.HooksOn, r.Coverage.OwnTools)
		status, err := c.Status(w.Environment)
		require.NoError(rt, err)
		require.Equal(rt, connect.HooksOn, status.Coverage.OwnTools)
		again, err := c.Connect(w.Environment, connect.Write)
		require.NoError(rt, err)
		require.False(rt, again.Changed())

		connected := w.tree("home", "project")
		done, err := c.Disconnect(w.Environment, connect.Write)
		require.NoError(rt, err)
		require.Equal(rt, files, w.tree("home", "project", "state"))
		require.Equal(rt, folders, w.folders())
		for _, f := range done.Files {
			require.True(rt, f.Identical)
		}

		_, err = c.Connect(w.Environment, connect.Write)
		require.NoError(rt, err)
		require.Equal(rt, connected, w.tree("home", "project"))
		for file, text := range files {
			w.write(file, strings.Replace(connected[file], "OTHER", "ANOTHER", 1))
			files[file] = strings.Replace(text, "OTHER", "ANOTHER", 1)
		}
		_, err = c.Disconnect(w.Environment, connect.Write)
		require.NoError(rt, err)
		for file, text := range files {
			require.Equal(rt, meaning(rt, text), meaning(rt, w.read(file)), "%s\n%s", text, w.read(file))
		}
	})
}

func conflict(err error) bool {
	var two *connect.ConflictError
	return errors.As(err, &two)
}

// meaning is what settings say; of servers only their names, which can have
// another order.
func meaning(t *rapid.T, text string) map[string]any {
	v, err := connect.ValuesForTest([]byte(text))
	require.NoError(t, err, "%s", text)
	return v
}

// folders lists all folders.
func (w *testHome) folders() (all []string) {
	for _, name := range []string{"home", "project"} {
		require.NoError(w.t, filepath.WalkDir(w.at(name), func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() && !strings.Contains(path, "/.config") {
				all = append(all, path)
			}
			return err
		}))
	}
	return all
}

// TestForeignFormatKeepsOthersHooks: a client that writes its settings anew,
// in its own form, loses no hook when remit disconnects.
func TestForeignFormatKeepsOthersHooks(t *testing.T) {
	w := newTestHome(t)
	w.Hooks = []connect.Scope{connect.User}
	for name, of := range hookFiles {
		w.write(of[0], fmt.Sprintf(`{"hooks": {%q: [{"command": "./mine"}]}}`, of[1]))
		w.connect(name)
		var v map[string]any
		require.NoError(t, json.Unmarshal([]byte(w.read(of[0])), &v))
		events, ok := v["hooks"].(map[string]any)
		require.True(t, ok)
		list, ok := events[of[1]].([]any)
		require.True(t, ok)
		events[of[1]] = append(list, map[string]any{"command": "./later"})
		text, err := json.MarshalIndent(v, "", "        ")
		require.NoError(t, err)
		w.write(of[0], string(text))
		r := w.disconnect(name)
		require.JSONEq(t, fmt.Sprintf(`{"hooks": {%q: [{"command": "./mine"}, {"command": "./later"}]}}`, of[1]), w.read(of[0]), name)
		for _, f := range r.Files {
			require.Equal(t, f.Path != w.at(of[0]), f.Identical, f.Path)
		}
	}
}
