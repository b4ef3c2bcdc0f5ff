//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/serve"
)

// gatewayProcess is remit gateway before a peer, in a process of its own.
type gatewayProcess struct {
	cmd        *exec.Cmd
	url, token string
	errs       bytes.Buffer
}

func startGateway(t *testing.T, remit string, args ...string) *gatewayProcess {
	t.Helper()
	g := &gatewayProcess{cmd: exec.Command(remit, append([]string{"gateway", "--http", "127.0.0.1:0", "--json"}, args...)...)}
	g.cmd.Stderr = &g.errs
	out, err := g.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, g.cmd.Start())
	t.Cleanup(func() { g.kill() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		g.kill()
	}
	require.NoError(t, err, "%s", &g.errs)
	var where serve.Listening
	require.NoError(t, json.Unmarshal(line, &where))
	raw, err := os.ReadFile(where.TokenFile)
	require.NoError(t, err)
	g.url, g.token = where.URL, strings.TrimSpace(string(raw))
	return g
}

// kill ends it with SIGKILL, and returns what it wrote to its standard error.
func (g *gatewayProcess) kill() string {
	_ = g.cmd.Process.Kill()
	_ = g.cmd.Wait()
	return g.errs.String()
}

// waits begins a call that waits for a file, and returns when its server is at it.
func (g *gatewayProcess) waits(t *testing.T, file string) (said chan string) {
	t.Helper()
	cs, said := joinAs(t, revisions[0], overHTTP(g.url, g.token)), make(chan string, 1)
	go func() {
		r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "peer__wait", Arguments: map[string]any{"text": file}})
		if err != nil {
			said <- err.Error()
			return
		}
		raw, _ := json.Marshal(r)
		said <- string(raw)
	}()
	awaitFile(t, file+".waits")
	return said
}

// awaitFile waits until another process has created a file.
func awaitFile(t *testing.T, path string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := os.Stat(path)
		return err == nil
	}, time.Minute, time.Millisecond)
}

// waitingPeer is the configuration of a gateway before a peer, whose calls nobody can tell the outcome of, and a policy that allows all.
func waitingPeer(t *testing.T, dir string) (config, allow string) {
	t.Helper()
	peer, err := exec.LookPath("peer")
	require.NoError(t, err)
	config, allow = filepath.Join(dir, "gateway.json"), filepath.Join(dir, "allow.rego")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `{"mcpServers": {"peer": {"command": %q}}, "remit": {"servers": {"peer": {"tools": {"wait": {"effectClass": "pivot"}}}}}}`, peer), 0o600))
	require.NoError(t, os.WriteFile(allow, []byte("package remit\n\nallow contains \"all\" if true\n"), 0o600))
	return config, allow
}

// TestStartSettles: a server that starts settles the call that one left in flight which was killed, says so and what is open, leaves the call of
// one that lives alone, and keeps nobody from taking back what is open.
func TestStartSettles(t *testing.T) {
	remit := build(t)
	workspace, state := testPlace(t)
	dir := t.TempDir()
	config, allow := waitingPeer(t, dir)
	args := []string{"--config", config, "--policy", allow, "--workspace", workspace, "--state", state, "--own-tools"}
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(remit, append(args, "--state", state)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	first, lives := startGateway(t, remit, args...), startGateway(t, remit, args...)
	lives.token = strings.TrimSpace(run("token", "--principal", "other", "--workspace", workspace)) // of the servers that are served
	first.waits(t, filepath.Join(dir, "never"))
	beside := lives.waits(t, filepath.Join(dir, "later"))
	require.NotContains(t, first.kill(), "dead process")

	second := startGateway(t, remit, args...)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "later"), nil, 0o600))
	require.Contains(t, <-beside, "it is there", "it is of a process that lives")
	open := regexp.MustCompile(`(?m)^(\S+) .*open, owner gone`).FindStringSubmatch(run("log"))
	require.Len(t, open, 2)
	gone := open[1]
	cs := joinAs(t, revisions[0], overHTTP(second.url, second.token))
	callFile(t, cs, "a.txt")
	require.NoError(t, cs.Close())
	defer func() { // its standard error is all here once it has ended
		said := second.kill()
		require.Equal(t, 1, strings.Count(said, "is resolved"), said)
		require.Regexp(t, `msg="a call that a dead process left in flight is resolved" call=\S+ tool=peer__wait as=unknown why=.* see="remit show c_`, said)
		require.Contains(t, said, `transactions=1 list="remit recover --state `+state+`" revert="remit revert `+gone+` --state `)
	}()
	settled, err := exec.Command(remit, "resolve", regexp.MustCompile(`c_\w+`).FindString(run("show", gone)), "absent", "--why", "I say so", "--state", state).CombinedOutput()
	require.Error(t, err, "it has no terminal, as a program of an agent has none")
	require.Contains(t, string(settled), "a person must approve, and an agent can be behind this command")
	out, _ := exec.Command(remit, "revert", "--state", state, gone).CombinedOutput() // a call of unknown outcome is left as it is, which its code says
	require.NotContains(t, string(out), "process", "nobody else has it")
	require.NotContains(t, run("log"), "open, owner gone")
}
