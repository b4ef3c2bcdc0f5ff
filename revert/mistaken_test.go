package revert_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
)

// mistaken is a journal that takes a living owner for dead, which writes once more just
// before it is asked for the last time.
type mistaken struct {
	revert.Journal
	asked int
	last  func()
}

func (m *mistaken) Alive(context.Context, string) (bool, error) {
	if m.asked++; m.asked == 2 {
		m.last()
	}
	return false, nil
}

// TestOwnerTakenForDeadWritesOnce: what an owner still wrote while it was taken over
// stands, and a recovery that had looked before does not say it again.
func TestOwnerTakenForDeadWritesOnce(t *testing.T) {
	l := newLab(t)
	rec := l.txn()
	call := l.start(rec, handled(), write{"a", 7})
	journal := &mistaken{Journal: l.open(), last: func() { l.line(rec, call, done()) }}
	r := &revert.Reverter{Journal: journal, Host: l.reverter.Host, Ways: l.reverter.Ways}
	found, err := r.Recover(t.Context())
	require.NoError(t, err)
	require.Empty(t, found.Settled, "it had ended")
	require.Equal(t, []string{rec.Txn()}, found.OwnerGone)
	txn, err := revert.Load(t.Context(), journal, rec.Txn())
	require.NoError(t, err)
	require.Equal(t, revert.PhaseDone, txn.Calls[0].Phase)
	require.ErrorIs(t, rec.Write(t.Context(), revert.Write{Lines: []revert.Line{{Call: call, Body: done()}}}), revert.ErrNotOwner)
}
