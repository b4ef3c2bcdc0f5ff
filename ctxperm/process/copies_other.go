//go:build !linux

package process

import (
	"context"
	"io"
	"time"

	"github.com/remit-dev/remit/internal/sandbox"
)

// rootCopy is unused here: no program runs.
type rootCopy struct{}

func (*runHandle) copyKnown(context.Context, *sandbox.Spec) error { return nil }

func (*runHandle) copyInstead(_ context.Context, _ *sandbox.Spec, none sandbox.NoOverlayError) error {
	return none
}

func (*Driver) returnCopy(*rootCopy) {}

func (*Driver) takeCopy(string) (*rootCopy, error) { return nil, sandbox.ErrNoSandbox }

func (*rootCopy) renew(context.Context, []string, map[string]bool, time.Time) error {
	return sandbox.ErrNoSandbox
}

func (*rootCopy) changes() ([]sandbox.OverlayEntry, error) { return nil, sandbox.ErrNoSandbox }

func (*rootCopy) adopt([]sandbox.OverlayEntry) error { return sandbox.ErrNoSandbox }

func (*rootCopy) place() string { return "" }

// Close does nothing here.
func (*Driver) Close() error { return nil }

func (h *runHandle) changes(dir string) ([]sandbox.OverlayEntry, error) { return h.proc.Changes(dir) }

func (*runHandle) unshown(string, string) []string { return nil }

func (h *runHandle) open(dir, name string) (io.ReadCloser, error) { return h.proc.Open(dir, name) }
