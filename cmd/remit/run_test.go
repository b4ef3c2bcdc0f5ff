package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/script"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/lineage"
)

// place for a test: a workspace and a state beside it.
func testPlace(t *testing.T) (workspace, state string) {
	t.Helper()
	dir := t.TempDir()
	workspace = filepath.Join(dir, "workspace")
	require.NoError(t, os.Mkdir(workspace, 0o755))
	return workspace, filepath.Join(dir, "state")
}

func testEnv(in io.Reader, out, errs io.Writer) cli.Env {
	return cli.Env{
		In: in, Out: out, Err: errs, Host: host.Real(),
		Getenv:   func(string) string { return "" },
		Username: func() (string, error) { return "", errors.New("nobody") },
		OpenTTY:  func() (io.ReadWriteCloser, error) { return nil, errors.New("none") },

		Caller: personHere,
	}
}

// TestInterrupt: what was not run to its end is not committed, and nothing of it
// is lost.
func TestInterrupt(t *testing.T) {
	workspace, state := testPlace(t)
	ctx, cancel := context.WithCancel(t.Context())
	scriptIn, text := io.Pipe()
	answers, out := io.Pipe()
	var errs bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"run", "--workspace", workspace, "--state", state, "--json", "-"}, testEnv(scriptIn, out, &errs))
		_ = out.Close()
	}()
	lines := bufio.NewScanner(answers)
	_, err := io.WriteString(text, `{"tool":"file_write","args":{"path":"a.txt","content":"x"}}`+"\n")
	require.NoError(t, err)
	require.True(t, lines.Scan(), "an answer comes before the script ends")
	require.Contains(t, lines.Text(), `"status":"done"`)
	cancel()
	require.True(t, lines.Scan())
	var sum script.Summary
	require.NoError(t, json.Unmarshal(lines.Bytes(), &sum))
	require.Equal(t, "open", string(sum.State))
	require.False(t, lines.Scan())
	require.Equal(t, int(cli.ExitInternal), <-code)

	var back bytes.Buffer
	w := testEnv(nil, &back, &errs)
	require.Equal(t, 0, run(t.Context(), []string{"revert", "--state", state, "--last"}, w), errs.String())
	require.NoFileExists(t, filepath.Join(workspace, "a.txt"))
}

// TestReaderGone: the script is run to its end also when nobody reads on. Not to
// be heard is no success.
func TestReaderGone(t *testing.T) {
	remit := build(t)
	workspace, state := testPlace(t)
	var script strings.Builder
	for range 200 {
		script.WriteString(`{"tool":"file_list","args":{}}` + "\n")
	}
	script.WriteString(`{"tool":"file_write","args":{"path":"last.txt","content":"x"}}`)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(remit, "run", "--workspace", workspace, "--state", state, "--json", "-")
	cmd.Stdin, cmd.Stdout = strings.NewReader(script.String()), write
	require.NoError(t, cmd.Start())
	require.NoError(t, errors.Join(read.Close(), write.Close()))
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	require.Equal(t, int(cli.ExitInternal), exit.ExitCode())
	require.FileExists(t, filepath.Join(workspace, "last.txt"))
	out, err := exec.Command(remit, "log", "--state", state).Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "committed")
}

func TestPanicIsInternal(t *testing.T) {
	var errs bytes.Buffer
	w := testEnv(nil, io.Discard, &errs)
	w.Getenv = func(string) string { panic("of the world") }
	require.Equal(t, int(cli.ExitInternal), run(t.Context(), []string{"log"}, w))
	require.Contains(t, errs.String(), "of the world")
}

func TestDamagedJournal(t *testing.T) {
	_, state := testPlace(t)
	require.NoError(t, os.Mkdir(state, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(state, "journal.db"), []byte("not a database, but a text"), 0o600))
	var errs bytes.Buffer
	require.Equal(t, int(cli.ExitInternal), run(t.Context(), []string{"log", "--state", state}, testEnv(nil, io.Discard, &errs)))
	require.Contains(t, errs.String(), "remit: ")
}

// TestColours: only on a terminal, and not where somebody asks for none.
func TestColours(t *testing.T) {
	for _, tt := range []struct {
		terminal bool
		noColour string
		want     bool
	}{{false, "", false}, {true, "", true}, {true, "1", false}} {
		workspace, state := testPlace(t)
		var out bytes.Buffer
		w := testEnv(strings.NewReader(`{"tool":"file_list","args":{}}`), &out, io.Discard)
		w.OutTerminal = tt.terminal
		w.Getenv = func(name string) string {
			if name == "NO_COLOR" {
				return tt.noColour
			}
			return ""
		}
		require.Zero(t, run(t.Context(), []string{"run", "--workspace", workspace, "--state", state, "-"}, w))
		require.Equal(t, tt.want, strings.Contains(out.String(), "\x1b["), out.String())
	}
}

// personHere is the caller of a command that a person runs at a terminal, in tests of something else.
func personHere() cli.Caller { return cli.Caller{Unknown: lineage.ErrUnknown} }
