package hosttest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/host/hosttest"
)

func TestSameSeedSameRun(t *testing.T) {
	trace := func(seed uint64) (out []string) {
		h := hosttest.New(seed)
		for range 5 {
			out = append(out, host.NewID(h, "x_"), h.Now().String())
		}
		return out
	}
	require.Equal(t, trace(1), trace(1))
	require.NotEqual(t, trace(1), trace(2))
	require.NotEqual(t, trace(1), trace(1<<63|1))
}

func TestClockMovesByStepAndOnDemand(t *testing.T) {
	h := hosttest.New(1)
	first := h.Now()
	require.Equal(t, first.Add(hosttest.Step), h.Now())
	h.Advance(-time.Hour)
	require.Equal(t, first.Add(2*hosttest.Step-time.Hour), h.Now())
	require.Equal(t, time.UTC, first.Location())
}

func TestHooksReplaceTheOutside(t *testing.T) {
	h := hosttest.New(1)
	require.NoError(t, h.Point(t.Context(), "free"))
	r, err := h.OpenRoot(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, r.Close())

	broken := errors.New("broken")
	h.OnPoint = func(id string) error { return fmt.Errorf("%s: %w", id, broken) }
	h.Disk = func(string) (disk.Root, error) { return nil, broken }
	require.ErrorIs(t, h.Point(t.Context(), "journal.append"), broken)
	require.ErrorContains(t, h.Point(t.Context(), "journal.append"), "journal.append")
	_, err = h.OpenRoot("anywhere")
	require.ErrorIs(t, err, broken)
}

func TestTimeoutIsFakeInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("too slow")
		ctx, cancel := hosttest.New(1).WithTimeout(t.Context(), time.Hour, cause)
		defer cancel()
		<-ctx.Done()
		require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
		require.ErrorIs(t, context.Cause(ctx), cause)
	})
}

func Example() {
	h := hosttest.New(42)
	h.OnPoint = func(id string) error {
		fmt.Println("at", id)
		return nil
	}
	lock := host.NewLock(h, "journal.lock")
	if err := lock.Lock(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(h.Now().Format(time.RFC3339Nano))
	fmt.Println(h.Now().Format(time.RFC3339Nano))
	lock.Unlock()
	// Output:
	// at journal.lock
	// 2026-01-01T00:00:00Z
	// 2026-01-01T00:00:00.001Z
}
