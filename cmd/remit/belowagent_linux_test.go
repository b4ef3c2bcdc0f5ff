package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

// agentPlace is a person's home with a coding agent: a script that sends the events of its session, and runs what its model says.
type agentPlace struct {
	t                  *testing.T
	bin, base, project string
	env                []string
	n                  int
}

func newAgentPlace(t *testing.T) *agentPlace {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	p := &agentPlace{t: t, bin: commandFolder(t), base: base, project: filepath.Join(base, "project")}
	for _, dir := range []string{p.project, p.at("home"), p.at("tmp")} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	p.env = []string{"HOME=" + p.at("home"), "XDG_STATE_HOME=" + p.at("state"), "PATH=" + p.bin + ":" + os.Getenv("PATH"), "TMPDIR=" + p.at("tmp")}
	t.Cleanup(p.endDaemon)
	return p
}

func (p *agentPlace) at(name string) string { return filepath.Join(p.base, name) }

// daemon returns the resident process; 0: none runs.
func (p *agentPlace) daemon() (pid int) {
	p.t.Helper()
	dir, err := os.Open(p.at("state/remit/agents"))
	if err != nil {
		return 0
	}
	defer func() { _ = dir.Close() }()
	conn, err := net.Dial("unix", fmt.Sprintf("/proc/self/fd/%d/socket", dir.Fd()))
	if err != nil {
		return 0
	}
	defer func() { _ = conn.Close() }()
	raw, err := conn.(*net.UnixConn).SyscallConn() //nolint:errcheck,forcetypeassert // Dial("unix") returns this type
	require.NoError(p.t, err)
	require.NoError(p.t, raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		require.NoError(p.t, err)
		pid = int(cred.Pid)
	}))
	return pid
}

func (p *agentPlace) endDaemon() {
	if pid := p.daemon(); pid != 0 {
		fd, err := unix.PidfdOpen(pid, 0)
		require.NoError(p.t, err)
		require.NoError(p.t, unix.PidfdSendSignal(fd, syscall.SIGTERM, nil, 0))
		for {
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1); err == nil {
				break
			}
		}
		require.NoError(p.t, unix.Close(fd))
	}
}

// event writes an event for the agent to send, and returns the command that sends it.
func (p *agentPlace) event(session, name string, members map[string]any) string {
	p.t.Helper()
	all := map[string]any{"session_id": session, "cwd": p.project, "hook_event_name": name, "prompt_id": "p1"}
	for k, v := range members {
		all[k] = v
	}
	text, err := json.Marshal(all)
	require.NoError(p.t, err)
	p.n++
	file := p.at("event" + strconv.Itoa(p.n))
	require.NoError(p.t, os.WriteFile(file, text, 0o600))
	return "really hook claude-code < " + file
}

// toolUse has the members of an event about a tool.
func toolUse(use, name string, in map[string]any) map[string]any {
	return map[string]any{"tool_name": name, "tool_use_id": use, "tool_input": in}
}

// runs runs a script as the agent, and returns what it writes. The script is a program of its own, not a shell of a hook.
func (p *agentPlace) runs(lines ...string) string {
	p.t.Helper()
	p.n++
	file := p.at("agent" + strconv.Itoa(p.n) + ".sh")
	require.NoError(p.t, os.WriteFile(file, []byte("cd "+p.project+"\n"+strings.Join(lines, "\n")+"\n"), 0o600))
	cmd := exec.Command("bash", file)
	cmd.Env = p.env
	out, err := cmd.CombinedOutput()
	require.NoError(p.t, err, string(out))
	return string(out)
}

// inParts starts an agent that runs each part when next is called. Next returns when the part has run, and the agent
// lives until the last one has.
func (p *agentPlace) inParts(parts ...[]string) (next func()) {
	p.t.Helper()
	p.n++
	file := p.at("agent" + strconv.Itoa(p.n) + ".sh")
	script := "set -e\ncd " + p.project + "\n"
	for _, lines := range parts {
		script += "read -r _\n" + strings.Join(lines, " >&2\n") + " >&2\necho part\n"
	}
	require.NoError(p.t, os.WriteFile(file, []byte(script), 0o600))
	cmd := exec.Command("bash", file)
	cmd.Env = p.env
	var said bytes.Buffer
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	require.NoError(p.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(p.t, err)
	require.NoError(p.t, cmd.Start())
	p.t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	return func() {
		p.t.Helper()
		_, err := io.WriteString(in, "\n")
		require.NoError(p.t, err)
		require.True(p.t, lines.Scan(), "%s", &said)
		require.Equal(p.t, "part", lines.Text())
	}
}

// person runs the command as the person.
func (p *agentPlace) person(args ...string) (code int, out string) {
	p.t.Helper()
	cmd := exec.Command("really", args...)
	cmd.Path = filepath.Join(p.bin, "really")
	cmd.Dir, cmd.Env = p.project, p.env
	text, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(text)
}

// writes is an agent's write of a file, with both of its events.
func (p *agentPlace) writes(session, use, name, content string) string {
	in := map[string]any{"file_path": filepath.Join(p.project, name), "content": content}
	return strings.Join([]string{
		p.event(session, "PreToolUse", toolUse(use, "Write", in)), fmt.Sprintf("printf %%s %s > %s", content, name),
		p.event(session, "PostToolUse", toolUse(use, "Write", in)),
	}, "\n")
}

const tryScript = `#!/bin/sh
f=$1; shift
"$@" > "$f.out" 2>&1
echo $? > "$f.tmp"
mv "$f.tmp" "$f"
`

// TestBelowAgent lets an agent run the command below itself, in the ways in which a process can be started, and checks that each command that
// changes something of the person is refused, and that the others show.
func TestBelowAgent(t *testing.T) {
	p := newAgentPlace(t)
	require.NoError(t, os.WriteFile(p.at("bin-try"), []byte(tryScript), 0o700))
	require.NoError(t, os.WriteFile(p.at("rules.rego"), []byte("package remit\n\nallow contains \"x\" if input.access.action == \"read\"\n"), 0o600))
	state := " --state " + p.stateDir()
	changing := []string{
		"approve c_000000000000", "approve c_000000000000 --remember session", "deny c_000000000000", "resolve c_000000000000 absent --why x", "prune --keep 1h",
		"erase c_000000000000 --yes --why x", "recover", "resume c_000000000000", "feedback c_000000000000 good", "grants revoke g_1", "approval allow-unattended",
		"approval refuse-unattended", "approval set-passphrase", "approval remove-passphrase", "connect claude-code", "disconnect claude-code", "connect --file x.json",
		"init --config x --write", "gateway accept x --config x", "gateway login x --config x", "gateway logout x", "gateway --config x --http :0", "serve --http :0",
		"token --principal x", "secret set x", "secret remove x", "policy new --from workspace x", "console", "console --no-open --json", "watch", "watch --lines", "run s.jsonl", "exec -- true", "fsck --accept-head",
	}
	ways := []string{
		"TRY", "TRY < /dev/null", "sh -c 'sh -c \"TRY\"'", "setsid TRY", "env -i PATH=$PATH HOME=$HOME XDG_STATE_HOME=$XDG_STATE_HOME TRY", "(setsid TRY &)", "(setsid nohup TRY > /dev/null 2>&1 &)", "onpty TRY",
		"(setsid onpty TRY < /dev/null > /dev/null 2>&1 &)", "onpty bash --norc -i -c 'TRY'",
	}
	showing := []string{"log", "pending", "fsck", "grants", "version", "connect", "policy check " + p.at("rules.rego"), "tools", "approval"}
	lines := []string{
		"wait_for() { n=0; until [ -e \"$1\" ] || [ $n = 3000 ]; do sleep 0.02; n=$((n+1)); done; }",
		p.event("s1", "SessionStart", nil), p.event("s1", "UserPromptSubmit", map[string]any{"prompt": "go"}), p.writes("s1", "u1", "a.txt", "one"), p.event("s1", "Stop", nil),
	}
	var tries []string
	add := func(way, args string) {
		file := p.at("r" + strconv.Itoa(len(tries)))
		tries = append(tries, strings.ReplaceAll(way, "TRY", args))
		lines = append(lines, strings.ReplaceAll(way, "TRY", p.at("bin-try")+" "+file+" really "+args), "wait_for "+file)
	}
	for i, args := range changing {
		add("TRY", args)
		add(ways[i%len(ways)], args)
	}
	for _, way := range ways {
		add(way, "prune --keep 1h")
		add(way, "revert --force")
	}
	add("XDG_STATE_HOME=/nowhere TRY", "approve c_000000000000"+state)
	add("XDG_STATE_HOME=/nowhere HOME=/nowhere TRY", "prune --keep 1h"+state)
	for _, way := range []string{"", "sh -c 'env ", "setsid env "} { // as another node of a shared journal, which asks the right one
		elsewhere := way + "XDG_STATE_HOME=" + p.at("tmp") + " HOME=" + p.at("tmp") + " TRY"
		if strings.HasPrefix(way, "sh") {
			elsewhere += "'"
		}
		add(elsewhere, "revert t_1 --force --journal postgres://remit@localhost/remit --state "+p.at("tmp/node"))
	}
	add("TRY", "revert t_1 --withdraw --journal postgres://remit@localhost/remit")
	honest := len(tries)
	for _, args := range showing {
		add("TRY", args)
	}
	p.runs(lines...)
	for i, what := range tries {
		file := p.at("r" + strconv.Itoa(i))
		code, err := os.ReadFile(file)
		require.NoError(t, err, what)
		said, err := os.ReadFile(file + ".out")
		require.NoError(t, err)
		if i >= honest {
			require.Equal(t, "0", strings.TrimSpace(string(code)), "%s: %s", what, said)
			continue
		}
		want := strconv.Itoa(int(cli.ExitDenied))
		if strings.Contains(what, "exec --") {
			want = "103"
		}
		require.Equal(t, want, strings.TrimSpace(string(code)), "%s: %s", what, said)
		require.Contains(t, string(said), "a coding agent", what)
	}
	t.Logf("%d attacks refused", honest)

	// The client has ended, so this process is a person's again.
	code, out := p.person("undo")
	require.Zero(t, code, out)
	require.NoFileExists(t, filepath.Join(p.project, "a.txt"))
}

// stateDir returns the folder with the journal of the project.
func (p *agentPlace) stateDir() string {
	p.t.Helper()
	// One event makes it.
	p.runs(p.event("s0", "SessionStart", nil), p.writes("s0", "u0", "first.txt", "x"), p.event("s0", "SessionEnd", nil))
	found, err := filepath.Glob(p.at("state/remit/project-*"))
	require.NoError(p.t, err)
	require.Len(p.t, found, 1)
	return found[0]
}

// TestAgentUndoesItsOwn: below an agent, remit undo reverts what this session did, and nothing of another session or of a person.
func TestAgentUndoesItsOwn(t *testing.T) {
	p := newAgentPlace(t)
	other := []string{p.event("other", "SessionStart", nil), p.writes("other", "u1", "other.txt", "theirs"), p.event("other", "Stop", nil)}
	p.runs(other...)
	log := p.runs(
		p.event("s1", "SessionStart", nil), p.writes("s1", "u1", "mine.txt", "one"), p.event("s1", "Stop", nil),
		"really undo --force; echo forced:$?", "really undo --cascade; echo cascaded:$?", "really undo -n 5; echo undone:$?", "ls", "really undo; echo again:$?",
		"for t in $(really log --json | grep -o '\"t_[0-9a-z]*\"' | tr -d '\"' | sort -u); do really undo $t; really redo $t; done", "ls",
	)
	require.Contains(t, log, "forced:3")
	require.Contains(t, log, "cascaded:3")
	require.Contains(t, log, "undone:0")
	before, after, _ := strings.Cut(log, "undone:0")
	require.Contains(t, before, "mine.txt")
	undone, rest, _ := strings.Cut(after, "again:")
	require.Contains(t, undone, "other.txt", "the other session's file stays")
	require.NotContains(t, undone, "mine.txt")
	require.Contains(t, rest, "not reverted for the agent")
	require.FileExists(t, filepath.Join(p.project, "other.txt"))
	require.FileExists(t, filepath.Join(p.project, "mine.txt"), "redone")
}

// TestForgedEvents: a program of the agent sends events of the session, or of another one, or claims to be another client.
func TestForgedEvents(t *testing.T) {
	p := newAgentPlace(t)
	in := map[string]any{"file_path": filepath.Join(p.project, "a.txt"), "content": "two"}
	// The client starts remit hook itself, and the programs of its tools are shells below it.
	forged := func(line string) string {
		return "bash -c 'echo | " + strings.Replace(line, "really", "true; really", 1) + "; echo forged:$?'"
	}
	out := p.runs(
		p.event("s1", "SessionStart", nil), p.event("s1", "UserPromptSubmit", map[string]any{"prompt": "go"}),
		p.event("s1", "PreToolUse", toolUse("u1", "Write", in)),
		forged(p.event("s1", "PostToolUse", toolUse("u1", "Write", in))), // would end what is kept of the call, before it changes the file
		forged(p.event("s1", "Stop", nil)), forged(p.event("s1", "SessionEnd", nil)), forged(p.event("s1", "UserPromptSubmit", map[string]any{"prompt": "another"})),
		"printf two > a.txt",
		p.event("s1", "PostToolUse", toolUse("u1", "Write", in)), p.event("s1", "Stop", nil),
	)
	require.Equal(t, 4, strings.Count(out, "did not send this event"), out)
	code, said := p.person("undo")
	require.Zero(t, code, said)
	require.NoFileExists(t, filepath.Join(p.project, "a.txt"), "the call was kept to its end")
}

// TestForgedAfterAKill: an agent kills the resident process and is the first to speak to the next one.
func TestForgedAfterAKill(t *testing.T) {
	p := newAgentPlace(t)
	first := p.writes("s1", "u1", "a.txt", "one")
	require.NoError(t, os.MkdirAll(p.at("state/remit/agents"), 0o700))
	out := p.runs(
		p.event("s1", "SessionStart", nil), first, p.event("s1", "Stop", nil),
		`kill -9 $(for f in /proc/[0-9]*; do [ "$(tr '\0' ' ' < $f/cmdline 2>/dev/null | cut -d' ' -f2,3)" = "daemon --ready-fd" ] && grep -qz "^XDG_STATE_HOME=$XDG_STATE_HOME$" $f/environ 2>/dev/null && basename $f; done)`,
		"really prune --keep 1h; echo pruned:$?",
		"bash -c 'true; "+p.event("s1", "UserPromptSubmit", map[string]any{"prompt": "forged"})+"; echo forged:$?'",
		p.writes("s1", "u2", "b.txt", "two"), p.event("s1", "Stop", nil),
	)
	require.Contains(t, out, "pruned:3", "the record of the client outlives the resident process")
	require.Contains(t, out, "did not send this event")
	require.FileExists(t, filepath.Join(p.project, "b.txt"))
	code, said := p.person("undo")
	require.Zero(t, code, said)
	require.NoFileExists(t, filepath.Join(p.project, "b.txt"), "the next resident process knew the session")
}
