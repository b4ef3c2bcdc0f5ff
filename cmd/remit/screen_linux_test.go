package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// screen is a terminal with a program in it: a window of tmux, which tells when the program writes. Tests wait for what it shows, and for
// no time.
type screen struct {
	t      *testing.T
	socket string
	in     io.WriteCloser
	lines  chan string
	news   bool // the program has written since the last look
}

// hungAfter is when a screen that never shows what a test waits for fails it.
const hungAfter = 2 * time.Minute

// newScreen starts a shell in a window. Its server has no parent that runs, like the one of a person.
func newScreen(t *testing.T, bin string, width, height int, env ...string) *screen {
	t.Helper()
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("there is no tmux: .ci/programs installs it")
	}
	s := &screen{t: t, socket: filepath.Join(t.TempDir(), "s"), lines: make(chan string, 1000)}
	cmd := exec.Command(tmux, "-S", s.socket, "-f", "/dev/null", "-C", "new-session", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), "exec sh")
	cmd.Env = append(os.Environ(), "PS1=$ ", "ENV=", "PATH="+bin+":"+os.Getenv("PATH"), "TERM=screen", "LC_ALL=C.UTF-8", "TZ=UTC", "SHELL=/bin/sh", "NO_COLOR=", "TMUX=")
	cmd.Env = append(cmd.Env, env...)
	s.in, err = cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	go func() {
		defer close(s.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			s.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_, _ = io.WriteString(s.in, "kill-server\n")
		_ = s.in.Close()
		for range s.lines { // until the server has ended
		}
		_ = cmd.Wait()
	})
	ctx, stop := context.WithTimeout(t.Context(), hungAfter)
	defer stop()
	s.next(ctx) // the answer to new-session
	s.command(fmt.Sprintf("refresh-client -C %dx%d", width, height))
	s.until("$")
	return s
}

// next returns the next line of the server that is no part of an answer, or the answer.
func (s *screen) next(ctx context.Context) (answer string, isAnswer bool) {
	s.t.Helper()
	var block []string
	inside := false
	for {
		select {
		case line, open := <-s.lines:
			switch {
			case !open:
				require.FailNow(s.t, "tmux ended")
			case strings.HasPrefix(line, "%begin "):
				inside = true
			case strings.HasPrefix(line, "%end "), strings.HasPrefix(line, "%error "):
				return strings.Join(block, "\n"), true
			case inside:
				block = append(block, line)
			case strings.HasPrefix(line, "%output "):
				s.news = true
				return "", false
			}
		case <-ctx.Done():
			return "", false
		}
	}
}

// command runs a command of tmux.
func (s *screen) command(line string) string {
	s.t.Helper()
	_, err := io.WriteString(s.in, line+"\n")
	require.NoError(s.t, err)
	ctx, stop := context.WithTimeout(s.t.Context(), hungAfter)
	defer stop()
	for ctx.Err() == nil {
		if answer, is := s.next(ctx); is {
			return answer
		}
	}
	require.FailNow(s.t, "tmux does not answer", line)
	return ""
}

// shown returns the screen. Codes asks for the escape sequences of colours too.
func (s *screen) shown(codes bool) string {
	s.t.Helper()
	flag := ""
	if codes {
		flag = " -e"
	}
	s.news = false
	lines := strings.Split(s.command("capture-pane -p"+flag), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

// until waits until the screen shows a text, and returns it.
func (s *screen) until(text string) string {
	s.t.Helper()
	return s.when(text, func(shown string) bool { return strings.Contains(shown, text) })
}

// gone waits until the screen does not show a text.
func (s *screen) gone(text string) string {
	s.t.Helper()
	return s.when("not "+text, func(shown string) bool { return !strings.Contains(shown, text) })
}

func (s *screen) when(what string, is func(shown string) bool) string {
	s.t.Helper()
	ctx, stop := context.WithTimeout(s.t.Context(), hungAfter)
	defer stop()
	shown := s.shown(false)
	for ; ctx.Err() == nil && !is(shown); shown = s.shown(false) {
		if !s.news {
			s.next(ctx)
		}
	}
	require.True(s.t, is(shown), "the screen does not show: %s\n%s", what, shown)
	return shown
}

// press presses keys by the names that tmux has for them.
func (s *screen) press(keys ...string) {
	s.t.Helper()
	s.command("send-keys -- '" + strings.Join(keys, "' '") + "'")
}

// types types a line into the shell.
func (s *screen) types(line string) {
	s.t.Helper()
	s.command("send-keys -l -- '" + line + "'")
	s.press("Enter")
}

// resize gives the window another size.
func (s *screen) resize(width, height int) {
	s.t.Helper()
	s.command(fmt.Sprintf("refresh-client -C %dx%d", width, height))
}
