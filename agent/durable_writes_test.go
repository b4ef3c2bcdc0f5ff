package agent_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// batches notes what is appended to a journal.
type batches struct {
	journal.Journal
	mu  sync.Mutex
	all []journal.Batch
}

func (b *batches) Append(ctx context.Context, batch journal.Batch) error {
	b.mu.Lock()
	b.all = append(b.all, batch)
	b.mu.Unlock()
	return b.Journal.Append(ctx, batch)
}

// durable requires that the newest record of a kind is durable before its write returns.
func (b *batches) durable(t *testing.T, kind record.Kind) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, batch := range slices.Backward(b.all) {
		if slices.ContainsFunc(batch.Entries, func(e record.Entry) bool { return e.Header.Kind == kind }) {
			require.True(t, batch.Durable, "%s", kind)
			return
		}
	}
	require.Fail(t, "no record", "%s", kind)
}

// TestWhatMustBeDurable: what a person or another session relies on is durable when the call returns that writes it.
func TestWhatMustBeDurable(t *testing.T) {
	j := &batches{Journal: journal.Memory()}
	rt, _ := gatedRuntime(t, oneLook+"\ndeny_commit contains \"no drafts\" if {\n\tsome e in input.txn.effects\n\te.resource.ext == \".draft\"\n}\n", agent.Journal(j))
	s := newSession(t, rt)

	_, err := s.Delegate(t.Context(), perm.Principal{ID: "helper"})
	require.NoError(t, err)
	j.durable(t, record.KindDelegated)

	tx := begin(t, s)
	_, err = tx.Invoke(t.Context(), "file_write", tool.Args{"path": "a", "content": "new\n"}, agent.WithCallID("one"))
	require.NoError(t, err)
	before := len(j.all)
	_, err = tx.Invoke(t.Context(), "file_write", tool.Args{"path": "a", "content": "new\n"}, agent.WithCallID("one"))
	require.NoError(t, err)
	require.Len(t, j.all, before+1, "its outcome is returned again once it is durable")
	require.True(t, j.all[before].Durable)

	gate := commitWaits(t, tx)
	j.durable(t, record.KindCommitDecided)
	approveCommit(t, rt, gate)
	j.durable(t, record.KindAnswered)
	require.NoError(t, tx.Commit(t.Context()))

	tx = begin(t, s)
	saves(t, tx, "x.draft", "x")
	require.ErrorIs(t, tx.Commit(t.Context()), tool.ErrDenied)
	j.durable(t, record.KindAborting)

	require.NoError(t, rt.Revoke(t.Context(), s.ID(), "boss", "enough"))
	j.durable(t, record.KindRevoked)
}
