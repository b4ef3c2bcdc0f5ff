package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/completion"
	"github.com/remit-dev/remit/ctxperm/secrets/vault"
	"github.com/remit-dev/remit/internal/canon"
)

// strictObject reads one JSON object as strictly as input is read: no key twice,
// no two keys that differ in case alone, nothing after it.
func strictObject(t *testing.T, text string) canon.Value {
	t.Helper()
	v, err := canon.Parse([]byte(text), canon.DefaultLimits())
	require.NoError(t, err, text)
	require.Equal(t, canon.Object, v.Kind(), text)
	return v
}

// jsonPlace is a journal with what commands work on.
type jsonPlace struct {
	at                []string
	script, input     string
	done, waits, lost string // calls
	txn, reverted     string // transactions
	session           string
}

func newJSONPlace(t *testing.T) jsonPlace {
	t.Helper()
	workspace, state := testPlace(t)
	dir := t.TempDir()
	p := jsonPlace{at: []string{"--workspace", workspace, "--state", state}, script: filepath.Join(dir, "s.jsonl"), input: filepath.Join(dir, "i.json")}
	require.NoError(t, os.WriteFile(p.input, []byte(shownInput(t)), 0o600))
	id := func(kind string, flags ...string) string {
		var out bytes.Buffer
		run(t.Context(), append(append([]string{"run", "--json", p.script}, flags...), p.at...), jsonEnv(&out))
		found := regexp.MustCompile(`"` + kind + `":"([ct]_[^"]+)"`).FindStringSubmatch(out.String())
		require.NotNil(t, found, out.String())
		return found[1]
	}
	write := func(text string) { require.NoError(t, os.WriteFile(p.script, []byte(text), 0o600)) }
	write(`{"tool":"send","args":""}` + "\n")
	p.waits = id("call", "--on-ask", "wait")
	write(`{"tool":"lose","args":""}` + "\n")
	p.lost = id("call", "--on-ask", "approve-unsafe")
	write(`{"tool":"file_write","args":{"path":"b.txt","content":"x"}}` + "\n")
	p.reverted = id("txn", "--at-end", "revert")
	write(`{"tool":"file_write","args":{"path":"a.txt","content":"x"}}` + "\n" + `{"savepoint":"a"}` + "\n" +
		`{"tool":"file_read","args":{"path":"a.txt"}}` + "\n" + `{"tool":"file_write","args":{"path":".git/x","content":"x"}}` + "\n" +
		`{"revert_to":"a"}` + "\n" + `{"parallel":[{"tool":"fail","args":""},{"tool":"nosuch","args":{}}]}` + "\n" + `{"commit":true}` + "\n")
	p.done = id("call")
	p.txn = id("txn")
	var out bytes.Buffer
	run(t.Context(), append([]string{"log", "--json", "--txn", p.txn}, p.at...), jsonEnv(&out))
	found := regexp.MustCompile(`"session":"(s_[^"]+)"`).FindStringSubmatch(out.String())
	require.NotNil(t, found, out.String())
	p.session = found[1]
	return p
}

func jsonEnv(out io.Writer) cli.Env {
	w := testEnv(strings.NewReader("value of a secret"), out, io.Discard)
	w.Username = func() (string, error) { return "somebody", nil }
	w.OpenTTY = func() (io.ReadWriteCloser, error) {
		return typed{strings.NewReader("a long phrase\n"), io.Discard}, nil
	}
	w.ExtraTools = toolsForTests()
	return w
}

// runs are the command lines that are tried of a command. One that is not listed
// here is tried with the ids that its usage line asks for.
func (p jsonPlace) runs(cmd *cobra.Command) [][]string {
	policy := filepath.Join("..", "..", "policies", "workspace")
	switch cmd.CommandPath() {
	case "remit run":
		return [][]string{{p.script}, {"--at-end", "revert", p.script}, {"--at-end", "leave-open", p.script}, {"--atomic", p.script}}
	case "remit pending":
		return [][]string{{}, {p.waits}}
	case "remit approve", "remit deny":
		return [][]string{{p.waits, "--why", "fine"}}
	case "remit grants revoke":
		return [][]string{{p.session, "--why", "enough"}}
	case "remit secret set", "remit secret list", "remit secret remove":
		file := p.script + ".age"
		if err := errors.Join(vault.NewIdentity(file+".key"), vault.At(file, file+".key").Set("there", "value of a secret")); err != nil {
			panic(err)
		}
		if cmd.Name() == "list" {
			return [][]string{{"--file", file}}
		}
		return [][]string{{"there", "--file", file}}
	case "remit resolve":
		return [][]string{{p.lost, "absent", "--why", "looked"}}
	case "remit resume":
		return [][]string{{p.waits}}
	case "remit show":
		return [][]string{{p.done}, {p.txn}, {p.waits}, {p.lost}}
	case "remit revert":
		return [][]string{{"--preview", p.txn}, {p.txn}}
	case "remit redo":
		return [][]string{{p.reverted}, {p.txn}}
	case "remit erase":
		return [][]string{{p.done, "--why", "a test", "--yes"}}
	case "remit policy new":
		return [][]string{{"--from", "flow", p.script + ".policy"}}
	case "remit policy check":
		return [][]string{{policy}, {filepath.Join("testdata", "nosuch")}}
	case "remit policy fmt":
		return [][]string{{policy}, {"--list", policy}, {filepath.Join("testdata", "nosuch")}}
	case "remit policy backtest":
		return [][]string{{"--policy", policy}}
	case "remit policy diff":
		return [][]string{{policy, "builtin:askall", "--tries", "50"}, {policy, policy, "--tries", "50"}}
	case "remit policy eval":
		return [][]string{{"--input", p.input}}
	case "remit feedback":
		return [][]string{{p.done, "good"}}
	case "remit tools define":
		return [][]string{{"file_write"}}
	case "remit gateway accept", "remit init":
		file := p.script + ".gateway.json"
		if err := os.WriteFile(file, []byte(`{"mcpServers":{"gone":{"command":"nosuchserver"}}}`), 0o600); err != nil {
			panic(err)
		}
		return [][]string{{"--config", file}}
	case "remit gateway login": // TestLoginCommand reads what it writes when it comes to something
		file := p.script + ".login.json"
		if err := os.WriteFile(file, []byte(`{"mcpServers":{"nosuch":{"command":"nosuchserver"}}}`), 0o600); err != nil {
			panic(err)
		}
		return [][]string{{"nosuch", "--config", file}}
	case "remit gateway logout":
		return [][]string{{"gone"}}
	case "remit token":
		return [][]string{{"--principal", "kim"}}
	case "remit connect":
		return [][]string{nil, {"cursor", "--preview"}, {"cursor"}}
	case "remit disconnect":
		return [][]string{{"cursor", "--preview"}, {"cursor"}}
	case "remit log":
		return [][]string{nil, {"--txn", p.txn}}
	}
	args := []string{}
	for _, word := range regexp.MustCompile(`\b(CALL|TXN|ID|PATH)\b`).FindAllString(cmd.Use, 1) {
		args = append(args, map[string]string{"CALL": p.done, "TXN": p.txn, "ID": p.waits, "PATH": policy}[word])
	}
	return [][]string{args}
}

// connectedHome is a home with a client whose servers are behind the gateway.
func connectedHome(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	file := filepath.Join(home, ".cursor", "mcp.json")
	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(`{"mcpServers":{"fs":{"command":"fs"}}}`), 0o600))
	w := jsonEnv(io.Discard)
	w.Getenv = func(name string) string { return map[string]string{"HOME": home, "USERPROFILE": home}[name] }
	require.Zero(t, run(t.Context(), []string{"connect", "cursor"}, w))
	return home
}

// TestJSONEverywhere: every command that there is takes --json, and then writes
// nothing but one strict JSON object a line.
func TestJSONEverywhere(t *testing.T) {
	t.Parallel()
	tried, shared, home := 0, newJSONPlace(t), connectedHome(t)
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		if cmd.HasSubCommands() && cmd.Name() != "tools" || cmd.Name() == "help" || strings.HasPrefix(cmd.CommandPath(), "remit completion") {
			return // only help
		}
		if slices.Contains([]string{"hook", "daemon", "exec"}, cmd.Name()) {
			return // the answer has the form of the client; the others have no result, or that of their program
		}
		require.NotNil(t, cmd.Flags().Lookup("json"), "%s has no --json", cmd.CommandPath())
		if slices.Contains([]string{"serve", "console", "watch"}, cmd.Name()) {
			return // it runs until it is ended: TestServeHTTP, TestConsole and TestWatchLosesNothing read what it writes
		}
		if cmd.Name() == "nodes" {
			return // it needs a shared journal: TestNodes reads what it writes
		}
		p := shared
		if !slices.Contains([]string{"log", "show", "tools", "check", "eval", "schema", "doctor", "version", "fsck", "diff", "backtest", "learn"}, cmd.Name()) {
			p = newJSONPlace(t) // it changes something
		}
		path := strings.Fields(cmd.CommandPath())[1:]
		for _, args := range p.runs(cmd) {
			args = append(append(append([]string{}, path...), args...), "--json")
			if cmd.Flags().Lookup("state") != nil {
				args = append(args, p.at...)
			}
			var out bytes.Buffer
			w := jsonEnv(&out)
			w.OutTerminal = true // which changes nothing
			w.Getenv = func(name string) string { return map[string]string{"HOME": home, "USERPROFILE": home}[name] }
			run(t.Context(), args, w)
			if strings.Contains(strings.Join(args, " "), "nosuch") {
				require.Empty(t, out.String())
				continue
			}
			require.True(t, strings.HasSuffix(out.String(), "\n"), "%q wrote %q", args, out.String())
			for l := range strings.SplitSeq(strings.TrimSuffix(out.String(), "\n"), "\n") {
				strictObject(t, l)
			}
			tried++
		}
	}
	visit(commandTree(cli.NewApp(testEnv(nil, io.Discard, io.Discard))))
	require.Greater(t, tried, 15)
}

// completions runs what a shell runs, and returns what it is offered.
func completions(t *testing.T, words ...string) (offers []string, directive string) {
	t.Helper()
	var out bytes.Buffer
	require.Zero(t, run(t.Context(), append([]string{"__complete"}, words...), jsonEnv(&out)))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for _, l := range lines[:len(lines)-1] {
		word, _, _ := strings.Cut(l, "\t")
		offers = append(offers, word)
	}
	return offers, lines[len(lines)-1]
}

// TestCompletion: ids come from the journal that the flags lead to, the newest
// first; choices and tools from what there is.
func TestCompletion(t *testing.T) {
	t.Parallel()
	p := newJSONPlace(t)
	at := func(words ...string) []string { return append(append(words[:1:1], p.at...), words[1:]...) }

	offers, directive := completions(t, at("show", "")...)
	require.Contains(t, offers, p.done)
	require.Contains(t, offers, p.txn)
	require.Equal(t, ":36", directive, "no files, in this order")
	offers, _ = completions(t, at("show", "c_")...)
	require.Contains(t, offers, p.waits)
	require.NotContains(t, offers, p.txn)
	offers, _ = completions(t, at("redo", "")...)
	require.Contains(t, offers, p.reverted)
	require.NotContains(t, offers, p.done)
	offers, _ = completions(t, at("resolve", p.lost, "")...)
	require.Equal(t, []string{"applied", "absent"}, offers)
	offers, _ = completions(t, at("approve", p.waits, "")...)
	require.Empty(t, offers)

	offers, _ = completions(t, "tools", "file_m")
	require.Contains(t, offers, "file_move")
	offers, _ = completions(t, "run", "--on-ask", "")
	require.Equal(t, []string{"deny", "wait", "prompt", "approve-unsafe"}, offers)
	offers, _ = completions(t, "resume", "--at-end", "")
	require.Equal(t, []string{"commit", "revert", "leave-open"}, offers)
	offers, directive = completions(t, "run", "")
	require.Equal(t, []string{"jsonl"}, offers)
	require.Equal(t, ":8", directive, "files that end in it")
	offers, directive = completions(t, "log", "--state", "")
	require.Empty(t, offers)
	require.Equal(t, ":16", directive, "folders")
	offers, _ = completions(t, "rev")
	require.Equal(t, []string{"revert"}, offers)

	// A place without a journal has nothing to offer, and gets none.
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	offers, _ = completions(t, "show", "--state", nowhere, "")
	require.Empty(t, offers)
	require.NoDirExists(t, nowhere)
	require.Equal(t, "", completion.FlagText(&cobra.Command{}, "state"))
}

// TestCompletionScripts: each shell gets one.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		var out bytes.Buffer
		require.Zero(t, run(t.Context(), []string{"completion", shell}, testEnv(nil, &out, io.Discard)), shell)
		require.Contains(t, out.String(), "__complete", shell)
	}
}

// TestToolsByName: names are exact.
func TestToolsByName(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"tools", "--json", "file_read"}, testEnv(nil, &out, &errs)))
	require.Equal(t, 1, strings.Count(out.String(), "\n"))
	out.Reset()
	require.Equal(t, int(cli.ExitUsage), run(t.Context(), []string{"tools", "file_read", "File_Read"}, testEnv(nil, &out, &errs)))
	require.Empty(t, out.String())
	require.Contains(t, errs.String(), `there is no tool "File_Read"`)
}
