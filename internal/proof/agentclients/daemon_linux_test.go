package agentclients_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/treecheck"
)

// reply is what a hook answered.
type reply struct {
	out, err string
	code     int
}

// allows reports whether Claude Code would run the tool.
func (s reply) allows() bool { return s.code == 0 && strings.Contains(s.out, `"allow"`) }

// env is the environment of the person's programs.
func (g *guarded) env() []string {
	return append(os.Environ(), "HOME="+g.home, "XDG_STATE_HOME="+g.state(), "XDG_CONFIG_HOME=", "REMIT_AGENT_RUN="+g.base)
}

func (g *guarded) state() string { return filepath.Join(g.base, "state") }

// send gives a hook its standard input.
func (g *guarded) send(client, in string) reply {
	cmd := exec.Command(g.program, "hook", client)
	if g.apart { // the client is this shell, not the test
		cmd = exec.Command("bash", "-c", `"$0" hook "$1"; exit $?`, g.program, client)
	}
	cmd.Dir, cmd.Env, cmd.Stdin = g.base, g.env(), strings.NewReader(in)
	var out, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failed
	_ = cmd.Run()
	return reply{out.String(), failed.String(), cmd.ProcessState.ExitCode()}
}

// event sends an event as Claude Code or Codex do.
func (g *guarded) event(client, session, prompt, name, tool, use string, in any) reply {
	all := object{
		"session_id": session, "prompt_id": prompt, "cwd": g.dir, "hook_event_name": name, "prompt": prompt,
		"tool_name": tool, "tool_use_id": use, "tool_input": in,
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return g.send(client, string(raw))
}

// writes lets a client write one file, and returns whether it may.
func (g *guarded) writes(client, session, prompt, name string) reply {
	in := object{"file_path": filepath.Join(g.dir, name), "content": "x"}
	a := g.event(client, session, prompt, "PreToolUse", "Write", prompt+name, in)
	if a.allows() {
		write(g.t, filepath.Join(g.dir, name), "x")
		g.event(client, session, prompt, "PostToolUse", "Write", prompt+name, in)
	}
	return a
}

// daemon returns the resident process of the person; 0: none.
func (g *guarded) daemon() (pid int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range all {
		line, err := os.ReadFile(name)
		if err == nil && strings.HasPrefix(string(line), g.program+"\x00daemon\x00") {
			_, _ = fmt.Sscanf(name, "/proc/%d/", &pid)
		}
	}
	return pid
}

// kill ends the resident process, and waits until it is gone.
func (g *guarded) kill() {
	pid := g.daemon()
	if pid == 0 {
		return
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	at, err := os.Open(filepath.Join(g.state(), "remit", "agents"))
	if err != nil {
		return
	}
	defer func() { _ = at.Close() }()
	for { // until the kernel has closed its files
		conn, err := net.Dial("unix", fmt.Sprintf("/proc/self/fd/%d/socket", at.Fd()))
		if err != nil && !errors.Is(err, syscall.ECONNRESET) && g.daemon() != pid {
			return
		}
		if err == nil {
			_ = conn.Close()
		}
		time.Sleep(time.Millisecond)
	}
}

// alone returns a person without an agent, whose events a test sends itself.
func alonePerson(t *testing.T, base string) *guarded {
	t.Helper()
	if base == "" {
		var err error
		base, err = os.MkdirTemp("", "guarded")
		require.NoError(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(base) })
	}
	g := &guarded{t: t, base: base, program: filepath.Join(base, "bin", "remit"), home: filepath.Join(base, "home"), dir: filepath.Join(base, "home", "src")}
	for _, dir := range []string{g.home, g.dir, filepath.Dir(g.program)} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	build := exec.Command("go", "build", "-o", g.program, "github.com/remit-dev/remit/cmd/remit")
	text, err := build.CombinedOutput()
	require.NoError(t, err, string(text))
	t.Cleanup(g.kill)
	return g
}

// TestDaemonMeetsTrouble lets hooks meet what goes wrong around the resident
// process. No trouble lets a tool run undecided.
func TestDaemonMeetsTrouble(t *testing.T) {
	prove(t)
	g := alonePerson(t, "")
	sockets := filepath.Join(g.state(), "remit", "agents")
	fresh := func(t *testing.T) {
		g.t = t
		g.kill()
		require.NoError(t, os.RemoveAll(g.state()))
		require.NoError(t, os.RemoveAll(g.dir))
		require.NoError(t, os.MkdirAll(g.dir, 0o755))
	}
	blocks := func(t *testing.T, client, why string) {
		a := g.event(client, "s", "p", "PreToolUse", "Write", "u", object{"file_path": filepath.Join(g.dir, "a"), "content": "x"})
		require.False(t, a.allows())
		require.Equal(t, 2, a.code, "%+v", a)
		require.Contains(t, a.err, why)
	}
	t.Run("bad JSON", func(t *testing.T) {
		fresh(t)
		for _, in := range []string{"", "{", "[]", "null", `{"session_id":7}`, "\xff\x00", `{"hook_event_name":"PreToolUse"}`, strings.Repeat("[", 100000)} {
			a := g.send("claude-code", in)
			require.Equal(t, 2, a.code, "%.20q: %+v", in, a)
			require.NotEmpty(t, a.err)
		}
		require.True(t, g.writes("claude-code", "s", "p", "a").allows(), "and it goes on")
	})
	t.Run("20 MB", func(t *testing.T) {
		fresh(t)
		in := object{"file_path": filepath.Join(g.dir, "big"), "content": strings.Repeat("0123456789abcde\n", 20<<16)}
		require.True(t, g.event("claude-code", "s", "p", "PreToolUse", "Write", "u", in).allows())
	})
	t.Run("fifty at once, and no daemon", func(t *testing.T) {
		fresh(t)
		var all sync.WaitGroup
		answers := make([]reply, 50)
		for i := range answers {
			all.Go(func() {
				answers[i] = g.event("claude-code", fmt.Sprint("s", i), "p", "PreToolUse", "Write", "u", object{"file_path": filepath.Join(g.dir, fmt.Sprint(i)), "content": "x"})
			})
		}
		all.Wait()
		for _, a := range answers {
			require.True(t, a.allows(), "%+v", a)
		}
	})
	t.Run("two clients in two folders", func(t *testing.T) {
		fresh(t)
		was := g.tree()
		other := *g
		other.dir = filepath.Join(g.home, "other")
		require.NoError(t, os.MkdirAll(other.dir, 0o755))
		for i, name := range []string{"a", "b", "c"} {
			p := fmt.Sprint("p", i)
			require.True(t, g.writes("claude-code", "s1", p, name).allows())
			require.True(t, g.writes("claude-code", "s2", p, name+"2").allows())
			require.True(t, other.writes("claude-code", "s3", p, name).allows())
		}
		for _, s := range []string{"s1", "s2", "s3"} {
			require.Zero(t, g.event("claude-code", s, "p2", "Stop", "", "", object{}).code)
		}
		out, code := g.remit("undo", "-n", "6")
		require.Zero(t, code, out)
		g.same(was)
		require.FileExists(t, filepath.Join(other.dir, "c"))
	})
	t.Run("undo and redo of a prompt with a call that waits", func(t *testing.T) {
		fresh(t)
		was := g.tree()
		write(t, filepath.Join(g.dir, "a"), "")
		in := object{"command": "*** Begin Patch\n*** Update File: a\n+x\n*** End Patch\n"}
		g.event("codex", "s", "p", "PreToolUse", "apply_patch", "v", in)
		write(t, filepath.Join(g.dir, "a"), "x\n")
		g.event("codex", "s", "p", "PostToolUse", "apply_patch", "v", in)
		waits := g.event("codex", "s", "p", "PreToolUse", "apply_patch", "u", object{"command": "*** Begin Patch\n*** Add File: .mcp.json\n+x\n*** End Patch\n"})
		require.Contains(t, waits.out, "a person must approve it")
		g.event("codex", "s", "p", "Stop", "", "", object{})
		done := g.tree()
		out, code := g.remit("undo", "p")
		require.NotEmpty(t, treecheck.Compare(was, done))
		require.NotEmpty(t, treecheck.Compare(done, g.tree()), out)
		require.Zero(t, code, out)
		require.Contains(t, out, "it waits for approval")
		out, code = g.remit("redo", "p")
		require.Zero(t, code, out)
		g.same(done)
	})
	t.Run("undo after a kill in an observed call", func(t *testing.T) {
		fresh(t)
		g.allows(t)
		was := g.tree()
		g.apart = true
		defer func() { g.apart = false }()
		require.True(t, g.writes("claude-code", "s", "p", "a").allows())
		a := g.event("claude-code", "s", "p", "PreToolUse", "Bash", "u", object{"command": ": observed"})
		require.True(t, a.allows(), "%+v", a)
		require.NotContains(t, a.out, "updatedInput")
		write(t, filepath.Join(g.dir, "b"), "x")
		g.kill()
		out, _ := g.remit("undo", "p")
		for _, d := range g.differences(was) {
			require.Contains(t, out, d.Path)
		}
		require.NoFileExists(t, filepath.Join(g.dir, "a"), out)
		require.Contains(t, out, "client_shell_observed")
	})
	t.Run("the folder is deleted", func(t *testing.T) {
		fresh(t)
		require.True(t, g.writes("claude-code", "s", "p", "a").allows())
		require.NoError(t, os.RemoveAll(g.dir))
		in := object{"file_path": filepath.Join(g.dir, "b"), "content": "x"}
		a := g.event("claude-code", "s", "p", "PreToolUse", "Write", "u2", in)
		require.False(t, a.allows(), "%+v", a)
		require.NoError(t, os.MkdirAll(g.dir, 0o755))
		for _, session := range []string{"s", "t"} { // one that was open, and a new one
			a = g.writes("claude-code", session, "q"+session, "c"+session)
			require.True(t, a.allows(), "%+v", a)
			g.event("claude-code", session, "q"+session, "Stop", "", "", object{})
			out, code := g.remit("undo", "q"+session)
			require.Zero(t, code, out)
			require.NoFileExists(t, filepath.Join(g.dir, "c"+session), out)
		}
	})
	t.Run("what is in the place of the socket", func(t *testing.T) {
		fresh(t)
		require.NoError(t, os.MkdirAll(sockets, 0o700))
		write(t, filepath.Join(sockets, "socket"), "no socket")
		require.True(t, g.writes("claude-code", "s", "p", "a").allows())
		g.kill()
		require.NoError(t, os.Remove(filepath.Join(sockets, "socket")))
		require.NoError(t, os.MkdirAll(filepath.Join(sockets, "socket", "in"), 0o700))
		blocks(t, "claude-code", "resident process")
	})
	t.Run("a folder that others can use", func(t *testing.T) {
		fresh(t)
		require.NoError(t, os.MkdirAll(sockets, 0o700))
		require.NoError(t, os.Chmod(sockets, 0o777))
		blocks(t, "claude-code", "resident process")
		require.NoError(t, os.Chmod(sockets, 0o700))
		require.True(t, g.writes("claude-code", "s", "p", "a").allows())
	})
	t.Run("no folder for state", func(t *testing.T) {
		fresh(t)
		write(t, g.state(), "a file")
		blocks(t, "claude-code", sockets)
		require.NoError(t, os.Remove(g.state()))
	})
	t.Run("another program answers", func(t *testing.T) {
		fresh(t)
		require.NoError(t, os.MkdirAll(sockets, 0o700))
		l, err := net.Listen("unix", filepath.Join(sockets, "socket"))
		require.NoError(t, err)
		defer func() { _ = l.Close() }()
		for _, text := range []string{"", "hello\n", "reply 0 5 0\n{}", "reply 0 -1 0\n", "reply 0 0\n", "reply x 0 0\n"} {
			go func() {
				if conn, err := l.Accept(); err == nil {
					_, _ = conn.Read(make([]byte, 1<<16))
					_, _ = conn.Write([]byte(text))
					_ = conn.Close()
				}
			}()
			blocks(t, "claude-code", "did not answer")
		}
	})
	t.Run("a long home", func(t *testing.T) {
		fresh(t)
		long := alonePerson(t, filepath.Join(g.base, strings.Repeat("long", 20), strings.Repeat("home", 20)))
		long.t = t
		require.True(t, long.writes("claude-code", "s", "p", "a").allows())
	})
}

// TestKilledProcesses kills the resident process, the process that shows a
// command, or both, at random moments of a command. Afterwards a hook starts
// the next resident process, and an undo brings the tree back.
func TestKilledProcesses(t *testing.T) {
	prove(t)
	rounds := 8
	if os.Getenv("REMIT_LONG") != "" {
		rounds = 100
	}
	g := alonePerson(t, "")
	for round := range rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			g.t = t
			g.killed(rand.New(rand.NewPCG(1, uint64(round))), round)
		})
	}
}

// killed is one round.
func (g *guarded) killed(r *rand.Rand, round int) {
	t := g.t
	require.NoError(t, os.RemoveAll(g.dir))
	require.NoError(t, os.MkdirAll(g.dir, 0o755))
	g.files()
	g.kill()
	was := g.tree()
	session, prompt := fmt.Sprint("s", round), fmt.Sprint("prompt-", round, ".")
	g.event("claude-code", session, prompt, "UserPromptSubmit", "", "", object{})
	require.True(t, g.writes("claude-code", session, prompt, "first.txt").allows())
	command := "rm -rf sub; for i in $(seq 30); do mkdir d$i; echo $i > d$i/f; done; sleep 0.05; echo changed > notes.txt; mv keep kept"
	a := g.event("claude-code", session, prompt, "PreToolUse", "Bash", "u"+session, object{"command": command})
	require.True(t, a.allows(), "%+v", a)
	var answer struct {
		HookSpecificOutput struct{ UpdatedInput struct{ Command string } }
	}
	require.NoError(t, json.Unmarshal([]byte(a.out), &answer))
	shows := exec.Command("bash", "-c", "exec "+answer.HookSpecificOutput.UpdatedInput.Command)
	shows.Dir, shows.Env = g.dir, g.env()
	require.NoError(t, shows.Start())
	what := r.IntN(3)
	time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond) // the moment of the crash
	if what != 0 {
		_ = shows.Process.Kill()
	}
	if what != 1 {
		g.kill()
	}
	_ = shows.Wait()
	next := g.event("claude-code", session+"n", prompt+"n", "PreToolUse", "Write", "u", object{"file_path": filepath.Join(g.dir, "next"), "content": "x"})
	require.True(t, next.allows(), "nothing blocks the next session: %+v", next)
	g.event("claude-code", session, prompt, "Stop", "", "", object{})
	g.event("claude-code", session+"n", prompt+"n", "Stop", "", "", object{})
	text := ""
	for _, e := range g.entries(prompt) {
		out, _ := g.remit("undo", e.Txn)
		text += out
	}
	for _, d := range g.differences(was) {
		require.Contains(t, text, d.Path, "kill %d: %s", what, d)
		t.Logf("kill %d: named: %s", what, d)
	}
	log, _ := g.remit("log")
	require.NotContains(t, log, "in_flight", log)
}
