package main

import (
	"bufio"
	"encoding/json"
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
)

// livingClient is a client that waits for the next line to run.
type livingClient struct {
	*agentPlace
	in  io.WriteCloser
	out *bufio.Reader
}

func (p *agentPlace) client() *livingClient {
	p.t.Helper()
	file := p.at("client.sh")
	require.NoError(p.t, os.WriteFile(file, []byte("while IFS= read -r line; do eval \"$line\"; printf '\\nend:%s\\n' $?; done\n"), 0o600))
	cmd := exec.Command("bash", file)
	cmd.Dir, cmd.Env, cmd.Stderr = p.project, p.env, os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(p.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(p.t, err)
	require.NoError(p.t, cmd.Start())
	p.t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &livingClient{p, in, bufio.NewReader(out)}
}

// sends runs one line in the client.
func (c *livingClient) sends(line string) string {
	c.t.Helper()
	_, err := io.WriteString(c.in, line+"\n")
	require.NoError(c.t, err)
	var all strings.Builder
	for {
		text, err := c.out.ReadString('\n')
		require.NoError(c.t, err, all.String())
		if strings.HasPrefix(text, "end:") {
			return strings.TrimSpace(all.String())
		}
		all.WriteString(text)
	}
}

// decides sends the event before a use of the shell, and returns the command that the client is to run; "": the call is denied.
func (p *livingClient) decides(use, command string) string {
	p.t.Helper()
	out := p.sends(p.event("s1", "PreToolUse", toolUse(use, "Bash", map[string]any{"command": command})))
	var answer struct {
		Hook struct {
			Decision string `json:"permissionDecision"`
			Input    struct {
				Command string `json:"command"`
			} `json:"updatedInput"`
		} `json:"hookSpecificOutput"`
	}
	require.NoError(p.t, json.Unmarshal([]byte(out), &answer), out)
	if answer.Hook.Decision == "deny" {
		return ""
	}
	require.Contains(p.t, answer.Hook.Input.Command, " exec --call ", "it runs in the sandbox: %s", out)
	return answer.Hook.Input.Command
}

// sandboxed lets the agent run one command, and returns what it writes.
func (p *agentPlace) sandboxed(env []string, line string) (code int, out string) {
	p.t.Helper()
	cmd := exec.Command("bash", "-c", line)
	cmd.Dir, cmd.Env = p.project, append(p.env, env...)
	text, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(text)
}

// TestSandboxHidesRemit runs attacks on remit itself from commands that the sandbox confines: of these 0 get through.
func TestSandboxHidesRemit(t *testing.T) {
	if !hasSandbox() {
		t.Skip("no sandbox on this machine")
	}
	perl, err := exec.LookPath("perl")
	if err != nil {
		t.Skip("there is no perl")
	}
	p := newAgentPlace(t)
	for file, text := range map[string]string{"home/.claude/settings.json": "{}", "home/.config/remit/README": "x", "home/.codex/hooks.json": "{}"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(p.at(file)), 0o700))
		require.NoError(t, os.WriteFile(p.at(file), []byte(text), 0o600))
	}
	all := p.at("home/.config/remit/coding-agent/all.rego") // it lets each command run, so that only the sandbox holds it
	require.NoError(t, os.MkdirAll(filepath.Dir(all), 0o700))
	require.NoError(t, os.WriteFile(all, []byte("package remit\n\nallow contains \"all\"\n"), 0o600))
	c := p.client()
	c.sends(p.event("s1", "SessionStart", nil))
	daemon := p.daemon()
	require.NotZero(t, daemon)
	abstract := "\x00remit-test-" + strconv.Itoa(os.Getpid())
	l, err := net.Listen("unix", "@"+abstract[1:])
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	state, pid := p.at("state"), strconv.Itoa(daemon)
	pl := func(code string) string { return perl + " -MSocket -e '" + code + "'" }
	connect := func(at string) string {
		return pl(`socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un("` + at + `")) or exit 1`)
	}
	trace := func(pid string) string {
		return pl("exit(syscall(" + strconv.Itoa(unix.SYS_PTRACE) + ", 16, " + pid + ", 0, 0) != 0)")
	}
	attacks := []string{ // each succeeds if it gets through
		"ls " + state + "/remit/agents", "cat " + state + "/remit/agents/log", "cat " + state + "/remit/agents/sessions/* " + state + "/remit/agents/clients/*", "ls " + state + "/remit/project-*",
		"echo x > " + state + "/remit/agents/clients/x && cat " + state + "/remit/agents/lock", connect(state + "/remit/agents/socket"), connect("/proc/" + pid + "/root" + state + "/remit/agents/socket"),
		connect("/proc/" + pid + "/cwd" + state + "/remit/agents/socket"), connect(`\0` + abstract[1:]),
		"ls /proc/" + pid + "/root" + state, "ls /proc/1/root" + state, "ls /proc/" + pid + "/fd", "grep -aq '[-]-ready-fd' /proc/[0-9]*/cmdline", "grep -aq '[-]-call' /proc/[0-9]*/cmdline",
		"kill -9 " + pid, "kill -STOP " + pid, pl("exit !kill(9, " + pid + ")"), pl("exit(syscall(" + strconv.Itoa(unix.SYS_PIDFD_OPEN) + ", " + pid + ", 0) < 0)"), trace(pid), trace("1"),
		"cat " + p.at("home/.claude/settings.json"), "cat " + p.at("home/.codex/hooks.json"), "ls " + p.at("home/.config/remit") + " && cat " + p.at("home/.config/remit/README"),
		"for f in /proc/self/fd/*; do case $(readlink $f) in socket:*) exit 0;; esac; done; exit 1", "test -n \"$LD_PRELOAD\"",
		p.bin + "/really approve c_000000000000 --state " + state + "/remit/project-x",
	}
	abilities := []string{"true", pl("exit 0"), connect("/proc/self/cwd/s") + "; " + pl(`socket(S, AF_UNIX, SOCK_STREAM, 0) or exit 1`)}
	for i, can := range abilities { // the tools of the attacks work in the sandbox
		_, out := p.sandboxed(nil, c.decides("a"+strconv.Itoa(i), can+" && echo THROUGH"))
		require.Contains(t, out, "THROUGH", can)
	}
	for i, attack := range attacks {
		use := "u" + strconv.Itoa(i)
		line := c.decides(use, "("+attack+") >/dev/null 2>&1 && echo THROUGH || echo HELD")
		_, out := p.sandboxed([]string{"LD_PRELOAD=" + filepath.Join(p.project, "evil.so")}, line)
		require.NotContains(t, out, "THROUGH", attack)
		require.Contains(t, out, "HELD", "%s: it ran", attack)
	}
	// What it writes where it seems to find a folder does not arrive.
	for i, target := range []string{"home/.claude/settings.json", "home/.config/remit/coding-agent/own.rego", "state/remit/agents/clients/x", "home/.codex/hooks.json"} {
		line := c.decides("w"+strconv.Itoa(i), "mkdir -p $(dirname "+p.at(target)+"); echo evil > "+p.at(target)+"; ln -sf "+p.at(target)+" link; echo evil > link")
		if line != "" {
			p.sandboxed(nil, line)
		}
		text, _ := os.ReadFile(p.at(target))
		require.NotContains(t, string(text), "evil", target)
	}
	require.Equal(t, daemon, p.daemon(), "the same resident process answers")
}

// TestTokensOfCommands guesses, repeats and steals the token of a sandboxed command.
func TestTokensOfCommands(t *testing.T) {
	if !hasSandbox() {
		t.Skip("no sandbox on this machine")
	}
	p := newAgentPlace(t)
	c := p.client()
	c.sends(p.event("s1", "SessionStart", nil))
	line := c.decides("u1", "echo decided; touch decided.txt")
	token := strings.Fields(line)[3]
	for _, guess := range []string{"0000000000000000", token[:len(token)-1], token + "0", "", "*"} {
		_, out := p.sandboxed(nil, "really exec --call '"+guess+"' -- 'touch guessed.txt'")
		require.Contains(t, out, "no command waits under this token", guess)
	}
	// Whoever has the token runs what was decided, once.
	code, out := p.sandboxed(nil, "really exec --call "+token+" -- 'touch stolen.txt'")
	require.Zero(t, code, out)
	require.Equal(t, "decided\n", out)
	_, out = p.sandboxed(nil, line)
	require.Contains(t, out, "no command waits under this token")
	require.NoFileExists(t, filepath.Join(p.project, "stolen.txt"))
	require.NoFileExists(t, filepath.Join(p.project, "guessed.txt"))
	require.FileExists(t, filepath.Join(p.project, "decided.txt"))
	if os.Getuid() != 0 {
		return
	}
	// Another user, also if the folders are open to it.
	line = c.decides("u2", "touch other.txt")
	for at := p.at("state/remit/agents"); at != "/" && at != os.TempDir(); at = filepath.Dir(at) {
		require.NoError(t, os.Chmod(at, 0o755))
	}
	require.NoError(t, os.Chmod(p.at("state/remit/agents/socket"), 0o777))
	cmd := exec.Command("bash", "-c", line)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", p.env, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	said, err := cmd.CombinedOutput()
	require.Error(t, err, string(said))
	require.NoFileExists(t, filepath.Join(p.project, "other.txt"))
	require.NoError(t, os.Chmod(p.at("state/remit/agents"), 0o700))
}

// TestChangedHooks: an agent changes the hooks of its client, as it could in observe mode. The next start of a session and remit doctor tell it.
func TestChangedHooks(t *testing.T) {
	p := newAgentPlace(t)
	code, out := p.person("connect", "claude-code")
	require.Zero(t, code, out)
	start := func() string { return p.runs(p.event("s1", "SessionStart", nil)) }
	require.Empty(t, start())
	code, out = p.person("doctor")
	require.Contains(t, out, "Claude Code is connected; if a hook fails, the call: blocked")
	require.Contains(t, out, "is this program, with the same configuration")
	require.Zero(t, code, out)
	settings := p.at("home/.claude/settings.json")
	text, err := os.ReadFile(settings)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(p.project, ".claude"), 0o700))
	for name, change := range map[string]string{
		"a shim":         "sed -i 's|\"command\": \".*really\"|\"command\": \"/tmp/own/remit\"|' " + settings,
		"one event less": "sed -i 's/PreToolUse/PreToolUsed/' " + settings,
		"no hooks":       "echo '{}' > " + settings,
		"onFailure":      "sed -i 's/\"block\"/\"continue\"/' " + settings,
		"the project":    "echo '{\"disableAllHooks\": true}' > .claude/settings.local.json",
		"removed":        "rm " + settings,
	} {
		p.runs(change)
		said := start()
		require.Contains(t, said, `"systemMessage":"remit: the hooks of Claude Code were changed`, name)
		code, out := p.person("doctor")
		require.Equal(t, 1, code, out)
		require.Contains(t, out, "calls can run unseen", name)
		require.NoError(t, os.WriteFile(settings, text, 0o600))
		require.NoError(t, os.RemoveAll(filepath.Join(p.project, ".claude", "settings.local.json")))
	}
	log, err := os.ReadFile(p.at("state/remit/agents/log"))
	require.NoError(t, err)
	require.Contains(t, string(log), "the hooks of a client were changed")
	require.Empty(t, start())
}

// TestForeignDaemon: an agent ends the resident process, and starts one with a policy of its own. remit doctor tells it.
func TestForeignDaemon(t *testing.T) {
	p := newAgentPlace(t)
	p.runs(p.event("s1", "SessionStart", nil))
	p.endDaemon()
	p.runs("XDG_CONFIG_HOME=" + p.at("tmp") + " " + p.event("s2", "SessionStart", nil))
	code, out := p.person("doctor")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "its policy can be another one")
}
