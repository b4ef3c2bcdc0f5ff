package cli

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/host/hosttest"
)

// TestProgress: the line appears after a second and changes once a second. It
// is gone before other output and at the end.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		h := hosttest.New(1)
		h.Step = 0
		p := &Progress{writer: &out, host: h}
		stop := p.Start(t.Context())
		second := func(part time.Duration) {
			h.Advance(part)
			time.Sleep(part) // the clock of the bubble
			synctest.Wait()
		}
		second(2 * time.Second)
		require.Empty(t, out.String(), "nothing is being done")
		p.Show("taking back\x1b[2J")
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
		release := p.Hold() // a person answers
		require.Equal(t, "\r\x1b[K", out.String())
		second(3 * time.Second)
		require.Equal(t, "\r\x1b[K", out.String())
		release()
		h.Advance(-time.Hour) // a clock can jump
		second(time.Second)
		require.True(t, strings.HasSuffix(out.String(), "… taking back\\x1b[2J (0 s)"), "%q", out.String())
		stop()
		require.True(t, strings.HasSuffix(out.String(), "\r\x1b[K"))
		out.Reset()
		second(3 * time.Second)
		require.Empty(t, out.String(), "it is over")
	})
}

// TestNoProgressWithoutTerminal: without a terminal, the command writes no
// line.
func TestNoProgressWithoutTerminal(t *testing.T) {
	p := &Progress{host: host.Real()}
	require.NotPanics(t, func() {
		p.Start(t.Context())()
		p.Show("anything")
		p.clear()
	})
}
