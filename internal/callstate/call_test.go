package callstate_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

const resource = "file://workspace/a.txt"

// newCall opens a call in an open transaction.
func newCall(t *testing.T, h host.Host, change ...func(*callstate.Config)) *callstate.Call {
	j := journal.Memory()
	rec := revert.NewRecorder(j, h, "s_1").In("t_1")
	own := journal.Ownership{Txn: "t_1", Owner: j.Owner()}
	require.NoError(t, rec.Write(t.Context(), revert.Write{Records: []revert.CallRecord{{Body: &record.Begun{Owner: own.Owner}}}, Take: journal.OwnerChange{To: own}}))
	cfg := callstate.Config{
		ID: "c_1", Key: "k", Tool: "test", Recorder: rec, Locks: callstate.NewResourceLocks(h),
		Gate:    func(context.Context, perm.ResourceAccess) (callstate.Ruling, error) { return callstate.Ruling{}, nil },
		Started: &record.Started{Key: "k", Tool: record.ToolRef{Name: "test"}, Input: []byte("{}"), Decision: []byte("{}"), Confinement: "handles"},
	}
	for _, f := range change {
		f(&cfg)
	}
	return callstate.New(cfg)
}

func kinds(t *testing.T, c *callstate.Call) (all []record.Kind) {
	for e, err := range c.Config().Recorder.Journal().Entries(t.Context(), journal.Query{Call: "c_1"}) {
		require.NoError(t, err)
		all = append(all, e.Header.Kind)
	}
	return all
}

func changes() []effect.Change {
	return []effect.Change{{Scheme: "x", Resource: resource, Kind: "write", Pre: "a", Post: "b"}}
}

func TestZeroOpReachesNothing(t *testing.T) {
	var op *callstate.Op
	require.Nil(t, op.Call())
	op.Leave()
	_, _, err := op.Hold()
	require.ErrorIs(t, err, callstate.ErrClosed)
	var c *callstate.Call
	_, err = c.Enter(t.Context())
	require.ErrorIs(t, err, callstate.ErrClosed)
}

// TestCloseWaitsForOperations checks that Close waits for operations, also for
// one that another operation holds open after its own end.
func TestCloseWaitsForOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCall(t, hosttest.New(1))
		op, err := c.Enter(t.Context())
		require.NoError(t, err)
		same, leave, err := op.Hold()
		require.NoError(t, err)
		require.Same(t, c, same)
		closed := make(chan error, 1)
		go func() { closed <- c.Close(t.Context()) }()
		synctest.Wait()
		_, err = c.Enter(t.Context())
		require.ErrorIs(t, err, callstate.ErrClosed, "nothing new begins")
		op.Leave()
		op.Leave()
		require.Nil(t, op.Call())
		_, _, err = op.Hold()
		require.ErrorIs(t, err, callstate.ErrClosed)
		synctest.Wait()
		require.Empty(t, closed)
		_, err = c.Intend(t.Context(), changes(), nil)
		require.NoError(t, err, "what is held may still be recorded")
		leave()
		leave()
		require.NoError(t, <-closed)
		require.NoError(t, c.Close(t.Context()), "twice is once")
	})
}

// TestCutOff checks that an operation that does not end in time can do nothing
// afterwards: no record follows the one that ends the call.
func TestCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCall(t, hosttest.New(1))
		op, err := c.Enter(t.Context())
		require.NoError(t, err)
		held, leave, err := op.Hold()
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, c.Close(ctx), callstate.ErrInFlight)
		require.Equal(t, time.Minute, time.Since(began))

		require.Nil(t, op.Call())
		_, _, err = op.Hold()
		require.ErrorIs(t, err, callstate.ErrClosed)
		_, err = held.Intend(t.Context(), changes(), nil)
		require.ErrorIs(t, err, callstate.ErrClosed)
		require.ErrorIs(t, held.Note(t.Context(), "key", 1), callstate.ErrClosed)
		require.ErrorIs(t, held.Claim(t.Context(), resource), callstate.ErrClosed)
		require.Empty(t, kinds(t, c))
		require.Empty(t, c.Changes())
		leave()
		op.Leave()
		require.NoError(t, c.Close(t.Context()), "in the end it is idle")
	})
}

// TestCutOffWaitsForARecord checks that a record that is being written at the
// timeout precedes the end of the call.
func TestCutOffWaitsForARecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hosttest.New(1)
		c := newCall(t, h)
		release := make(chan struct{})
		h.OnPoint = func(id string) error {
			if id == "journal.append.started.changed" {
				<-release
			}
			return nil
		}
		op, err := c.Enter(t.Context())
		require.NoError(t, err)
		intended, closed := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := op.Call().Intend(t.Context(), changes(), nil)
			intended <- err
		}()
		synctest.Wait()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		go func() { closed <- c.Close(ended) }()
		synctest.Wait()
		require.Empty(t, closed)
		close(release)
		require.ErrorIs(t, <-closed, callstate.ErrInFlight)
		require.NoError(t, <-intended)
		require.Len(t, c.Changes(), 1)
		require.Nil(t, c.Start())
		require.Equal(t, []record.Kind{record.KindStarted, record.KindChanged}, kinds(t, c))
	})
}

// TestStartGoesWithTheFirstRecord checks that the first record of any kind
// writes the start, again after a failure.
func TestStartGoesWithTheFirstRecord(t *testing.T) {
	boom := errors.New("boom")
	for name, write := range map[string]func(context.Context, *callstate.Call) error{
		"change": func(ctx context.Context, c *callstate.Call) error {
			_, err := c.Intend(ctx, changes(), nil)
			return err
		},
		"note":  func(ctx context.Context, c *callstate.Call) error { return c.Note(ctx, "key", 1) },
		"claim": func(ctx context.Context, c *callstate.Call) error { return c.Claim(ctx, resource) },
	} {
		t.Run(name, func(t *testing.T) {
			h := hosttest.New(1)
			c := newCall(t, h)
			h.OnPoint = func(string) error { return boom }
			require.ErrorIs(t, write(t.Context(), c), boom)
			require.NotNil(t, c.Start())
			h.OnPoint = nil
			for range 2 {
				require.NoError(t, write(t.Context(), c))
				require.Nil(t, c.Start())
			}
			all := kinds(t, c)
			require.Equal(t, 0, slices.Index(all, record.KindStarted))
			require.NotContains(t, all[1:], record.KindStarted)
		})
	}
}

// TestThen checks that the functions of an operation run at its end, newest
// first, once.
func TestThen(t *testing.T) {
	c := newCall(t, hosttest.New(1))
	op, err := c.Enter(t.Context())
	require.NoError(t, err)
	var order []int
	for i := range 3 {
		op.Then(func() { order = append(order, i) })
	}
	op.Leave()
	op.Leave()
	require.Equal(t, []int{2, 1, 0}, order)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Enter(ended)
	require.ErrorIs(t, err, context.Canceled)
}

// TestStill checks that recovery of a call starts only after its last operation
// has ended.
func TestStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := &callstate.WaitGraph{}
		c := newCall(t, hosttest.New(1), func(cfg *callstate.Config) { cfg.Waits = waits })
		id := c.Config().ID
		op, err := c.Enter(t.Context())
		require.NoError(t, err)
		require.NoError(t, waits.Still(t.Context(), id), "it has not ended")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, c.Close(ended), callstate.ErrInFlight)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, waits.Still(ctx, id), callstate.ErrInFlight)
		require.ErrorIs(t, waits.StillIn(ctx, "t_1"), callstate.ErrInFlight)
		require.NoError(t, waits.StillIn(ctx, "t_2"))
		still := make(chan error, 2)
		for range 2 {
			go func() { still <- waits.Still(t.Context(), id) }()
		}
		synctest.Wait()
		require.Empty(t, still)
		op.Leave()
		require.NoError(t, <-still)
		require.NoError(t, <-still)
		require.NoError(t, waits.Still(t.Context(), id))
	})
	require.NoError(t, (*callstate.WaitGraph)(nil).Still(t.Context(), "c"))
}
