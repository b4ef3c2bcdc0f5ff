//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"
)

// Main does nothing here: there is no sandbox to be the shim of.
func Main() {}

// Process is a program in a sandbox. There is none here.
type Process struct{}

// Start refuses: nothing here can confine a program, and nothing runs unconfined
// in its place.
func Start(context.Context, Shim, Spec, Stdio) (*Process, error) {
	return nil, fmt.Errorf("%w: %s has none that remit can use", ErrNoSandbox, runtime.GOOS)
}

// Reached says that there is no sandbox.
func (*Process) Reached() Protections { return Protections{} }

// Pause fails.
func (*Process) Pause(context.Context) error { return ErrNoSandbox }

// Resume does nothing.
func (*Process) Resume() {}

// Kill does nothing.
func (*Process) Kill() {}

// Wait fails.
func (*Process) Wait() (Exit, error) { return Exit{Code: -1}, ErrNoSandbox }

// Close does nothing.
func (*Process) Close() error { return nil }

// Changes fails.
func (*Process) Changes(string) ([]OverlayEntry, error) { return nil, ErrNoSandbox }

// Open fails.
func (*Process) Open(string, string) (*os.File, error) { return nil, ErrNoSandbox }

// Lasting reports whether a folder can take what is written in an overlay.
func Lasting(string) bool { return false }

// Now fails: no program runs here that a change could be held against.
func Now() (time.Time, error) { return time.Time{}, ErrNoSandbox }

func probeWriteMode(context.Context, Shim, string, string, string) (WriteMode, error) {
	return WriteMode{}, fmt.Errorf("%w: %s has none that remit can use", ErrNoSandbox, runtime.GOOS)
}

// Foreign finds nothing: there are no overlays.
func Foreign(context.Context, string) (string, error) { return "", nil }
