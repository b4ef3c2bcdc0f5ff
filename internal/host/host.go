package host

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/lineage"
)

// Host is the environment of one runtime. Its methods are safe for concurrent
// use.
type Host interface {
	// Now returns the wall time in UTC, without a monotonic reading, so that a
	// recorded time compares like the read one. It may jump in either
	// direction.
	Now() time.Time

	// Random fills p with randomness that is fit for secrets. It never fails.
	Random(p []byte)

	// Point is a scheduling point. Runtime code passes one before every I/O,
	// lock and wait. id names the place in the code, such as "journal.append",
	// and never contains data. The real host returns nil at once, for any state
	// of ctx. A simulation parks the caller here. A test may return an error or
	// end the process, and the caller must then stop without a further effect.
	Point(ctx context.Context, id string) error

	// WithTimeout derives a context that ends after d with the given cause.
	// A nil cause is context.DeadlineExceeded.
	WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc)
}

// AfterTimeout calls f once after d, on a goroutine of its own, unless stop is
// called before. f can still be called just after stop; after the end of ctx it
// is called or not. A host that has timers needs no context for it, which costs
// more, and most calls end long before their time.
func AfterTimeout(ctx context.Context, h Host, d time.Duration, f func()) (stop func()) {
	if own, ok := h.(interface {
		AfterFunc(d time.Duration, f func()) *time.Timer
	}); ok {
		timer := own.AfterFunc(d, f)
		return func() { timer.Stop() }
	}
	cause := errors.New("time is over") // tells the end of the time from that of ctx
	timed, cancel := h.WithTimeout(ctx, d, cause)
	quiet := context.AfterFunc(timed, func() {
		if errors.Is(context.Cause(timed), cause) {
			f()
		}
	})
	return func() {
		quiet()
		cancel()
	}
}

// OpenRoot opens an existing directory by a host path: on the disk of the host,
// if it has one of its own as in a simulation, and on the disk of the machine
// otherwise.
func OpenRoot(h Host, dir string) (disk.Root, error) {
	if own, ok := h.(interface {
		OpenRoot(dir string) (disk.Root, error)
	}); ok {
		return own.OpenRoot(dir)
	}
	return disk.OpenRoot(dir)
}

// Real returns the host on which the process runs.
func Real() Host { return realHost{} }

// ProcessChain returns the record of this process for a call that waits, for package
// lineage; nil if the host has no processes.
func ProcessChain(h Host) json.RawMessage {
	if own, ok := h.(interface{ ProcessChain() json.RawMessage }); ok {
		return own.ProcessChain()
	}
	return nil
}

type realHost struct{}

func (realHost) AfterFunc(d time.Duration, f func()) *time.Timer { return time.AfterFunc(d, f) }

func (realHost) ProcessChain() json.RawMessage { return lineage.Record() }

func (realHost) Now() time.Time { return time.Now().UTC().Round(0) }

// Random ignores the error of rand.Read: since Go 1.24 it is always nil, and
// a kernel without randomness ends the process.
func (realHost) Random(p []byte) { _, _ = rand.Read(p) }

func (realHost) Point(context.Context, string) error { return nil }

func (realHost) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, cause)
}
