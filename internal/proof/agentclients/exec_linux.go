package agentclients

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/remit-dev/remit/internal/proof/fakemodel"
	"github.com/stretchr/testify/require"
)

// Program returns the path of the agent's program.
func (c Client) Program() string { return c.program() }

// Node returns the path of Node.js.
func (c Client) Node() string { return filepath.Join(c.node(), "node") }

// Exec runs a program as the agent's user would: with the environment of a
// session, and a network that ends at a stand-in that says "done". It returns
// what the program wrote on its standard output, what it wrote on standard error,
// and its exit code.
func (c Client) Exec(t *testing.T, s Session, program string, args ...string) (out, stderr string, code int) {
	t.Helper()
	p := c.place(t, s, fakemodel.NewStandIn())
	cmd, err := p.start(s.Dir, program, args...)
	require.NoError(t, err)
	var all, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &all, &errs
	limit := time.AfterFunc(2*time.Minute, func() { endAll(p.env[0]) })
	err = cmd.Run()
	require.True(t, limit.Stop(), "the program did not end: %s\n%s", all.String(), errs.String())
	endAll(p.env[0])
	return all.String(), errs.String(), exitCode(t, err)
}

// EndAll ends the processes that have a line in their environment.
func EndAll(line string) { endAll(line) }
