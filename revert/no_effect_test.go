package revert_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

// TestDiedBeforeItsEffect checks a call that announced a change and died before
// it. The versions prove that it had no effect. Nothing needs a revert or a
// decision.
func TestDiedBeforeItsEffect(t *testing.T) {
	for confinement, proof := range map[string]string{"handles": "no_effect", "trusted": "probe"} {
		l := newTestEnv(t)
		rec := l.txn()
		id := l.start(rec, &record.Started{Class: effect.Compensable, Confinement: confinement, Reverts: true}, write{"a", 7})
		l.values.values = before() // as if the change had happened
		l.next()
		found, err := l.reverter.Recover(t.Context())
		require.NoError(t, err)
		require.Len(t, found.Settled, 1)
		require.Equal(t, revert.PhaseFailed, found.Settled[0].Outcome, "%+v", found.Settled)
		c := l.call(id)
		require.Equal(t, proof, c.Failed.Proof, confinement)
		require.Nil(t, c.Reversal)
	}
}
