package agentclients

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/remit-dev/remit/internal/proof/fakemodel"
	"github.com/stretchr/testify/require"
)

// Service is a program that serves several sessions of an agent, one after the
// other. It answers each line with one line.
type Service struct {
	// Model plays what its users add to it.
	Model *fakemodel.StandIn

	start func() *exec.Cmd
	mark  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
}

// Serve returns a service, which is started by the first request.
func (c Client) Serve(t *testing.T, s Session, program string, args ...string) *Service {
	t.Helper()
	model := fakemodel.NewStandIn()
	p := c.place(t, s, model)
	v := &Service{Model: model, mark: p.env[0]}
	v.start = func() *exec.Cmd {
		cmd, err := p.start(s.Dir, program, args...)
		require.NoError(t, err)
		cmd.Stderr = os.Stderr
		return cmd
	}
	return v
}

// Ask sends a line. It starts the program if it does not run. The answer is ""
// if the program dies.
func (v *Service) Ask(t *testing.T, line string) string {
	if v.cmd == nil {
		cmd := v.start()
		var err error
		v.in, err = cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		v.cmd, v.out = cmd, bufio.NewReader(out)
	}
	_, _ = io.WriteString(v.in, line+"\n")
	answer, err := v.out.ReadString('\n')
	if err != nil {
		v.Kill()
		_ = v.cmd.Wait()
		v.cmd = nil
	}
	return strings.TrimSpace(answer)
}

// Kill kills the program with SIGKILL, and all that it started but for those
// that left its environment.
func (v *Service) Kill() { endAll(v.mark) }
