package revert_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// TestAlreadyBelowALaterCall checks a call whose change a later call of another
// transaction hides. The call does not count as reverted before the later call
// is reverted too.
func TestAlreadyBelowALaterCall(t *testing.T) {
	l := newTestEnv(t)
	first, second := l.txn(), l.txn()
	l.put(first, write{"n", 7})
	l.end(first)
	l.put(second, write{"n", nil})
	l.end(second)
	require.NotContains(t, l.values.values, "n")

	foreseen, err := l.reverter.Preview(t.Context(), first.Txn(), revert.Options{})
	require.NoError(t, err)
	require.False(t, foreseen.Complete())
	rep, err := l.reverter.Revert(t.Context(), first.Txn(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, revert.TxnRevertedPartial, rep.State)
	require.Equal(t, effect.Conflict, rep.Items[0].Outcome)
	require.Contains(t, rep.Items[0].Why, second.Txn()+" changed it later")

	rep, err = l.reverter.Revert(t.Context(), second.Txn(), revert.Options{})
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.Equal(t, "7", l.values.values["n"], "of the first one, which was not said to be gone")
	rep, err = l.reverter.Revert(t.Context(), first.Txn(), revert.Options{})
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.NotContains(t, l.values.values, "n")
}

// TestCascadeRevertsBoth checks that one revert with cascade removes both.
func TestCascadeRevertsBoth(t *testing.T) {
	l := newTestEnv(t)
	first, second := l.txn(), l.txn()
	l.put(first, write{"n", 7})
	l.end(first)
	l.put(second, write{"n", nil})
	l.end(second)
	rep, err := l.reverter.Revert(t.Context(), first.Txn(), revert.Options{Cascade: true})
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.Len(t, rep.Items, 2)
	require.NotContains(t, l.values.values, "n")
	require.Equal(t, revert.TxnReverted, l.load(second.Txn()).State())
}

// TestRestoredBelowALaterCall checks a version that a later call of another
// transaction wrote, and that equals a version of the first call. The later
// call stays, so a revert of the first call must not remove that version.
func TestRestoredBelowALaterCall(t *testing.T) {
	for name, tt := range map[string]struct {
		first  []write
		others [][]write
		is     any
	}{
		"the version that it left":  {[]write{{"n", 7}}, [][]write{{{"n", nil}}, {{"n", 7}}}, "7"},
		"one in between of its own": {[]write{{"n", 5}, {"n", 7}}, [][]write{{{"n", 5}}}, "5"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newTestEnv(t)
			first := l.txn()
			l.put(first, tt.first...)
			l.end(first)
			for _, writes := range tt.others {
				other := l.txn()
				l.put(other, writes...)
				l.end(other)
			}
			rep, err := l.reverter.Revert(t.Context(), first.Txn(), revert.Options{})
			require.NoError(t, err)
			require.Equal(t, revert.TxnRevertedPartial, rep.State)
			require.Equal(t, effect.Conflict, rep.Items[0].Outcome)
			require.Contains(t, rep.Items[0].Why, "changed it later")
			require.Equal(t, tt.is, l.values.values["n"])
			rep, err = l.reverter.Revert(t.Context(), first.Txn(), revert.Options{Cascade: true})
			require.NoError(t, err)
			require.True(t, rep.Complete())
			require.NotContains(t, l.values.values, "n")
		})
	}
}

// TestRestoredBelowARevertedCall checks that a partly reverted later call blocks
// only the resources that it still changes.
func TestRestoredBelowARevertedCall(t *testing.T) {
	l := newTestEnv(t)
	first, second := l.txn(), l.txn()
	l.put(first, write{"n", 7}, write{"m", 7})
	l.end(first)
	l.put(second, write{"n", 8}, write{"m", 8})
	l.end(second)
	l.values.values["m"] = "9" // another actor
	rep, err := l.reverter.Revert(t.Context(), second.Txn(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, revert.TxnRevertedPartial, rep.State)
	require.Equal(t, "7", l.values.values["n"])
	rep, err = l.reverter.Revert(t.Context(), first.Txn(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, revert.TxnRevertedPartial, rep.State)
	require.NotContains(t, l.values.values, "n", "nothing lies on it any more")
	require.Equal(t, "9", l.values.values["m"])
}

// TestMemoryStopsReading checks that a cancelled read stops between two
// entries.
func TestMemoryStopsReading(t *testing.T) {
	l := newTestEnv(t)
	l.worked()
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	n := 0
	for e, err := range l.journal.Entries(ctx, journal.Query{}) {
		if n++; n == 1 {
			require.NoError(t, err)
			cancel(enough)
			continue
		}
		require.ErrorIs(t, err, enough)
		require.Zero(t, e)
	}
	require.Equal(t, 2, n)
}

// TestLaterCallBeforeTheClaim changes a resource after a revert looked for later
// calls, and before the revert claims its transaction. The revert looks again.
func TestLaterCallBeforeTheClaim(t *testing.T) {
	l := newTestEnv(t)
	first := l.txn()
	call := l.put(first, write{"n", 7})
	l.end(first)
	l.at("journal.append.begun.reverted_by", func() {
		second := l.txn()
		l.put(second, write{"n", nil})
		l.end(second)
	})
	rep, err := l.reverter.Revert(t.Context(), call, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, effect.Conflict, rep.Items[0].Outcome, "a later call removed it")
	require.Equal(t, revert.TxnRevertedPartial, rep.State)
}
