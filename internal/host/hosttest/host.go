// Package hosttest provides a host for tests with time and randomness from a
// seed.
//
// It does not decide which goroutine runs next: with several, the scheduler
// decides which one gets which number, unless OnPoint parks them.
package hosttest

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
)

// Step is how far the clock of a new host advances with each reading.
const Step = time.Millisecond

// Host is a deterministic host.Host. Set its fields before use. Its methods are
// safe for concurrent use. New returns one; the zero Host is not usable.
type Host struct {
	// OnPoint is called at every scheduling point with its id, on the caller's
	// goroutine and with no lock held. It may wait, record, fail the point with
	// an error, or end the process. Nil: every point passes.
	OnPoint func(id string) error

	// Disk opens roots. Nil means disk.OpenRoot, the real disk.
	Disk func(dir string) (disk.Root, error)

	// Step is added to the clock by each call of Now.
	Step time.Duration

	mu     sync.Mutex // guards the fields below, never across a wait
	now    time.Time
	random *rand.ChaCha8
}

var _ host.Host = (*Host)(nil)

// New returns a host whose clock starts at the beginning of 2026, UTC, and
// whose randomness follows from the seed. It is not fit for secrets.
func New(seed uint64) *Host {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	return &Host{
		Step:   Step,
		now:    time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC),
		random: rand.NewChaCha8(key),
	}
}

// Now returns the time of the fake clock and advances it by Step.
func (h *Host) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now
	h.now = now.Add(h.Step)
	return now
}

// Advance moves the clock by d, backwards if d is negative. It does not affect
// contexts: see WithTimeout.
func (h *Host) Advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// Random fills p with the next bytes of the seeded stream.
func (h *Host) Random(p []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _ = h.random.Read(p) // never fails
}

// Point calls OnPoint.
func (h *Host) Point(_ context.Context, id string) error {
	if h.OnPoint == nil {
		return nil
	}
	return h.OnPoint(id)
}

// WithTimeout uses the time package and not the fake clock, so that a wait ends
// although no goroutine reads that clock. Inside a bubble of testing/synctest
// this is fake time too, and reproducible.
func (h *Host) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, cause)
}

// OpenRoot calls Disk, or opens the real disk.
func (h *Host) OpenRoot(dir string) (disk.Root, error) {
	if h.Disk == nil {
		return disk.OpenRoot(dir)
	}
	return h.Disk(dir)
}
