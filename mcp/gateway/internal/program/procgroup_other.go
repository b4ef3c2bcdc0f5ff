//go:build !unix

package program

import (
	"log/slog"
	"os/exec"
)

func newProcessGroup(*exec.Cmd) {}

func terminate(cmd *exec.Cmd) { kill(cmd) }

func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// Guard does nothing on this platform: servers of a killed gateway keep
// running.
type Guard struct{}

// NewGuard returns a guard.
func NewGuard() *Guard { return &Guard{} }

func (*Guard) begin(*slog.Logger) {}

func (*Guard) watch(int) (left func()) { return func() {} }

// Close does nothing.
func (*Guard) Close() {}
