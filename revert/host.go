package revert

import (
	"context"
	"time"
)

// Host gives the runtime its time, its randomness and its scheduling points.
// The runtime uses the machine that it runs on. A test can replace it: see
// agent.Host. A Host must be safe for concurrent use.
type Host interface {
	// Now returns the wall time in UTC, without a monotonic reading. It may jump
	// in either direction.
	Now() time.Time

	// Random fills p with randomness that is fit for secrets.
	Random(p []byte)

	// Point is called before every I/O, lock and wait. id names the place in the
	// code, such as "journal.append", and never contains data. With an error the
	// caller stops without a further effect. The machine returns nil at once.
	Point(ctx context.Context, id string) error

	// WithTimeout derives a context that ends after d with the given cause. A nil
	// cause is context.DeadlineExceeded.
	WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc)
}
