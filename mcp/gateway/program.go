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
	"github.com/remit-dev/remit/mcp/gateway/config"
)

// serverProcess is a server that runs on this machine.
type serverProcess interface {
	pipes() (in io.WriteCloser, out io.ReadCloser, complaints io.Reader)
	// end ends the server, and returns when it has exited. Its last output can
	// still be read.
	end()
}

// localProcess is a server that runs as the user who runs remit.
type localProcess struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *os.File
	err  *os.File
	gone chan struct{}
	left func() // called when the server and its group have ended
}

// inherited lists the variables that every server gets, as MCP clients pass
// them. Others can be secrets.
var inherited = []string{
	"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "TMPDIR",
	"APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE", "PATHEXT",
}

func environment(s config.Server, env func(string) (string, bool)) []string {
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
func start(s config.Server, env func(string) (string, bool)) (_ *localProcess, err error) {
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

// exitPatience bounds the time in which a server can exit by itself after its
// input ended.
const exitPatience = 2 * time.Second

// end closes the input, which asks the server to exit. If it does not exit, end
// kills it with all its processes.
func (p *localProcess) end() {
	_ = p.in.Close()
	for _, harsher := range []func(*exec.Cmd){terminate, kill} {
		select {
		case <-p.gone:
		case <-time.After(exitPatience):
			harsher(p.cmd)
		}
	}
	<-p.gone
	kill(p.cmd) // processes that it left behind
	p.left()
	_ = p.out.Close()
}

// stderrLog forwards the standard error of a server to a log, line by line, and
// keeps the end of it for error messages.
type stderrLog struct {
	mu    sync.Mutex // never held across a wait
	last  []byte
	ended chan struct{} // closed at the end of the output
}

func newComplaints() *stderrLog { return &stderrLog{ended: make(chan struct{})} }

// await waits until the last output of an exited server was read. Its child
// processes can keep the file open.
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
	maxLines = 10_000 // logged lines of one run
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

// Bounds on the logged lines of one run that are no messages.
const (
	maxNoise = 20
	maxShown = 200 // bytes of one line
)

// noise logs the lines on a server's standard output that are no messages, such
// as a banner: a bounded number of lines, each cut.
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
