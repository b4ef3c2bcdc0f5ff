package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// cancelAt cancels a command when it writes a text.
type cancelAt struct {
	bytes.Buffer

	text   string
	cancel context.CancelFunc
}

func (w *cancelAt) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.text)) {
		w.cancel()
	}
	return w.Buffer.Write(p)
}

// TestInterruptedRun: an interrupted run says what is open, what did not run,
// and how to go on.
func TestInterruptedRun(t *testing.T) {
	workspace, state := testPlace(t)
	text := filepath.Join(t.TempDir(), "script.jsonl")
	require.NoError(t, os.WriteFile(text, []byte(`{"tool":"file_write","args":{"path":"a","content":"1"}}
{"tool":"file_write","args":{"path":"b","content":"1"}}
{"tool":"file_write","args":{"path":"c","content":"1"}}
`), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &cancelAt{text: "created a", cancel: cancel}
	require.Equal(t, 1, run(ctx, []string{"run", "--workspace", workspace, "--state", state, text}, testEnv(nil, out, io.Discard)))
	require.Contains(t, out.String(), " open: 1 call, 1 done\nnot run: 2 lines of the script from line 2 on\n")
	require.Contains(t, out.String(), "it stays open until one of these commands ends it\nrevert it: remit revert t_")
	require.NoFileExists(t, filepath.Join(workspace, "b"))
}

// TestInterruptedInput: an interrupt ends a command that waits for its input.
func TestInterruptedInput(t *testing.T) {
	in, write := io.Pipe()
	defer write.Close()
	rules := filepath.Join(t.TempDir(), "p.rego")
	require.NoError(t, os.WriteFile(rules, []byte("package remit\n\nallow contains \"all\" if true\n"), 0o600))
	for _, argv := range [][]string{{"policy", "fmt"}, {"policy", "eval", "--policy", rules, "--line", "-"}, {"policy", "eval", "--policy", rules, "--input", "-"}} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NotZero(t, run(ctx, argv, testEnv(in, io.Discard, io.Discard)), argv)
	}
}

// TestEmptyDigests: an answer is not given without the comparison that its flag asks for.
func TestEmptyDigests(t *testing.T) {
	for _, argv := range [][]string{{"approve", "c_x", "--diff", ""}, {"approve", "c_x", "--request", ""}, {"deny", "c_x", "--request", ""}} {
		var errs bytes.Buffer
		require.Equal(t, 2, run(t.Context(), argv, testEnv(nil, io.Discard, &errs)), argv)
		require.Contains(t, errs.String(), argv[2]+" is empty; is a variable not set?")
	}
}
