package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/host"
)

// TestProgressOfCommand: on a terminal that is slow a line shows, and it is gone
// when the answers come; elsewhere there is none, and no colour.
func TestProgressOfCommand(t *testing.T) {
	workspace, state := testPlace(t)
	script := filepath.Join(t.TempDir(), "script.jsonl")
	require.NoError(t, os.WriteFile(script, []byte(`{"tool":"file_list","args":{}}`+"\n"), 0o600))
	for _, terminal := range []bool{true, false} {
		var out, errs bytes.Buffer
		w := testEnv(nil, &out, &errs)
		w.OutTerminal, w.ErrTerminal = terminal, terminal
		if terminal {
			w.Host = &progressWaiter{Host: w.Host, reached: make(chan struct{}), drawn: make(chan struct{})}
		}
		require.Zero(t, run(t.Context(), []string{"run", "--workspace", workspace, "--state", state, script}, w), errs.String())
		if !terminal {
			require.Empty(t, errs.String())
			require.NotContains(t, out.String(), "\x1b")
			continue
		}
		require.Contains(t, errs.String(), "… line 1: file_list (")
		require.True(t, strings.HasSuffix(errs.String(), "\r\x1b[K"), "%q", errs.String())
		require.Contains(t, out.String(), "\x1b[32m✓")
	}
}

// progressWaiter is a host on which a second is over as soon as a call executes; the
// call waits until that was seen.
type progressWaiter struct {
	host.Host
	reached, drawn chan struct{}
	seconds        int // asked for by the one goroutine that draws
}

func (h *progressWaiter) Point(ctx context.Context, id string) error {
	if id == "tool.execute" {
		close(h.reached)
		<-h.drawn
	}
	return h.Host.Point(ctx, id)
}

func (h *progressWaiter) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	if d != cli.ProgressInterval || cause != nil {
		return h.Host.WithTimeout(ctx, d, cause)
	}
	ctx, cancel := context.WithCancel(ctx)
	switch h.seconds++; h.seconds {
	case 1:
		go func() {
			<-h.reached
			cancel()
		}()
	case 2: // the first is over, and the line drawn
		close(h.drawn)
	}
	return ctx, cancel
}

// TestNoColor: NO_COLOR is honoured on a terminal.
func TestNoColor(t *testing.T) {
	for value, coloured := range map[string]bool{"": true, "1": false} {
		var out, errs bytes.Buffer
		w := testEnv(nil, &out, &errs)
		w.OutTerminal, w.ErrTerminal = true, true
		w.Getenv = func(name string) string { return map[string]string{"NO_COLOR": value}[name] }
		require.Zero(t, run(t.Context(), []string{"tools"}, w))
		require.Equal(t, coloured, strings.Contains(out.String(), "\x1b["))
		require.Equal(t, int(cli.ExitUsage), run(t.Context(), []string{"rum"}, w))
		require.Equal(t, coloured, strings.Contains(errs.String(), "\x1b["))
	}
}
