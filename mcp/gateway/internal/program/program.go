package program

import (
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/remit-dev/remit/mcp/gateway/config"
)

// Process is a server that runs on this machine.
type Process interface {
	Pipes() (in io.WriteCloser, out io.ReadCloser, complaints io.Reader)
	// End ends the server, and returns when it has exited. Its last output can
	// still be read.
	End()
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

// Start starts a server by its command. The guard ends it if the gateway
// is killed.
func Start(s config.Server, env func(string) (string, bool), g *Guard, log *slog.Logger) (Process, error) {
	g.begin(log)
	p, err := start(s, env)
	if err != nil {
		return nil, err
	}
	p.left = g.watch(p.cmd.Process.Pid)
	return p, nil
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

// Pipes returns the pipes of the server.
func (p *localProcess) Pipes() (io.WriteCloser, io.ReadCloser, io.Reader) { return p.in, p.out, p.err }

// exitTimeout bounds the time in which a server can exit by itself after its
// input ended.
const exitTimeout = 2 * time.Second

// End closes the input, which asks the server to exit. If it does not exit, end
// kills it with all its processes.
func (p *localProcess) End() {
	_ = p.in.Close()
	for _, harsher := range []func(*exec.Cmd){terminate, kill} {
		select {
		case <-p.gone:
		case <-time.After(exitTimeout):
			harsher(p.cmd)
		}
	}
	<-p.gone
	kill(p.cmd) // processes that it left behind
	p.left()
	_ = p.out.Close()
}
