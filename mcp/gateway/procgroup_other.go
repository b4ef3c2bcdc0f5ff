//go:build !unix

package gateway

import (
	"log/slog"
	"os/exec"
)

func newProcessGroup(*exec.Cmd) {}

func terminate(cmd *exec.Cmd) { kill(cmd) }

func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// guard ends the servers of a gateway that was killed. Here it does not.
type guard struct{}

func newGuard() *guard { return &guard{} }

func (*guard) begin(*slog.Logger) {}

func (*guard) watch(int) (left func()) { return func() {} }

func (*guard) close() {}
