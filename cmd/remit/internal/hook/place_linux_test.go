package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// build compiles the command for some build tags, and sets a variable of it ("":
// none). Files of different variables differ.
func build(t *testing.T, name string, age time.Duration, tags, variable string) string {
	t.Helper()
	at := filepath.Join(t.TempDir(), name)
	flags := "-s -w"
	if variable != "" {
		flags += " -X " + variable
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-tags", tags, "-ldflags", flags, "-o", at, "github.com/remit-dev/remit/cmd/remit")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	when := time.Now().Add(-age)
	require.NoError(t, os.Chtimes(at, when, when))
	return at
}

// altered copies a program to a file with other content, which runs the same.
func altered(t *testing.T, program string, age time.Duration) string {
	t.Helper()
	raw, err := os.ReadFile(program)
	require.NoError(t, err)
	at := filepath.Join(t.TempDir(), filepath.Base(program))
	require.NoError(t, os.WriteFile(at, append(raw, "altered"...), 0o700))
	when := time.Now().Add(-age)
	require.NoError(t, os.Chtimes(at, when, when))
	return at
}

// place is a person's home with a project, and an agent that sends events.
type place struct {
	t             *testing.T
	base, project string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	p := &place{t, base, filepath.Join(base, "project")}
	require.NoError(t, os.MkdirAll(p.project, 0o700))
	policy := p.at("home/.config/remit/coding-agent")
	require.NoError(t, os.MkdirAll(policy, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(policy, "own.rego"), []byte("package remit\n\nallow contains \"all\" if true\n\ndeny contains \"observe\" if input.tool.name == \"client_shell\"\n"), 0o600))
	t.Cleanup(p.end)
	return p
}

func (p *place) at(name string) string { return filepath.Join(p.base, name) }

// answer is what a hook did.
type answered struct {
	code     int
	out, err string
}

// remit runs a command of some build.
func (p *place) remit(bin, stdin string, args ...string) answered {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), bin, args...)
	cmd.Dir, cmd.Stdin = p.project, strings.NewReader(stdin)
	cmd.Env = []string{"HOME=" + p.at("home"), "XDG_STATE_HOME=" + p.at("state"), "PATH=" + os.Getenv("PATH")}
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		require.NoError(p.t, err)
	}
	return answered{cmd.ProcessState.ExitCode(), out.String(), complaint.String()}
}

// event sends one event of a session by some build.
func (p *place) event(bin, session, name string, more map[string]any) answered {
	p.t.Helper()
	all := map[string]any{"session_id": session, "cwd": p.project, "hook_event_name": name}
	for k, v := range more {
		all[k] = v
	}
	raw, err := json.Marshal(all)
	require.NoError(p.t, err)
	return p.remit(bin, string(raw), "hook", "claude-code")
}

// before asks for a command, which must be allowed.
func (p *place) before(bin, session, prompt, id string) {
	p.t.Helper()
	a := p.event(bin, session, "PreToolUse", use(prompt, id))
	require.Zero(p.t, a.code, "%+v\n%s", a, p.log())
	require.Contains(p.t, a.out, `"allow"`, "%+v\n%s", a, p.log())
}

// after reports the end of a command.
func (p *place) after(bin, session, prompt, id string) {
	p.t.Helper()
	a := p.event(bin, session, "PostToolUse", use(prompt, id))
	require.Zero(p.t, a.code, "%+v\n%s", a, p.log())
}

func use(prompt, id string) map[string]any {
	return map[string]any{"prompt_id": prompt, "tool_name": "Bash", "tool_use_id": id, "tool_input": map[string]any{"command": "make " + id}, "tool_response": map[string]any{"stdout": "ok"}}
}

func (p *place) write(name, content string) {
	p.t.Helper()
	require.NoError(p.t, os.WriteFile(filepath.Join(p.project, name), []byte(content), 0o600))
}

func (p *place) read(name string) string {
	p.t.Helper()
	raw, err := os.ReadFile(filepath.Join(p.project, name))
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	require.NoError(p.t, err)
	return string(raw)
}

func (p *place) log() string {
	raw, _ := os.ReadFile(p.at("state/remit/agents/log"))
	return string(raw)
}

// daemon returns the resident process and its program; 0: none runs.
func (p *place) daemon() (pid int, program string) {
	p.t.Helper()
	conn, err := net.Dial("unix", p.at("state/remit/agents/socket"))
	if err != nil {
		return 0, ""
	}
	defer func() { _ = conn.Close() }()
	pid, err = peer(conn.(*net.UnixConn)) //nolint:errcheck // of a socket of this kind
	require.NoError(p.t, err)
	program, err = os.Readlink(programOf(pid))
	require.NoError(p.t, err)
	return pid, program
}

// end ends the resident process.
func (p *place) end() { p.signal(syscall.SIGTERM) }

// kill kills the resident process.
func (p *place) kill() { p.signal(syscall.SIGKILL) }

func (p *place) signal(with syscall.Signal) {
	pid, _ := p.daemon()
	if pid == 0 {
		return
	}
	fd, err := unix.PidfdOpen(pid, 0)
	require.NoError(p.t, err)
	defer func() { _ = unix.Close(fd) }()
	require.NoError(p.t, unix.PidfdSendSignal(fd, with, nil, 0))
	for {
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1); err == nil {
			return
		}
	}
}
