package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/remit-dev/remit/internal/canon"
)

// serverProcess is a server that runs on this machine.
type serverProcess interface {
	pipes() (in io.WriteCloser, out io.ReadCloser, complaints io.Reader)
	// end makes it go, and returns when it is gone. What it wrote last may still be read.
	end()
}

// localProcess is a server that runs as whoever runs remit.
type localProcess struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *os.File
	err  *os.File
	gone chan struct{}
	left func() // told when the server and all of its group have ended
}

// inherited are the variables that every server gets, as clients of the protocol hand them on. Others may be secrets.
var inherited = []string{
	"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "TMPDIR",
	"APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE", "PATHEXT",
}

func environment(s Server, env func(string) (string, bool)) []string {
	var all []string
	for _, name := range inherited {
		if value, ok := env(name); ok {
			all = append(all, name+"="+value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		all = append(all, name+"="+s.Env[name])
	}
	return all
}

// start starts a server by its command.
func start(s Server, env func(string) (string, bool)) (_ *localProcess, err error) {
	cmd := exec.Command(s.Command, s.Args...)
	cmd.Env, cmd.Dir = environment(s, env), s.Dir
	newProcessGroup(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	var theirs []*os.File
	var mine [2]*os.File
	for i := range mine {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		mine[i], theirs = r, append(theirs, w)
	}
	cmd.Stdout, cmd.Stderr = theirs[0], theirs[1]
	err = cmd.Start()
	for _, f := range theirs {
		_ = f.Close()
	}
	if err != nil {
		_, _ = mine[0].Close(), mine[1].Close()
		return nil, err
	}
	p := &localProcess{cmd: cmd, in: in, out: mine[0], err: mine[1], gone: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.gone)
	}()
	return p, nil
}

func (p *localProcess) pipes() (io.WriteCloser, io.ReadCloser, io.Reader) { return p.in, p.out, p.err }

// patience is how long a server has to go by itself once nobody speaks to it any more.
const patience = 2 * time.Second

// end closes its input, which asks it to go, and ends it with all that it started where it does not.
func (p *localProcess) end() {
	_ = p.in.Close()
	for _, harsher := range []func(*exec.Cmd){terminate, kill} {
		select {
		case <-p.gone:
		case <-time.After(patience):
			harsher(p.cmd)
		}
	}
	<-p.gone
	kill(p.cmd) // what it started and left behind
	p.left()
	_ = p.out.Close()
}

// stderrLog is what a server writes to its standard error: handed to a log line by line, and the last of it kept for
// whoever has to say why the server went.
type stderrLog struct {
	mu    sync.Mutex // never held across a wait
	last  []byte
	ended chan struct{} // closed when there will be no more
}

func newComplaints() *stderrLog { return &stderrLog{ended: make(chan struct{})} }

// await waits until what a server that has gone wrote last was read. What it started may still have its file open.
func (c *stderrLog) await() {
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-c.ended:
	case <-late.C:
	}
}

const (
	maxLine  = 4 << 10
	maxLines = 10_000 // that are logged of one run
	maxLast  = 1 << 10
)

func (c *stderrLog) follow(from io.Reader, log *slog.Logger, server string) {
	defer close(c.ended)
	r := bufio.NewReaderSize(from, maxLine)
	for n := 0; ; n++ {
		line, err := r.ReadSlice('\n')
		c.keep(line)
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

// Bounds on what is logged of the lines of one run that are no messages.
const (
	maxNoise = 20
	maxShown = 200 // bytes of one
)

// noise logs what a server writes to its standard output beside messages, such as a banner: a bounded number of lines, each cut.
func (u *upstream) noise(s *upstreamConn) func(line []byte) {
	n := 0
	return func(line []byte) {
		s.said.keep(line)
		s.said.keep([]byte{'\n'})
		switch n++; {
		case n <= maxNoise:
			text := canon.Printable(strings.ToValidUTF8(string(line[:min(len(line), 2*maxShown)]), "\uFFFD"), maxShown)
			u.g.log.Warn("a line of a server's standard output is no message, and is skipped", "server", u.cfg.Name, "line", text)
		case n == maxNoise+1:
			u.g.log.Warn("a server goes on to write lines that are no messages; they are skipped, and not logged", "server", u.cfg.Name)
		}
	}
}

func (c *stderrLog) keep(line []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = append(c.last, line...)
	if over := len(c.last) - maxLast; over > 0 {
		c.last = append([]byte{}, c.last[over:]...)
	}
}

func (c *stderrLog) tail() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return clean(c.last)
}

// sleep waits, unless the context ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
