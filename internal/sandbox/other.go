//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
)

// Main does nothing: this system has no sandbox.
func Main() {}

// Process is a program in a sandbox, which this system does not have.
type Process struct{}

// Start returns an error: this system cannot confine a program, and programs
// never run unconfined instead.
func Start(context.Context, Shim, Spec, Stdio) (*Process, error) {
	return nil, fmt.Errorf("%w: %s has none that remit can use", ErrNoSandbox, runtime.GOOS)
}

// Reached returns no protections.
func (*Process) Reached() Protections { return Protections{} }

// Proxy returns nil.
func (*Process) Proxy() *os.File { return nil }

// Pause returns ErrNoSandbox.
func (*Process) Pause(context.Context) error { return ErrNoSandbox }

// Resume does nothing.
func (*Process) Resume() {}

// Signal does nothing.
func (*Process) Signal(syscall.Signal) error { return nil }

// Kill does nothing.
func (*Process) Kill() {}

// Wait returns ErrNoSandbox.
func (*Process) Wait() (Exit, error) { return Exit{Code: -1}, ErrNoSandbox }

// Close does nothing.
func (*Process) Close() error { return nil }

// Changes returns ErrNoSandbox.
func (*Process) Changes(string) ([]OverlayEntry, error) { return nil, ErrNoSandbox }

// Open returns ErrNoSandbox.
func (*Process) Open(string, string) (*os.File, error) { return nil, ErrNoSandbox }

// Lasting reports whether a folder can hold the changes of an overlay.
func Lasting(string) bool { return false }

// Now returns ErrNoSandbox: no program runs here whose changes need a time.
func Now() (time.Time, error) { return time.Time{}, ErrNoSandbox }

func probeWriteMode(context.Context, Shim, string, string, string) (WriteMode, error) {
	return WriteMode{}, fmt.Errorf("%w: %s has none that remit can use", ErrNoSandbox, runtime.GOOS)
}

// Foreign finds nothing: there are no overlays.
func Foreign(context.Context, string) (string, error) { return "", nil }
