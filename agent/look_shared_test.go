package agent_test

import (
	"context"
	"iter"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// slowLooks is a journal in which those who look for revocations stand still until they are let on.
type slowLooks struct {
	*sqlite.Journal

	n       atomic.Int32
	arrived chan struct{}
	on      chan struct{}
}

// Entries reads, and stands still when it has.
func (j *slowLooks) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	if j.arrived == nil || len(q.Kinds) == 0 || q.Kinds[0] != record.KindRevoked {
		return j.Journal.Entries(ctx, q)
	}
	j.n.Add(1)
	return func(yield func(record.Entry, error) bool) {
		for e, err := range j.Journal.Entries(ctx, q) {
			if !yield(e, err) {
				return
			}
		}
		j.arrived <- struct{}{}
		<-j.on
	}
}

// TestRevocationsAreLookedForTogether begins transactions while another caller
// reads the revocations. They share one more read, and see the revocations that
// came before them.
func TestRevocationsAreLookedForTogether(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	open := func() *sqlite.Journal {
		j, err := sqlite.Open(t.Context(), dir)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, j.Close()) })
		return j
	}
	h, here := hosttest.New(1), make(chan struct{}, 100)
	j := &slowLooks{Journal: open()}
	s := newSession(t, newRuntime(t, agent.Journal(j), agent.Host(h)))
	begin(t, s) // and the session is on the journal
	h.OnPoint = func(id string) error {
		if id == "register.look" {
			here <- struct{}{}
		}
		return nil
	}
	j.arrived, j.on = make(chan struct{}), make(chan struct{})

	var first, rest sync.WaitGroup
	first.Go(func() {
		_, err := s.Begin(t.Context())
		require.NoError(t, err, "what was not revoked when it looked")
	})
	<-here
	<-j.arrived
	other := newRuntime(t, agent.Journal(open()))
	require.NoError(t, other.Revoke(t.Context(), s.ID(), "boss", "enough"))
	const together = 20
	for range together {
		rest.Go(func() {
			_, err := s.Begin(t.Context())
			require.ErrorContains(t, err, "enough")
		})
	}
	for range together {
		<-here
	}
	j.on <- struct{}{}
	first.Wait()
	<-j.arrived
	j.on <- struct{}{}
	rest.Wait()
	require.Equal(t, int32(2), j.n.Load())
}

// serverJournal is a journal without a folder that other processes use too.
type serverJournal struct{ journal.Journal }

func (serverJournal) Shared() bool { return true }

// TestRevocationOnASharedServer revokes a session in another process that has
// the same journal on a server.
func TestRevocationOnASharedServer(t *testing.T) {
	open := journal.SharedMemory()
	s := newSession(t, newRuntime(t, agent.Journal(serverJournal{open()})))
	begin(t, s)
	require.NoError(t, newRuntime(t, agent.Journal(serverJournal{open()})).Revoke(t.Context(), s.ID(), "boss", "enough"))
	_, err := s.Begin(t.Context())
	require.ErrorContains(t, err, "enough")
}
