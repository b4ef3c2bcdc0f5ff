package process_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	handle "github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// attached runs a script with an attachment, and commits it.
func (w programSetup) attached(ctx context.Context, t *testing.T, a handle.Attachment, script string) (txn string, o tool.Outcome) {
	t.Helper()
	tx, err := w.s.Begin(t.Context())
	require.NoError(t, err)
	o, _ = tx.Invoke(handle.Attach(ctx, a), "process_run", tool.Args{"argv": []string{"bash", "-c", script}, "timeout_s": 3600})
	require.NoError(t, tx.Commit(t.Context()))
	return tx.ID(), o
}

// pipe returns a pipe whose ends the test closes.
func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

// started waits for a line of a stream that the program prints when it has
// started.
func started(t *testing.T, r io.Reader) *bufio.Reader {
	t.Helper()
	lines := bufio.NewReader(r)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "started\n", line)
	return lines
}

// TestAttachedOutput checks that a caller gets both outputs whole, while the
// record keeps the bounded part.
func TestAttachedOutput(t *testing.T) {
	d, err := handle.New(handle.Config{Shim: shim(t), MaxOutput: 100})
	require.NoError(t, err)
	w := newProgramSetup(t, agent.Driver(d))
	var out, errs bytes.Buffer
	_, o := w.attached(t.Context(), t, handle.Attachment{Stdout: &out, Stderr: &errs}, `head -c 1000000 /dev/zero; printf '\377\0\n' >&2; exit 3`)
	require.Equal(t, tool.StatusDone, o.Status, o.Text)
	require.Equal(t, make([]byte, 1000000), out.Bytes())
	require.Equal(t, "\377\x00\n", errs.String())
	require.Contains(t, string(o.Output), `"dropped":999900`)
	require.Contains(t, string(o.Output), `"exit_code":3`)
}

// TestAttachedConversation checks that a caller gets each line when the program
// writes it, and the program each input when the caller writes it.
func TestAttachedConversation(t *testing.T) {
	w := newProgramSetup(t)
	for name, input := range map[string]func(io.Reader) io.Reader{
		"pipe":   func(r io.Reader) io.Reader { return r },
		"reader": func(r io.Reader) io.Reader { return struct{ io.Reader }{r} },
	} {
		t.Run(name, func(t *testing.T) {
			in, type_ := pipe(t)
			screen, out := pipe(t)
			var talk sync.WaitGroup
			talk.Go(func() {
				lines := started(t, screen)
				for _, word := range []string{"one", "two"} {
					_, err := io.WriteString(type_, word+"\n")
					require.NoError(t, err)
					line, err := lines.ReadString('\n')
					require.NoError(t, err)
					require.Equal(t, "got "+word+"\n", line)
				}
				require.NoError(t, type_.Close())
			})
			_, o := w.attached(t.Context(), t, handle.Attachment{Stdin: input(in), Stdout: out}, `echo started; while read -r x; do echo "got $x"; done; echo end`)
			talk.Wait()
			require.Equal(t, tool.StatusDone, o.Status, o.Text)
			require.Contains(t, o.Text, "end")
		})
	}
}

// TestAttachedFile checks that a program cannot change a file that it reads as
// standard input, and that the file is afterwards where the program stopped.
func TestAttachedFile(t *testing.T) {
	w := newProgramSetup(t)
	path := filepath.Join(t.TempDir(), "input")
	text := "first\n" + strings.Repeat("x", 1<<20)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	for _, mode := range []int{os.O_RDONLY, os.O_RDWR} {
		f, err := os.OpenFile(path, mode, 0)
		require.NoError(t, err)
		_, o := w.attached(t.Context(), t, handle.Attachment{Stdin: f}, `read -r line; echo "$line"; chmod 777 /proc/self/fd/0; echo x >&0; true`)
		require.Equal(t, tool.StatusDone, o.Status, o.Text)
		require.True(t, strings.HasPrefix(o.Text, "first\n"), o.Text)
		at, err := f.Seek(0, io.SeekCurrent)
		require.NoError(t, err)
		require.EqualValues(t, len("first\n"), at)
		require.NoError(t, f.Close())
	}
	is, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), is.Mode())
	left, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, text, string(left))
}

// TestAttachedInputIsLeft checks that a program which reads nothing takes
// nothing of a pipe from its caller.
func TestAttachedInputIsLeft(t *testing.T) {
	w := newProgramSetup(t)
	in, type_ := pipe(t)
	_, err := io.WriteString(type_, "for the next\n")
	require.NoError(t, err)
	_, o := w.attached(t.Context(), t, handle.Attachment{Stdin: in}, `true`)
	require.Equal(t, tool.StatusDone, o.Status, o.Text)
	line, err := bufio.NewReader(in).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "for the next\n", line)
}

// TestAttachedGrandchild checks that a process which the program leaves running
// with its output does not keep the call.
func TestAttachedGrandchild(t *testing.T) {
	w := newProgramSetup(t)
	screen, out := pipe(t)
	_, o := w.attached(t.Context(), t, handle.Attachment{Stdout: out}, `(setsid sleep infinity &) ; echo started`)
	require.Equal(t, tool.StatusDone, o.Status, o.Text)
	require.Contains(t, string(o.Output), `"survivors":1`)
	require.NoError(t, out.Close())
	rest, err := io.ReadAll(started(t, screen))
	require.NoError(t, err)
	require.Empty(t, rest)
}

// TestAttachedReaderGone checks that a program gets SIGPIPE when its caller's
// reader has gone, and that its changes are applied as after any other end.
func TestAttachedReaderGone(t *testing.T) {
	w := newProgramSetup(t)
	screen, out := pipe(t)
	go func() {
		started(t, screen)
		_ = screen.Close()
	}()
	txn, o := w.attached(t.Context(), t, handle.Attachment{Stdout: out}, `echo new > a; echo started; exec yes`)
	require.Equal(t, tool.StatusDone, o.Status, o.Text)
	require.Contains(t, string(o.Output), `"signal":"broken pipe"`)
	require.FileExists(t, filepath.Join(w.dir, "a"))
	_, err := w.s.Revert(t.Context(), txn, revert.Options{})
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(w.dir, "a"))
}

// TestAttachedSignals checks that signals reach the program's group, and that
// one which does not end is killed and has changed nothing.
func TestAttachedSignals(t *testing.T) {
	w := newProgramSetup(t)
	for _, tt := range []struct {
		name, script, output string
		signals              []syscall.Signal
		grace                time.Duration
		status               tool.Status
	}{
		{"handled", `trap 'echo term; exit 7' TERM; echo started; sleep infinity & wait`, `"exit_code":7`, []syscall.Signal{syscall.SIGTERM}, 0, tool.StatusDone},
		{"group", `echo started; sleep infinity; echo rest`, `"signal":"interrupt"`, []syscall.Signal{syscall.SIGINT}, 0, tool.StatusDone},
		{"hangup", `echo started; exec sleep infinity`, `"signal":"hangup"`, []syscall.Signal{syscall.SIGHUP}, 0, tool.StatusDone},
		{"no end", `trap 'echo usr > usr; exit' USR1; echo started; while :; do :; done`, `"exit_code":0`, []syscall.Signal{syscall.SIGUSR1}, time.Nanosecond, tool.StatusDone},
		{"ignored", `trap '' TERM; echo new > ignored; echo started; while :; do :; done`, `null`, []syscall.Signal{syscall.SIGTERM}, time.Millisecond, tool.StatusFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			screen, out := pipe(t)
			signals := make(chan syscall.Signal, 8)
			go func() {
				lines := started(t, screen)
				for _, sig := range tt.signals {
					signals <- sig
				}
				_, _ = io.Copy(io.Discard, lines)
			}()
			_, o := w.attached(t.Context(), t, handle.Attachment{Stdout: out, Signals: signals, Grace: tt.grace}, tt.script)
			require.Equal(t, tt.status, o.Status, o.Text)
			require.Contains(t, string(o.Output), tt.output)
		})
	}
	require.FileExists(t, filepath.Join(w.dir, "usr"))
	require.NoFileExists(t, filepath.Join(w.dir, "ignored"))
}

// stalled is a writer whose reader never reads, until it is freed.
type stalled struct {
	begun, free chan struct{}
	once        sync.Once
}

func (s *stalled) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.begun) })
	<-s.free
	return len(p), nil
}

// TestAttachedReaderStalls checks that a cancelled call ends although its
// caller does not read, and changes nothing.
func TestAttachedReaderStalls(t *testing.T) {
	w := newProgramSetup(t)
	s := &stalled{begun: make(chan struct{}), free: make(chan struct{})}
	defer close(s.free)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-s.begun
		cancel(errors.New("given up"))
	}()
	_, o := w.attached(ctx, t, handle.Attachment{Stdout: s}, `echo new > a; exec yes`)
	require.Equal(t, tool.StatusCancelled, o.Status, o.Text)
	require.NoFileExists(t, filepath.Join(w.dir, "a"))
}

// TestAttachedEnvironment checks what a program sees of its caller's
// environment, and that what it writes outside of the roots is gone afterwards.
func TestAttachedEnvironment(t *testing.T) {
	w := newProgramSetup(t)
	home := filepath.Join(t.TempDir(), "home")
	write := func(name, text string, mode os.FileMode) {
		path := filepath.Join(home, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
	}
	write(".nvm/versions/node/v1/bin/mytool", "#!/bin/sh\ncat \"$(dirname \"$0\")/../lib/text\"\n", 0o755)
	write(".nvm/versions/node/v1/lib/text", "from the library\n", 0o644)
	write("bin/other", "#!/bin/sh\necho other\n", 0o755)
	write(".ssh/id_ed25519", "secret", 0o600)
	write(".cargo/credentials.toml", "secret", 0o600)
	write(".cargo/registry/index", "index", 0o644)
	write("project/secret", "secret", 0o644)
	e := handle.CallerEnvironment([]string{
		"HOME=" + home, "PATH=" + home + "/.nvm/versions/node/v1/bin:relative:" + home + "/bin:/usr/bin:/bin:" + home + "/missing",
		"LANG=de_DE.UTF-8", "TERM=xterm-256color", "API_TOKEN=secret", "AWS_SECRET_ACCESS_KEY=secret", "NAMED_KEY=given",
	}, "NAMED_KEY")
	_, o := w.attached(t.Context(), t, handle.Attachment{Environment: e}, `mytool; other; echo "$LANG $TERM ${API_TOKEN-none} ${AWS_SECRET_ACCESS_KEY-none} $NAMED_KEY"; cd; pwd
		for f in .ssh .cargo/credentials.toml project; do test -e $f && echo "sees $f"; done
		cat .cargo/registry/index; echo; echo changed > .cargo/registry/index; echo mine > mine; cat .cargo/registry/index mine
		echo x > .nvm/x || echo read-only`)
	require.Equal(t, tool.StatusDone, o.Status, o.Text)
	text, _, _ := strings.Cut(o.Text, "\n[")
	require.Equal(t, "from the library\nother\nde_DE.UTF-8 xterm-256color none none given\n"+home+"\nindex\nchanged\nmine\nread-only\n", text)
	require.NoFileExists(t, filepath.Join(home, "mine"))
	left, err := os.ReadFile(filepath.Join(home, ".cargo/registry/index"))
	require.NoError(t, err)
	require.Equal(t, "index", string(left))
	require.Empty(t, o.Changes)
}

// TestAttachedHomeAroundRoot checks that an environment shows nothing that
// contains a root, and that the root of a home folder stays as it is.
func TestAttachedHomeAroundRoot(t *testing.T) {
	home := t.TempDir()
	ws := filepath.Join(home, "go", "bin", "ws")
	require.NoError(t, os.MkdirAll(ws, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(home, "go", "bin", "beside"), []byte("x"), 0o755))
	w := newFastSetupIn(t, ws)
	e := handle.CallerEnvironment([]string{"HOME=" + home, "PATH=" + home + "/go/bin:/usr/bin:/bin"})
	_, o := w.attached(t.Context(), t, handle.Attachment{Environment: e}, `pwd; ls ..; echo new > a; echo y > ~/y; cat ~/y`)
	require.Equal(t, tool.StatusDone, o.Status, o.Text)
	require.Equal(t, ws+"\nws\ny\n", o.Text)
	require.FileExists(t, filepath.Join(ws, "a"))
	require.NoFileExists(t, filepath.Join(home, "y"))
	_, o = newFastSetupIn(t, home).attached(t.Context(), t, handle.Attachment{Environment: e}, `echo kept > ~/kept`)
	require.Equal(t, tool.StatusDone, o.Status, o.Text)
	require.FileExists(t, filepath.Join(home, "kept"))
}
