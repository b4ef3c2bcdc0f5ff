package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

// bad is one thing that is wrong, at one door.
type bad struct {
	command, fault string
	args           []string
	script         string            // for run: its one line
	policy         string            // a module, for the commands that take one
	input          string            // of policy eval
	files          map[string]string // in the folder that {dir} stands for
}

// faultyJSON are the ways in which an object can be read in two ways, or is not
// what is wanted. The keys are of the object that is put between the two.
func faultyJSON(door, before, key, value, after string, build func(b bad, text string) bad) (cases []bad) {
	upper := strings.ToUpper(key[:1]) + key[1:]
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	for fault, text := range map[string]string{
		"01 duplicate key":       fmt.Sprintf(`"%s":%s,"%s":%s`, key, value, key, value),
		"02 key in another case": fmt.Sprintf(`"%s":%s,"%s":%s`, key, value, upper, value),
		"03 only another case":   fmt.Sprintf(`"%s":%s`, upper, value),
		"04 unknown key":         fmt.Sprintf(`"%s":%s,"nosuch":1`, key, value),
		"05 wrong type":          fmt.Sprintf(`"%s":7.5`, key),
		"06 null":                fmt.Sprintf(`"%s":null`, key),
		"07 invalid UTF-8":       fmt.Sprintf(`"%s":"a%sb"`, key, "\xff"),
		"08 lone surrogate":      fmt.Sprintf(`"%s":"a\ud800b"`, key),
		"09 too deep":            fmt.Sprintf(`"%s":%s`, key, deep),
		"10 too many digits":     fmt.Sprintf(`"%s":1%s`, key, strings.Repeat("0", 20)+"."+strings.Repeat("1", 30)),
		"11 not finished":        fmt.Sprintf(`"%s":`, key),
		"12 comment":             fmt.Sprintf(`/* */"%s":%s`, key, value),
		"13 something after it":  fmt.Sprintf(`"%s":%s}{`, key, value),
	} {
		cases = append(cases, build(bad{command: door, fault: fault}, before+text+after))
	}
	return cases
}

func badCases() (cases []bad) {
	line := func(b bad, text string) bad { b.script = text; return b }
	cases = append(cases, faultyJSON("a line of a script", `{`, "tool", `"file_list"`, `}`, line)...)
	cases = append(cases, faultyJSON("an argument", `{"tool":"file_read","args":{`, "path", `"a.txt"`, `}}`, line)...)
	cases = append(cases, faultyJSON("the input of policy eval", `{`, "purpose", `"run"`, `}`, func(b bad, text string) bad {
		b.args, b.input = []string{"policy", "eval", "--input", "{input}"}, text
		return b
	})...)
	for _, name := range []string{"File_read", "file_reed", "fіle_read", "file read", "", "file_read ", "tool://file_read"} {
		cases = append(cases, line(bad{command: "a tool's name", fault: fmt.Sprintf("%+q", name)}, fmt.Sprintf(`{"tool":%q,"args":{"path":"a.txt"}}`, name)))
	}
	for _, path := range []string{"../a", "/etc/passwd", "a/../b", "a//b", "a/", "", ".", "a\x00b", ".remit-stage-1", strings.Repeat("a", 9000), "link"} {
		text, _ := json.Marshal(path)
		cases = append(cases, line(bad{command: "a path", fault: cli.Clip(fmt.Sprintf("%+q", path), 24)}, fmt.Sprintf(`{"tool":"file_read","args":{"path":%s}}`, text)))
	}
	for _, flags := range [][]string{
		{"--root", "docs"},
		{"--root", "=x"},
		{"--root", "Docs={dir}"},
		{"--root", "workspace={dir}"},
		{"--on-ask", "Deny"},
		{"--at-end", ""},
		{"--principal", ""},
		{"--role", ""},
		{"--workspace", ""},
		{"--state", ""},
		{"--policy", ""},
		{"--jsno"},
	} {
		cases = append(cases, bad{command: "a flag of run", fault: strings.Join(flags, " "), args: append([]string{"run", "{script}"}, flags...), script: `{"tool":"file_list","args":{}}`})
	}
	for _, id := range []string{"", "t_1", "c_000000000000", "T_000000000000", "nonsense", "t_\x1b[2J"} {
		for _, verb := range []string{"show", "revert", "redo", "resume", "approve"} {
			cases = append(cases, bad{command: "an id, for " + verb, fault: fmt.Sprintf("%+q", id), args: []string{verb, id}})
		}
	}
	for _, head := range []string{"1", "x:sha256:" + strings.Repeat("0", 64), "-1:sha256:" + strings.Repeat("0", 64), "1:md5:00", "1:sha256:00", "999:sha256:" + strings.Repeat("0", 64)} {
		cases = append(cases, bad{command: "a head", fault: head, args: []string{"fsck", "--head", head}})
	}
	for fault, text := range map[string]string{
		"no package":       "allow contains \"x\" if true\n",
		"another package":  "package other\n\nallow contains \"x\" if true\n",
		"does not parse":   "package remit\n\nallow contains \"x\" if {\n",
		"misspelt field":   "package remit\n\nallow contains \"x\" if input.acces.action == \"read\"\n",
		"misspelt value":   "package remit\n\nallow contains \"x\" if input.access.action == \"raed\"\n",
		"unknown set":      "package remit\n\nalow contains \"x\" if true\n",
		"reaches outside":  "package remit\n\nallow contains \"x\" if http.send({\"method\":\"get\",\"url\":\"http://a\"}).status_code == 200\n",
		"invalid UTF-8":    "package remit\n\nallow contains \"x\xff\" if true\n",
		"an empty file":    "",
		"two kinds of set": "package remit\n\nallow := true\n",
	} {
		cases = append(cases, bad{command: "a policy", fault: fault, args: []string{"policy", "check", "{policy}"}, policy: text})
	}
	for fault, files := range map[string]map[string]string{
		"journal.db is text":    {"journal.db": "not a database, and long enough to look like one: " + strings.Repeat("x", 200)},
		"journal.db is another": {"journal.db": "SQLite format 3\x00" + strings.Repeat("\x00", 200)},
	} {
		for _, verb := range []string{"log", "fsck"} {
			cases = append(cases, bad{command: "a journal, for " + verb, fault: fault, args: []string{verb, "--state", "{dir}"}, files: files})
		}
	}
	return cases
}

// TestBadInputAtEveryDoor pins the exact answer to everything that is wrong, at every door.
// None is a success, none ends as an internal error but a journal that is
// none or not the one whose head was kept, and none changes a file. The texts stand in testdata/badinput.txt.
func TestBadInputAtEveryDoor(t *testing.T) {
	t.Parallel()
	answers := map[string]string{}
	var keys []string
	for _, c := range badCases() {
		key := c.command + ": " + c.fault
		require.NotContains(t, answers, key)
		answers[key] = c.answer(t)
		keys = append(keys, key)
	}
	var b strings.Builder
	slices.Sort(keys)
	for _, key := range keys {
		_, _ = fmt.Fprintf(&b, "== %s\n%s", key, answers[key])
	}
	const golden = "testdata/badinput.txt"
	if flag.Lookup("update").Value.String() == "true" {
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	pinned := map[string]string{}
	for _, section := range strings.Split("\n"+string(want), "\n== ")[1:] {
		key, answer, _ := strings.Cut(strings.TrimSuffix(section, "\n"), "\n")
		pinned[key] = answer
	}
	for _, key := range keys { // one at a time: what differs is in sight then
		require.Equal(t, strings.Split(pinned[key], "\n"), strings.Split(strings.TrimSuffix(answers[key], "\n"), "\n"), key)
	}
	require.Len(t, keys, len(pinned))
	require.Equal(t, string(want), b.String())
}

var (
	anyID     = regexp.MustCompile(`\b[tcs]_[0-9a-z]{12}\b`)
	anyDigest = regexp.MustCompile(`sha256:[0-9a-f]{64}`)
)

// answer runs the case in a place of its own.
func (c bad) answer(t *testing.T) string {
	t.Helper()
	workspace, state := testPlace(t)
	require.NoError(t, os.WriteFile(filepath.Join(workspace, "a.txt"), []byte("as it was"), 0o600))
	dir := filepath.Join(t.TempDir(), "dir")
	require.NoError(t, os.Mkdir(dir, 0o700))
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	for name, text := range c.files {
		write(name, text)
	}
	args := c.args
	if args == nil {
		args = []string{"run", "{script}"}
	}
	stands := map[string]string{"{dir}": dir}
	for name, text := range map[string]string{"{script}": c.script, "{policy}": c.policy, "{input}": c.input} {
		if strings.Contains(strings.Join(args, " "), name) {
			stands[name] = write(strings.Trim(name, "{}")+map[string]string{"{policy}": ".rego"}[name], text)
		}
	}
	var real []string
	for _, a := range args {
		for name, is := range stands {
			a = strings.ReplaceAll(a, name, is)
		}
		real = append(real, a)
	}
	if strings.HasPrefix(c.command, "an id") || strings.HasPrefix(c.command, "a head") { // of a journal that there is
		w := testEnv(strings.NewReader(`{"tool":"file_list","args":{}}`), io.Discard, io.Discard)
		require.Zero(t, run(t.Context(), []string{"run", "--state", state, "--workspace", workspace, "-"}, w))
	}
	var out, errs bytes.Buffer
	has := func(flag string) bool { return strings.Contains(strings.Join(args, " "), flag) }
	if args[0] != "policy" && !has("--state") {
		real = append(real, "--state", state)
	}
	if args[0] != "policy" && !has("--workspace") {
		real = append(real, "--workspace", workspace)
	}
	w := testEnv(nil, &out, &errs)
	w.Username = func() (string, error) { return "somebody", nil }
	code := run(t.Context(), real, w)
	require.NotZero(t, code, "%s: %s\n%s", c.command, c.fault, out.String())
	damaged := strings.HasPrefix(c.command, "a journal") || strings.HasPrefix(c.fault, "999:")
	require.Equal(t, damaged, code == int(cli.ExitInternal), "%s: %s: %s", c.command, c.fault, errs.String())
	require.NotContains(t, out.String()+errs.String(), "\x1b")
	kept, err := os.ReadFile(filepath.Join(workspace, "a.txt"))
	require.NoError(t, err)
	require.Equal(t, "as it was", string(kept))

	text := fmt.Sprintf("exit %d\n%s%s", code, out.String(), errs.String())
	for _, path := range []string{dir, state, workspace} {
		text = strings.ReplaceAll(text, path, "{"+map[string]string{dir: "dir", state: "state", workspace: "workspace"}[path]+"}")
		text = strings.ReplaceAll(text, strings.TrimPrefix(path, "/"), "{policy of}")
	}
	text = anyDigest.ReplaceAllString(anyID.ReplaceAllString(text, "ID"), "DIGEST")
	var lines []string
	for l := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		lines = append(lines, strings.TrimRight("   "+cli.Clip(l, 400), " "))
	}
	return strings.Join(lines, "\n") + "\n"
}
