package program

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/remit-dev/remit/internal/canon"
)

// Stderr forwards the standard error of a server to a log, line by line, and
// keeps the end of it for error messages.
type Stderr struct {
	mu    sync.Mutex // never held across a wait
	last  []byte
	ended chan struct{} // closed at the end of the output
}

// NewStderr returns a log without a line.
func NewStderr() *Stderr { return &Stderr{ended: make(chan struct{})} }

// Await waits until the last output of an exited server was read. Its child
// processes can keep the file open.
func (c *Stderr) Await() {
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-c.ended:
	case <-late.C:
	}
}

const (
	maxLine  = 4 << 10
	maxLines = 10_000 // logged lines of one run
	maxLast  = 1 << 10
)

// Follow reads the standard error of a server to its end.
func (c *Stderr) Follow(from io.Reader, log *slog.Logger, server string) {
	defer close(c.ended)
	r := bufio.NewReaderSize(from, maxLine)
	for n := 0; ; n++ {
		line, err := r.ReadSlice('\n')
		c.Keep(line)
		if text := clean(line); text != "" && n < maxLines {
			log.Info("a server wrote to its standard error", "server", server, "line", text)
		}
		if n == maxLines {
			log.Warn("a server wrote too much to its standard error; the rest is not logged", "server", server)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// Keep adds a text to the end that error messages show.
func (c *Stderr) Keep(line []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = append(c.last, line...)
	if over := len(c.last) - maxLast; over > 0 {
		c.last = append([]byte{}, c.last[over:]...)
	}
}

// Tail returns the last output, in a form that is safe in a message.
func (c *Stderr) Tail() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return clean(c.last)
}

// clean returns text of a server in a form that is safe in a log or message.
func clean(raw []byte) string {
	return canon.Printable(strings.TrimSpace(strings.ToValidUTF8(string(raw), "\uFFFD")), maxLine)
}
