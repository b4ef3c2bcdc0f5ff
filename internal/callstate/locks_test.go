package callstate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/host/hosttest"
)

// TestLocksAreQueued checks that calls get one resource one after the other, in
// the order of arrival and each until it leaves. Two resources are independent.
func TestLocksAreQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := callstate.NewResourceLocks(hosttest.New(1))
		first, err := turns.Take(t.Context(), "c", "a")
		require.NoError(t, err)
		_, err = turns.Take(t.Context(), "d", "b")
		require.NoError(t, err)
		order := make(chan int, 3)
		for i := range 3 {
			go func() {
				call := fmt.Sprint(i)
				release, err := turns.Take(t.Context(), call, "a")
				require.NoError(t, err)
				order <- i
				release()
				release()
				turns.Leave(call)
			}()
			synctest.Wait()
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = turns.Take(impatient, "e", "a")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		first()
		synctest.Wait()
		require.Empty(t, order, "the call has not ended")
		turns.Leave("c")
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2}, []int{<-order, <-order, <-order})
		turns.Leave("d")
		var nobody *callstate.ResourceLocks
		release, err := nobody.Take(t.Context(), "c", "a")
		require.NoError(t, err)
		release()
		nobody.Leave("c")
	})
}

// TestOperationsOfOneCall checks that operations of one call run one after the
// other, regardless of which took the lock.
func TestOperationsOfOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := callstate.NewResourceLocks(hosttest.New(1))
		_, err := turns.Take(t.Context(), "other", "a")
		require.NoError(t, err)
		inside, done := 0, 0
		for range 4 {
			go func() {
				release, err := turns.Take(t.Context(), "c", "a")
				require.NoError(t, err)
				inside++
				require.Equal(t, 1, inside)
				time.Sleep(time.Millisecond)
				inside--
				done++
				release()
			}()
		}
		synctest.Wait()
		require.Zero(t, inside)
		turns.Leave("other")
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, 4, done)
		turns.Leave("c")
	})
}

// TestDeadlock checks that of two calls that each want the other's resource,
// one is refused.
func TestDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := callstate.NewResourceLocks(hosttest.New(1))
		take := func(call, resource string) error {
			release, err := turns.Take(t.Context(), call, resource)
			if err == nil {
				release()
			}
			return err
		}
		for _, call := range []string{"1", "2", "3"} {
			require.NoError(t, take(call, "of "+call))
		}
		got := make(chan error, 2)
		go func() { got <- take("1", "of 2") }()
		synctest.Wait()
		go func() { got <- take("2", "of 3") }()
		synctest.Wait()
		var circle *callstate.DeadlockError
		require.ErrorAs(t, take("3", "of 1"), &circle)
		require.Equal(t, callstate.DeadlockError{Resource: "of 1", Holder: "1"}, *circle)
		require.Contains(t, circle.Error(), "call 1")
		require.Empty(t, got)
		turns.Leave("3")
		require.NoError(t, <-got)
		turns.Leave("2")
		require.NoError(t, <-got)
		turns.Leave("1")
	})
}

// TestLocksNeverDeadlock lets many calls take random resources, several at once.
// All end, and two never hold the same.
func TestLocksNeverDeadlock(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			turns := callstate.NewResourceLocks(hosttest.New(seed))
			var all sync.WaitGroup
			holder, refused := map[string]string{}, 0
			var mu sync.Mutex
			for c := range 5 {
				call, r := fmt.Sprint(c), rand.New(rand.NewPCG(seed, uint64(c)))
				all.Go(func() {
					mine := map[string]bool{}
					var ops sync.WaitGroup
					for range 4 {
						resource, nap := fmt.Sprint(r.IntN(4)), time.Duration(r.IntN(3))*time.Millisecond
						ops.Go(func() {
							time.Sleep(nap)
							release, err := turns.Take(t.Context(), call, resource)
							mu.Lock()
							defer mu.Unlock()
							if err != nil {
								refused++
								return
							}
							require.Contains(t, []string{"", call}, holder[resource])
							holder[resource], mine[resource] = call, true
							release()
						})
					}
					ops.Wait()
					mu.Lock()
					for resource := range mine {
						holder[resource] = ""
					}
					mu.Unlock()
					turns.Leave(call)
				})
			}
			all.Wait() // synctest fails on a deadlock
			_ = refused
		})
	}
}
