package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// execEnv is a workspace in which commands run.
type execEnv struct{ bin, ws, state string }

func newExecEnv(t *testing.T) execEnv {
	t.Helper()
	if !hasSandbox() {
		t.Skip("no sandbox on this machine")
	}
	bin, err := builtOnce()
	require.NoError(t, err)
	e := execEnv{bin: bin, ws: filepath.Join(t.TempDir(), "ws"), state: filepath.Join(t.TempDir(), "state")}
	require.NoError(t, os.MkdirAll(filepath.Join(e.ws, "sub", "deep"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(e.ws, "a.txt"), []byte("old\n"), 0o600))
	return e
}

// command returns a command line of remit, to run in the workspace.
func (e execEnv) command(args ...string) *exec.Cmd {
	cmd := exec.Command(e.bin, args[0], "--state", e.state)
	cmd.Args = append(cmd.Args, args[1:]...)
	cmd.Dir = e.ws
	return cmd
}

// run runs a command line to its end.
func (e execEnv) run(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	return finished(t, e.command(args...))
}

func finished(t *testing.T, cmd *exec.Cmd) (code int, out, errs string) {
	t.Helper()
	var o, s bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &s
	if err := cmd.Run(); cmd.ProcessState == nil {
		require.NoError(t, err)
	}
	return cmd.ProcessState.ExitCode(), o.String(), s.String()
}

// TestExecPrograms runs real programs, and reverts what each of them changed.
func TestExecPrograms(t *testing.T) {
	t.Parallel()
	e := newExecEnv(t)
	for _, f := range [][2]string{
		{"Makefile", "all:\n\tcp a.txt made.txt\n\techo made\n"},
		{"go.mod", "module example.com/x\n\ngo 1.26.0\n\nrequire golang.org/x/sys " + versionOf(t, "golang.org/x/sys") + "\n"},
		{"main.go", "package main\n\nimport \"golang.org/x/sys/unix\"\n\nfunc main() { println(unix.Getpid() > 0) }\n"},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(e.ws, f[0]), []byte(f[1]), 0o600))
	}
	sums, err := os.ReadFile(filepath.Join(here, "..", "..", "go.sum"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(e.ws, "go.sum"), sums, 0o600))
	for _, tt := range []struct {
		program, made, out string
		argv               []string
	}{
		{"bash", "b.txt", "bash\n", []string{"bash", "-c", "rm a.txt; mkdir -p n; echo x > n/f; echo y > b.txt; echo bash"}},
		{"git", ".git/HEAD", "", []string{"bash", "-c", "git init -q . && git add -A && git -c user.name=a -c user.email=b commit -qm first"}},
		{"make", "made.txt", "cp a.txt made.txt\necho made\nmade\n", []string{"env", "-u", "MAKEFLAGS", "make"}}, // the test can run below make -s
		{"node", "node.txt", "node\n", []string{"node", "-e", "require('fs').writeFileSync('node.txt', 'x'); console.log('node')"}},
		{"python3", "py.txt", "py\n", []string{"python3", "-c", "open('py.txt', 'w').write('x'); print('py')"}},
		{"go", "x", "", []string{"go", "build", "-o", "x", "."}},
	} {
		if _, err := exec.LookPath(tt.program); err != nil {
			t.Logf("%s is not installed", tt.program)
			continue
		}
		before := fullSnapshot(t, e.ws)
		code, out, errs := e.run(t, append([]string{"exec", "--"}, tt.argv...)...)
		require.Equal(t, 0, code, errs)
		require.Equal(t, tt.out, out, errs)
		require.FileExists(t, filepath.Join(e.ws, tt.made))
		code, _, errs = e.run(t, "revert", "--last")
		require.Equal(t, 0, code, errs)
		require.Equal(t, before, fullSnapshot(t, e.ws), tt.program)
	}
}

// versionOf returns the version of a module that the module cache has.
func versionOf(t *testing.T, module string) string {
	t.Helper()
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Version}}", module)
	cmd.Dir = here
	out, err := cmd.Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// TestExecCodes checks the exit codes of programs and of remit itself.
func TestExecCodes(t *testing.T) {
	t.Parallel()
	e := newExecEnv(t)
	hook := "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"
	for _, tt := range []struct {
		code  int
		errs  []string // what remit says; none: nothing
		flags []string
		argv  string
	}{
		{0, nil, nil, "true"},
		{1, nil, nil, "false"},
		{3, nil, nil, "exit 3"},
		{103, nil, nil, "exit 103"},
		{255, nil, nil, "exit 255"},
		{127, nil, nil, "/nowhere 2>/dev/null; exit"},
		{137, nil, nil, "kill -KILL $$"},
		{143, nil, nil, "kill -TERM $$"},
		{103, []string{"remit: nothing was changed", "file://workspace/.git/hooks/pre-commit", "git runs this hook later", "git.rego:", "allow "}, nil, hook},
		{104, []string{"waits for approval", "remit pending", "remit resume"}, []string{"--on-ask", "wait"}, hook},
		{105, []string{"remit: nothing was changed", "ran out of time"}, []string{"--timeout", "1ms"}, "echo x > late; sleep infinity"},
		{102, []string{"remit: --timeout 2h0m0s: must be"}, []string{"--timeout", "2h"}, "true"},
		{102, []string{"remit: unknown flag: --nosuch"}, []string{"--nosuch"}, "true"},
	} {
		before := fullSnapshot(t, e.ws)
		code, out, errs := e.run(t, append(append([]string{"exec"}, tt.flags...), "--", "bash", "-c", tt.argv)...)
		require.Equal(t, tt.code, code, "%v: %s", tt.argv, errs)
		require.Empty(t, out)
		if tt.errs == nil {
			require.Empty(t, errs)
		}
		for _, text := range tt.errs {
			require.Contains(t, errs, text)
		}
		require.Equal(t, before, fullSnapshot(t, e.ws))
	}
	code, _, errs := e.run(t, "exec", "nosuchprogram")
	require.Equal(t, 105, code)
	require.Contains(t, errs, "nosuchprogram is not in PATH")
}

// TestExecFolder checks in which folder a command starts.
func TestExecFolder(t *testing.T) {
	t.Parallel()
	e := newExecEnv(t)
	for _, tt := range []struct {
		dir   string
		flags []string
		want  string
	}{
		{".", nil, "."},
		{"sub/deep", []string{"--workspace", e.ws}, "sub/deep"},
		{"sub", []string{"--workspace", "..", "--cwd", "sub/deep"}, "sub/deep"},
		{"..", []string{"--workspace", e.ws, "--cwd", "sub"}, "sub"},
		{"/", []string{"--workspace", e.ws, "--cwd", e.ws}, "."},
		{"sub", []string{"--root", "workspace=" + e.ws}, "sub"},
	} {
		cmd := e.command(append(append([]string{"exec"}, tt.flags...), "pwd")...)
		cmd.Dir = filepath.Join(e.ws, tt.dir)
		if filepath.IsAbs(tt.dir) {
			cmd.Dir = tt.dir
		}
		code, out, errs := finished(t, cmd)
		require.Equal(t, 0, code, errs)
		require.Equal(t, filepath.Join(e.ws, tt.want)+"\n", out)
	}
	for _, flags := range [][]string{nil, {"--cwd", "../.."}, {"--cwd", "/"}} {
		cmd := e.command(append(append([]string{"exec", "--workspace", e.ws}, flags...), "pwd")...)
		cmd.Dir = "/"
		code, _, errs := finished(t, cmd)
		require.Equal(t, 102, code)
		require.Contains(t, errs, "is not in the workspace")
		require.Contains(t, errs, "--cwd DIR")
	}
}

// TestExecStreams checks that a caller gets lines as they come, that both
// outputs are apart, and that large and binary output arrives whole.
func TestExecStreams(t *testing.T) {
	t.Parallel()
	e := newExecEnv(t)
	cmd := e.command("exec", "--", "bash", "-c", "echo out; echo err >&2; read -r x; echo got $x; cat")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	errs, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(out)
	for _, want := range []struct {
		from *bufio.Reader
		line string
	}{{lines, "out\n"}, {bufio.NewReader(errs), "err\n"}} {
		line, err := want.from.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, want.line, line)
	}
	_, err = io.WriteString(in, "word\nrest")
	require.NoError(t, err)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "got word\n", line)
	require.NoError(t, in.Close())
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	require.Equal(t, "rest", string(rest))
	require.NoError(t, cmd.Wait())

	sum := sha256.New()
	cmd = e.command("exec", "--", "bash", "-c", "mkfifo p; sha256sum < p > sum & head -c 100000000 /dev/urandom | tee p; wait; rm p")
	cmd.Stdout = sum
	require.NoError(t, cmd.Run())
	text, err := os.ReadFile(filepath.Join(e.ws, "sum"))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%x  -\n", sum.Sum(nil)), string(text))
}

// TestExecReaderGone checks that a command gets SIGPIPE for its reader, and
// that a loop of a shell keeps its input.
func TestExecReaderGone(t *testing.T) {
	t.Parallel()
	e := newExecEnv(t)
	script := exec.Command("bash", "-c", `"$0" exec --state "$1" yes | head -n 1; echo ${PIPESTATUS[0]}; printf '1\n2\n3\n' > in; while read -r x; do "$0" exec --state "$1" true; echo $x; done < in`, e.bin, e.state)
	script.Dir = e.ws
	code, out, errs := finished(t, script)
	require.Equal(t, 0, code, errs)
	require.Equal(t, "y\n141\n1\n2\n3\n", out)
	require.Empty(t, errs)
}

// TestExecSignals checks that signals reach the command, and that a killed
// remit ends the command and applies nothing.
func TestExecSignals(t *testing.T) {
	t.Parallel()
	hangup := make(chan os.Signal, 1) // below nohup, it is ignored, and so it would be in the commands
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	e := newExecEnv(t)
	before := fullSnapshot(t, e.ws)
	for _, tt := range []struct {
		sig    syscall.Signal
		script string
		code   int
	}{
		{syscall.SIGTERM, `trap 'exit 9' TERM; echo started; sleep infinity & wait`, 9},
		{syscall.SIGINT, `echo started; sleep infinity`, 130},
		{syscall.SIGHUP, `echo started; sleep infinity`, 129},
		{syscall.SIGKILL, `echo new > a.txt; echo started; cat`, -1},
	} {
		cmd := e.command("exec", "--", "bash", "-c", tt.script)
		in, type_, err := os.Pipe()
		require.NoError(t, err)
		cmd.Stdin = in
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		require.NoError(t, in.Close()) // now only the command can read
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "started\n", line)
		require.NoError(t, cmd.Process.Signal(tt.sig))
		_ = cmd.Wait()
		require.Equal(t, tt.code, cmd.ProcessState.ExitCode())
		for err == nil { // ends when no process of the command is left
			_, err = type_.WriteString("x")
		}
		require.ErrorIs(t, err, syscall.EPIPE)
		require.NoError(t, type_.Close())
		require.Equal(t, before, fullSnapshot(t, e.ws))
	}
	code, out, errs := e.run(t, "recover")
	require.Equal(t, 0, code, errs)
	require.Contains(t, out, "it had nothing to revert")
}

// TestExecApproval checks that a person at the terminal decides about the
// changes of a command that had the terminal before.
func TestExecApproval(t *testing.T) {
	t.Parallel()
	e := newExecEnv(t)
	hook := []string{"bash", "-c", "[ -t 0 ] && [ -t 1 ] && echo terminal; mkdir -p .git/hooks; printf x > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; read -r -t 0; exit 7"}
	for answer, code := range map[string]int{"y": 7, "n": 103} {
		cmd := onPty(t, e, append([]string{"exec", "--state", e.state, "--on-ask", "prompt", "--"}, hook...))
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		seen, screen := "", bufio.NewReader(out)
		for !strings.Contains(seen, "[y") { // the prompt
			b, err := screen.ReadByte()
			require.NoError(t, err, seen)
			seen += string(b)
		}
		require.Contains(t, seen, "terminal\r\n")
		_, err = io.WriteString(in, answer+"\n")
		require.NoError(t, err)
		_, err = io.ReadAll(screen)
		require.NoError(t, err)
		_ = cmd.Wait()
		require.Equal(t, code, cmd.ProcessState.ExitCode(), seen)
		_, err = os.Stat(filepath.Join(e.ws, ".git/hooks/pre-commit"))
		require.Equal(t, code == 7, err == nil)
		if err == nil {
			code, _, errs := e.run(t, "revert", "--last")
			require.Equal(t, 0, code, errs)
			require.NoDirExists(t, filepath.Join(e.ws, ".git"))
		}
	}
}

// onPty returns remit at a terminal of its own.
func onPty(t *testing.T, e execEnv, args []string) *exec.Cmd {
	t.Helper()
	onpty := filepath.Join(t.TempDir(), "onpty")
	require.NoError(t, os.Symlink(self(), onpty))
	cmd := exec.Command(onpty, append([]string{e.bin}, args...)...)
	cmd.Dir = e.ws
	return cmd
}

// TestExecTerminal checks that a command at a terminal has one.
func TestExecTerminal(t *testing.T) {
	t.Parallel()
	e := newExecEnv(t)
	// At an interrupt, a terminal discards what was just printed, unless noflsh is set, and its echo can come after the output of
	// the trap. A shell runs a trap between commands, so the last ones are short: with one that never ends, the trap would not run
	// if the signal came just before it.
	const script = `for f in 0 1 2; do [ -t $f ] && echo $f; done; exec 3</dev/tty && printf 'name? ' && read -r x <&3; echo "hello $x"
		stty noflsh -echo; trap 'echo int; exit 4' INT; echo ready; while :; do sleep 0.1; done`
	cmd := onPty(t, e, []string{"exec", "--state", e.state, "--", "sh", "-c", script})
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	seen, screen := "", bufio.NewReader(out)
	until := func(text string) {
		for !strings.Contains(seen, text) {
			b, err := screen.ReadByte()
			require.NoError(t, err, seen)
			seen += string(b)
		}
	}
	until("name? ")
	_, err = io.WriteString(in, "bob\r")
	require.NoError(t, err)
	until("ready\r\n")
	_, err = io.WriteString(in, "\x03")
	require.NoError(t, err)
	until("int\r\n")
	require.Equal(t, "0\r\n1\r\n2\r\nname? bob\r\nhello bob\r\nready\r\nint\r\n", seen)
	_, err = io.ReadAll(screen)
	require.NoError(t, err)
	_ = cmd.Wait()
	require.Equal(t, 4, cmd.ProcessState.ExitCode())
}
