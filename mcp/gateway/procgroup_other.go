//go:build !unix

package gateway

import (
	"log/slog"
	"os/exec"
)

func newProcessGroup(*exec.Cmd) {}

func terminate(cmd *exec.Cmd) { kill(cmd) }

func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// guard does nothing on this platform: servers of a killed gateway keep
// running.
type guard struct{}

func newGuard() *guard { return &guard{} }

func (*guard) begin(*slog.Logger) {}

func (*guard) watch(int) (left func()) { return func() {} }

func (*guard) close() {}
