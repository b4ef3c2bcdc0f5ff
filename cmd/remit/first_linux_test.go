//go:build amd64 || arm64

package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShimComesFirst: started as a shim or its guard, this program becomes one when
// hardly anything of it is initialised, whatever is linked into it. It would be more
// than ninety packages by then, did the shim import what nearly everything imports.
func TestShimComesFirst(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { _ = null.Close() }()
	// Without a socket a shim ends with 1; a guard does not mind what became of its shim.
	for name, code := range map[string]int{"remit-sandbox": 1, "remit-sandbox-guard": 0} {
		var said bytes.Buffer
		cmd := &exec.Cmd{
			Path: self, Args: []string{name}, Env: []string{"GODEBUG=inittrace=1"},
			ExtraFiles: []*os.File{null}, Stderr: &said,
		}
		_ = cmd.Run()
		require.NotNil(t, cmd.ProcessState)
		require.Equal(t, code, cmd.ProcessState.ExitCode(), "%s: %s", name, said.String())
		before := bytes.Count(said.Bytes(), []byte("\ninit "))
		require.NotZero(t, before, said.String())
		t.Logf("%d packages before %s", before, name)
		require.Less(t, before, 25, "initialised before %s:\n%s", name, said.String())
	}
}
