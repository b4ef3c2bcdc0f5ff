package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/host/hosttest"
)

// TestProgress: nothing for a second, then what is done, once a second, and the
// line is gone before anything else is written, and at the end.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		h := hosttest.New(1)
		h.Step = 0
		p := &progress{w: &out, host: h}
		stop := p.start(t.Context())
		second := func(part time.Duration) {
			h.Advance(part)
			time.Sleep(part) // of the bubble
			synctest.Wait()
		}
		second(2 * time.Second)
		require.Empty(t, out.String(), "nothing is being done")
		p.now("taking back\x1b[2J")
		second(time.Second)
		require.Equal(t, "… taking back\\x1b[2J (3 s)", out.String())
		second(time.Second)
		require.True(t, strings.HasSuffix(out.String(), "\r\x1b[K… taking back\\x1b[2J (4 s)"), "%q", out.String())
		out.Reset()
		_, err := progressWriter{p, &out}.Write([]byte("answer\n"))
		require.NoError(t, err)
		require.Equal(t, "\r\x1b[Kanswer\n", out.String(), "the line goes away first")
		second(time.Second)
		out.Reset()
		release := p.hold() // a person is asked
		require.Equal(t, "\r\x1b[K", out.String())
		second(3 * time.Second)
		require.Equal(t, "\r\x1b[K", out.String())
		release()
		h.Advance(-time.Hour) // a clock may jump
		second(time.Second)
		require.True(t, strings.HasSuffix(out.String(), "… taking back\\x1b[2J (0 s)"), "%q", out.String())
		stop()
		require.True(t, strings.HasSuffix(out.String(), "\r\x1b[K"))
		out.Reset()
		second(3 * time.Second)
		require.Empty(t, out.String(), "it is over")
	})
}

// TestNoProgressWithoutTerminal: nothing is written where there is nothing to write to.
func TestNoProgressWithoutTerminal(t *testing.T) {
	p := &progress{host: host.Real()}
	require.NotPanics(t, func() {
		p.start(t.Context())()
		p.now("anything")
		p.clear()
	})
}

// TestProgressOfCommand: on a terminal that is slow a line shows, and it is gone
// when the answers come; elsewhere there is none, and no colour.
func TestProgressOfCommand(t *testing.T) {
	workspace, state := testPlace(t)
	script := filepath.Join(t.TempDir(), "script.jsonl")
	require.NoError(t, os.WriteFile(script, []byte(`{"tool":"file_list","args":{}}`+"\n"), 0o600))
	for _, terminal := range []bool{true, false} {
		var out, errs bytes.Buffer
		w := testWorld(nil, &out, &errs)
		w.terminal, w.terminalErr = terminal, terminal
		if terminal {
			w.host = &impatient{Host: w.host, reached: make(chan struct{}), drawn: make(chan struct{})}
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

// impatient is a host on which a second is over as soon as a call executes; the
// call waits until that was seen.
type impatient struct {
	host.Host
	reached, drawn chan struct{}
	seconds        int // asked for by the one goroutine that draws
}

func (h *impatient) Point(ctx context.Context, id string) error {
	if id == "tool.execute" {
		close(h.reached)
		<-h.drawn
	}
	return h.Host.Point(ctx, id)
}

func (h *impatient) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	if d != patience || cause != nil {
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
		w := testWorld(nil, &out, &errs)
		w.terminal, w.terminalErr = true, true
		w.env = func(name string) string { return map[string]string{"NO_COLOR": value}[name] }
		require.Zero(t, run(t.Context(), []string{"tools"}, w))
		require.Equal(t, coloured, strings.Contains(out.String(), "\x1b["))
		require.Equal(t, int(exitUsage), run(t.Context(), []string{"rum"}, w))
		require.Equal(t, coloured, strings.Contains(errs.String(), "\x1b["))
	}
}
