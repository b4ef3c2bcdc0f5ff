package agent_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// answeredFirst is a journal on which another answer comes just before the
// first one of this runtime.
type answeredFirst struct {
	journal.Journal
	first func()
}

// Append stores the other answer first.
func (j *answeredFirst) Append(ctx context.Context, b journal.Batch) error {
	if first := j.first; first != nil && len(b.Entries) > 0 && b.Entries[0].Header.Kind == record.KindAnswered {
		j.first = nil
		first()
	}
	return j.Journal.Append(ctx, b)
}

// TestAnswersAtOnce: of an approval and a rejection at the same time, the
// rejection counts, and the approver is told.
func TestAnswersAtOnce(t *testing.T) {
	ctx := t.Context()
	setup := func(t *testing.T) (slow, quick *agent.Runtime, race *answeredFirst, call string) {
		d := newApprovalSetup(t)
		race = &answeredFirst{Journal: journal.Memory()}
		runtime := func(j journal.Journal) *agent.Runtime {
			rt, err := agent.New(quiet(), agent.Tools(d.send("v1")), agent.Policy(mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": asksForPivots}})), agent.Journal(j), agent.SuspendForApproval(), agent.Host(d.host))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, rt.Close()) })
			return rt
		}
		slow, quick = runtime(race), runtime(race.Journal)
		tx, err := newSession(t, quick).Begin(ctx)
		require.NoError(t, err)
		out, _ := tx.Invoke(ctx, "send", "hello")
		require.Equal(t, tool.StatusPending, out.Status)
		return slow, quick, race, out.Call
	}
	deny := func(rt *agent.Runtime, call string) func() {
		return func() { require.NoError(t, rt.Answer(ctx, agent.Answer{Call: call, By: "boss"})) }
	}
	t.Run("approve", func(t *testing.T) {
		slow, quick, race, call := setup(t)
		race.first = deny(quick, call)
		err := slow.Answer(ctx, agent.Answer{Call: call, Approved: true, By: "other"})
		require.ErrorIs(t, err, tool.ErrInvalid)
		require.ErrorContains(t, err, "was refused by boss at the same time")
	})
	t.Run("remember", func(t *testing.T) {
		slow, quick, race, call := setup(t)
		race.first = deny(quick, call)
		id, err := slow.RememberApproval(ctx, agent.Answer{Call: call, Approved: true, By: "other"}, ctxperm.RememberScope{})
		require.ErrorIs(t, err, tool.ErrInvalid)
		revoked := 0
		for e, err := range race.Entries(ctx, journal.Query{Kinds: []record.Kind{record.KindRevoked}}) {
			require.NoError(t, err)
			r, err := record.Unseal(e)
			require.NoError(t, err)
			require.Equal(t, id, r.Body.(*record.Revoked).Grant) //nolint:errcheck,forcetypeassert // the kind says so
			revoked++
		}
		require.Equal(t, 1, revoked)
	})
	t.Run("two approve", func(t *testing.T) {
		slow, quick, race, call := setup(t)
		race.first = func() {
			require.NoError(t, quick.Answer(ctx, agent.Answer{Call: call, Approved: true, By: "boss"}))
		}
		require.NoError(t, slow.Answer(ctx, agent.Answer{Call: call, Approved: true, By: "other"}))
	})
	t.Run("commit", func(t *testing.T) {
		race := &answeredFirst{Journal: journal.Memory()}
		slow, _ := gatedRuntime(t, oneLook, agent.Journal(race))
		quick, _ := gatedRuntime(t, oneLook, agent.Journal(race.Journal))
		tx, err := newSession(t, quick).Begin(ctx)
		require.NoError(t, err)
		_, err = tx.Invoke(ctx, "file_write", tool.Args{"path": "a", "content": "three\n"})
		require.NoError(t, err)
		request := commitWaits(t, tx).Request
		race.first = func() { require.NoError(t, quick.Answer(ctx, agent.Answer{Txn: tx.ID(), By: "boss"})) }
		err = slow.Answer(ctx, agent.Answer{Txn: tx.ID(), Approved: true, By: "other", RequestDigest: request})
		require.ErrorIs(t, err, tool.ErrInvalid)
		require.ErrorContains(t, err, "was refused by boss at the same time")
	})
	t.Run("deny after the call ran", func(t *testing.T) {
		slow, quick, race, call := setup(t)
		race.first = func() {
			require.NoError(t, quick.Answer(ctx, agent.Answer{Call: call, Approved: true, By: "boss"}))
			found, _, err := revert.LoadCall(ctx, race, call)
			require.NoError(t, err)
			tx, err := quick.ResumeTxn(ctx, found.ID)
			require.NoError(t, err)
			_, err = tx.Resume(ctx, call)
			require.NoError(t, err)
		}
		err := slow.Answer(ctx, agent.Answer{Call: call, By: "other"})
		require.ErrorIs(t, err, tool.ErrInvalid)
		require.ErrorContains(t, err, "went on before it was refused: it is done")
	})
}
