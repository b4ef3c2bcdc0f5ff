package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestClientAsksNoOtherNode: a client without hooks, which started a server of
// tools, asks no other node by a command in its shell, and withdraws nothing. A
// person at another terminal does.
func TestClientAsksNoOtherNode(t *testing.T) {
	n := newTwoNodes(t)
	bin, home := commandFolder(t), filepath.Join(n.dir, "home")
	person := newPersonShell(t, bin, "XDG_STATE_HOME="+home)
	agent := newPersonShell(t, bin, "XDG_STATE_HOME="+home)
	for _, name := range []string{"in", "out", "done", "go"} {
		require.NoError(t, syscall.Mkfifo(filepath.Join(n.dir, name), 0o600))
	}
	at := fmt.Sprintf("--journal '%s' --state %s", n.url, filepath.Join(n.dir, "one.st"))
	client := strings.NewReplacer("$AT", at, "$TXN", n.txn).Replace(`cd ` + n.dir + `
exec 5<>in
really serve --workspace one $AT <in >out &
exec 4<out
echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}' >&5
echo $$ $! >pids
read answer <&4
{
	really revert $TXN $AT; echo "asked:$?"
	XDG_STATE_HOME=/none HOME=/none really redo $TXN $AT; echo "hidden:$?"
	sh -c "really revert $TXN $AT --json; exit \$?"; echo "below:$?"
} >said 2>&1
echo done >done
read go <go
really revert $TXN $AT --withdraw >>said 2>&1; echo "withdrawn:$?" >>said
really pending --discard 1 $AT >>said 2>&1; echo "discarded:$?" >>said
kill $!; wait $!
echo done >done
`)
	require.NoError(t, os.WriteFile(filepath.Join(n.dir, "client.sh"), []byte(client), 0o600))
	t.Cleanup(func() { // after a failure
		text, _ := os.ReadFile(filepath.Join(n.dir, "pids"))
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	said := func() string {
		code, out := agent.types("cat " + filepath.Join(n.dir, "done"))
		require.Zero(t, code, out)
		text, err := os.ReadFile(filepath.Join(n.dir, "said"))
		require.NoError(t, err)
		return string(text)
	}
	agent.types("{ sh " + filepath.Join(n.dir, "client.sh") + " & }")
	out := said()
	for _, want := range []string{"asked:3", "hidden:3", "below:3", "no other node is asked from here", "this process was started below sh"} {
		require.Contains(t, out, want)
	}
	code, out := person.types("really pending " + at)
	require.Zero(t, code, out)
	require.Contains(t, out, "no call waits", "the client has asked for nothing")
	code, out = person.types("really revert " + n.txn + " " + at)
	require.Equal(t, 4, code, out)
	code, out = person.types("echo go >" + filepath.Join(n.dir, "go"))
	require.Zero(t, code, out)
	out = said()
	require.Contains(t, out, "withdrawn:3")
	require.Contains(t, out, "discarded:3")

	// The server has ended, and its record with it.
	code, out = agent.types("really revert " + n.txn + " --withdraw " + at)
	require.Zero(t, code, out)
	left, err := filepath.Glob(filepath.Join(home, "remit", "agents", "servers", "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}
