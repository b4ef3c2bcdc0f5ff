package main

import (
	"bytes"
	"os/exec"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/proof/pgtest"
)

// TestServeEndsWithItsJournal: a server whose journal another process took from it could only refuse calls. It says so and ends,
// so that whoever supervises it starts it again, which opens the journal anew.
func TestServeEndsWithItsJournal(t *testing.T) {
	remit := build(t)
	journal, _ := pgtest.Database(t)
	workspace, state := testPlace(t)
	args := []string{"--workspace", workspace, "--state", state, "--journal", journal}
	server, url, token := startHTTP(t, remit, args...)
	errs, ok := server.Stderr.(*bytes.Buffer)
	require.True(t, ok)
	cs := joinAs(t, revisions[0], overHTTP(url, token))
	callFile(t, cs, "a.txt")
	pgtest.Exec(t, journal, "UPDATE remit.owners SET ended = now() WHERE ended IS NULL")
	_, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "file_write", Arguments: map[string]any{"path": "b.txt", "content": "b\n"}})
	_ = err // refused, or the server was faster
	var exit *exec.ExitError
	require.ErrorAs(t, server.Wait(), &exit)
	require.EqualValues(t, cli.ExitInternal, exit.ExitCode(), "%s", errs)
	require.Contains(t, errs.String(), "the server has ended: it could not record any more calls")
	require.Contains(t, errs.String(), "open the journal again")
	_ = cs.Close()

	server, url, token = startHTTP(t, remit, args...)
	cs = joinAs(t, revisions[0], overHTTP(url, token))
	callFile(t, cs, "c.txt")
	require.NoError(t, cs.Close())
	require.NoError(t, server.Process.Kill())
	_ = server.Wait()
}
