package host_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/host/hosttest"
)

func TestLockExcludes(t *testing.T) {
	lock := host.NewLock(host.Real(), "counter")
	count := 0
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			for range 500 {
				if lock.Lock(t.Context()) == nil {
					count++
					lock.Unlock()
				}
			}
		})
	}
	done.Wait()
	require.Equal(t, 8*500, count)
}

func TestLockIsHandedOverInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := host.NewLock(hosttest.New(1), "queue")
		require.NoError(t, lock.Lock(t.Context()))
		order := make(chan int, 5)
		for i := range 5 {
			go func() {
				if lock.Lock(t.Context()) == nil {
					order <- i
					lock.Unlock()
				}
			}()
			synctest.Wait()
		}
		lock.Unlock()
		for i := range 5 {
			require.Equal(t, i, <-order)
		}
	})
}

func TestEndedContextNeverGetsAFreeLock(t *testing.T) {
	lock := host.NewLock(host.Real(), "free")
	cause := errors.New("given up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	for range 100 {
		require.ErrorIs(t, lock.Lock(ctx), cause)
	}
	require.NoError(t, lock.Lock(t.Context()))
}

// TestEndedContextLosesAgainstUnlock gives a waiter the lock and ends its
// context before it runs again: the unused lock must go to the next waiter.
func TestEndedContextLosesAgainstUnlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hosttest.New(1)
		lock := host.NewLock(h, "contended")
		require.NoError(t, lock.Lock(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() { failed <- lock.Lock(ctx) }()
		synctest.Wait()

		awake := make(chan struct{})
		h.OnPoint = func(string) error {
			<-awake
			return nil
		}
		lock.Unlock()
		cancel()
		close(awake)
		require.ErrorIs(t, <-failed, context.Canceled)
		require.NoError(t, lock.Lock(t.Context()))
	})
}

func TestLockTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hosttest.New(1)
		lock := host.NewLock(h, "held")
		require.NoError(t, lock.Lock(t.Context()))
		slow := errors.New("held too long")
		ctx, cancel := h.WithTimeout(t.Context(), time.Hour, slow)
		defer cancel()
		err := lock.Lock(ctx)
		require.ErrorIs(t, err, slow)
		require.ErrorContains(t, err, "held")
	})
}

// TestLockPassesItsPoint checks that every path through Lock passes its
// scheduling point, and again after a wait. A point that fails leaves the lock
// free.
func TestLockPassesItsPoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hosttest.New(1)
		points, killed := 0, errors.New("killed")
		h.OnPoint = func(id string) error {
			require.Equal(t, "here", id)
			points++
			if points == 3 {
				return killed
			}
			return nil
		}
		lock := host.NewLock(h, "here")
		require.NoError(t, lock.Lock(t.Context()))
		require.Equal(t, 1, points)
		failed := make(chan error, 1)
		go func() { failed <- lock.Lock(t.Context()) }()
		synctest.Wait()
		require.Equal(t, 2, points)
		lock.Unlock()
		require.ErrorIs(t, <-failed, killed)
		require.Equal(t, 3, points)
		require.NoError(t, lock.Lock(t.Context()))

		h.OnPoint = func(string) error { return killed }
		require.ErrorIs(t, lock.Lock(t.Context()), killed)
	})
}

func TestUnlockOfAFreeLockPanics(t *testing.T) {
	lock := host.NewLock(host.Real(), "free")
	require.Panics(t, lock.Unlock)
	require.NoError(t, lock.Lock(t.Context()))
	lock.Unlock()
	require.Panics(t, lock.Unlock)
}
