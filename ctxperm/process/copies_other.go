//go:build !linux

package process

import (
	"context"
	"io"

	"github.com/remit-dev/remit/internal/sandbox"
)

func (*runHandle) copyKnown(context.Context, *sandbox.Spec) error { return nil }

func (*runHandle) copyInstead(_ context.Context, _ *sandbox.Spec, none sandbox.NoOverlayError) error {
	return none
}

func (*Driver) returnCopy(*rootCopy) {}

func (*Driver) takeCopy(string) (*rootCopy, error) { return nil, sandbox.ErrNoSandbox }

func (*rootCopy) changes() ([]sandbox.OverlayEntry, error) { return nil, sandbox.ErrNoSandbox }

func (*rootCopy) place() string { return "" }

// Close does nothing here.
func (*Driver) Close() error { return nil }

func (h *runHandle) changes(dir string) ([]sandbox.OverlayEntry, error) { return h.proc.Changes(dir) }

func (*runHandle) unshown(string, string) []string { return nil }

func (h *runHandle) open(dir, name string) (io.ReadCloser, error) { return h.proc.Open(dir, name) }
