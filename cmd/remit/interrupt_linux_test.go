package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSecondSignal: a second signal ends a process that waits where it cannot be cancelled, here for the content of a pipe.
func TestSecondSignal(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "p.rego")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		cmd := exec.Command(build(t), "policy", "fmt", pipe)
		require.NoError(t, cmd.Start())
		var writer *os.File
		for err := error(syscall.ENXIO); err != nil; { // until it reads
			writer, err = os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
			if err != nil {
				require.ErrorIs(t, err, syscall.ENXIO)
			}
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for {
			_ = cmd.Process.Signal(signal)
			select {
			case err := <-ended:
				require.ErrorContains(t, err, "signal: "+signal.String())
			default:
				continue
			}
			break
		}
		require.NoError(t, writer.Close())
	}
}
