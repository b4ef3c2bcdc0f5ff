//go:build !linux

package process

import (
	"context"
	"io"
	"time"

	"github.com/remit-dev/remit/internal/sandbox"
)

// snapshot is not needed here: no program runs.
type snapshot struct{}

func (*handle) copyKnown(context.Context, *sandbox.Spec) error { return nil }

func (*handle) copyInstead(_ context.Context, _ *sandbox.Spec, none sandbox.NoOverlayError) error {
	return none
}

func (*Driver) giveBack(*snapshot) {}

func (*Driver) borrow(string) (*snapshot, error) { return nil, sandbox.ErrNoSandbox }

func (*snapshot) renew(context.Context, []string, map[string]bool, time.Time) error {
	return sandbox.ErrNoSandbox
}

func (*snapshot) changes() ([]sandbox.Written, error) { return nil, sandbox.ErrNoSandbox }

func (*snapshot) adopt([]sandbox.Written) error { return sandbox.ErrNoSandbox }

func (*snapshot) place() string { return "" }

// Close does nothing here.
func (*Driver) Close() error { return nil }

func (h *handle) changes(dir string) ([]sandbox.Written, error) { return h.proc.Changes(dir) }

func (*handle) unshown(string, string) []string { return nil }

func (h *handle) open(dir, name string) (io.ReadCloser, error) { return h.proc.Open(dir, name) }
