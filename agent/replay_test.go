package agent_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// TestNothingIsSentAgain: what left with a commit cannot be reverted, which the undo
// says, and neither a redo, a second undo, nor a late commit sends it once more.
func TestNothingIsSentAgain(t *testing.T) {
	ctx := context.Background()
	p := &post{}
	o := branch(t, p)
	rt, end := o.open()
	s := newSession(t, rt)
	tx := begin(t, s)
	holds(t, tx, "mail", "one")
	require.NoError(t, tx.Commit(ctx))
	require.Equal(t, []string{"one"}, p.texts())
	rep, err := s.Revert(ctx, tx.ID(), revert.Options{})
	require.ErrorIs(t, err, agent.ErrPartialRevert)
	require.Len(t, rep.NotReverted(), 1)
	_, _ = s.Redo(ctx, tx.ID())
	_, _ = s.Revert(ctx, tx.ID(), revert.Options{})
	_, _ = s.Redo(ctx, tx.ID())
	require.ErrorIs(t, tx.Commit(ctx), agent.ErrTxnEnded)
	_, err = rt.ResumeTxn(ctx, tx.ID())
	require.Error(t, err)

	dropped := begin(t, s)
	holds(t, dropped, "mail", "two")
	_, err = dropped.Revert(ctx, revert.Options{})
	require.NoError(t, err)
	require.ErrorIs(t, dropped.Commit(ctx), agent.ErrTxnEnded)
	_, _ = s.Redo(ctx, dropped.ID())
	end()
	rt, _ = o.open()
	_, err = rt.Recover(ctx)
	require.NoError(t, err)
	for _, id := range []string{tx.ID(), dropped.ID()} {
		_, err = rt.ResumeTxn(ctx, id)
		require.Error(t, err)
		_, _ = rt.Redo(ctx, id, "boss")
	}
	require.Equal(t, []string{"one"}, p.texts())
}

// TestDropWhileReleasing drops a held call after the commit could not release
// an earlier one. The next commit delivers only the earlier call.
func TestDropWhileReleasing(t *testing.T) {
	ctx := context.Background()
	p := &post{}
	o := branch(t, p)
	rt, _ := o.open()
	tx := begin(t, newSession(t, rt))
	holds(t, tx, "mail", "one")
	second := holds(t, tx, "mail", "two")
	p.fails = func(sentMessage) error { return tool.NoEffect(errors.New("down")) }
	require.ErrorIs(t, tx.Commit(ctx), agent.ErrNotReleased)
	_, err := tx.Revert(ctx, revert.Options{Calls: []string{second.Call}})
	require.NoError(t, err)
	p.fails = nil
	require.NoError(t, tx.Commit(ctx))
	require.Equal(t, []string{"one"}, p.texts())
}

// TestAnswersElsewhere: an answer counts for the one question that it was given to: not
// for the same call asked in another transaction, nor from another journal, nor by a
// record that names another call.
func TestAnswersElsewhere(t *testing.T) {
	ctx := context.Background()
	d := newApprovalSetup(t)
	txn, call := d.ask()
	require.NoError(t, d.answer(call, true, "boss"))
	other, twin := d.ask()
	out := d.resume(asksForPivots, "v1", other, twin)
	require.Equal(t, tool.StatusPending, out.Status, "the same words, asked again")

	far := newApprovalSetup(t)
	far.host = hosttest.New(2) // else its ids would be the same
	farTxn, farCall := far.ask()
	require.Equal(t, tool.StatusPending, far.resume(asksForPivots, "v1", farTxn, farCall).Status)
	for _, to := range []struct {
		d         *approvalSetup
		txn, call string
	}{{d, other, twin}, {far, farTxn, farCall}} {
		var answered *record.Answered
		d.life(asksForPivots, "v1", func(rt *agent.Runtime) {
			_, c, err := revert.LoadCall(ctx, rt.Journal(), call)
			require.NoError(t, err)
			answered = c.Answered
		})
		to.d.life(asksForPivots, "v1", func(rt *agent.Runtime) {
			c, err := revert.Load(ctx, rt.Journal(), to.txn)
			require.NoError(t, err)
			rec := revert.NewRecorder(rt.Journal(), to.d.host, c.Session)
			require.NoError(t, rec.Write(ctx, revert.Write{Records: []revert.CallRecord{{Txn: to.txn, Call: to.call, Body: answered}}, Durable: true}))
		})
		out := to.d.resume(asksForPivots, "v1", to.txn, to.call)
		require.Equal(t, tool.StatusDenied, out.Status)
		require.Contains(t, out.Error.Why, "another question")
		require.Zero(t, to.d.sent)
	}
	require.Equal(t, tool.StatusDone, d.resume(asksForPivots, "v1", txn, call).Status)
	require.Equal(t, 1, d.sent)
}

// TestTwoWhoResume: of two processes one has the transaction, and one approval lets the
// call run once, also where it is resumed twice at once or was reverted meanwhile.
func TestTwoWhoResume(t *testing.T) {
	ctx := context.Background()
	d := newApprovalSetup(t)
	txn, call := d.ask()
	require.NoError(t, d.answer(call, true, "boss"))
	d.life(asksForPivots, "v1", func(one *agent.Runtime) {
		tx, err := one.ResumeTxn(ctx, txn)
		require.NoError(t, err)
		d.life(asksForPivots, "v1", func(two *agent.Runtime) {
			_, err := two.ResumeTxn(ctx, txn)
			require.ErrorIs(t, err, revert.ErrBusy)
		})
		ended := make(chan tool.Status, 2)
		for range 2 {
			go func() {
				out, _ := tx.Resume(ctx, call)
				ended <- out.Status
			}()
		}
		require.ElementsMatch(t, []tool.Status{tool.StatusDone, tool.StatusInvalid}, []tool.Status{<-ended, <-ended})
	})
	require.Equal(t, 1, d.sent)
	d.sent = 0

	txn, call = d.ask()
	require.NoError(t, d.answer(call, true, "boss"))
	d.life(asksForPivots, "v1", func(rt *agent.Runtime) {
		tx, err := rt.ResumeTxn(ctx, txn)
		require.NoError(t, err)
		_, err = tx.Revert(ctx, revert.Options{})
		require.NoError(t, err)
		_, err = tx.Resume(ctx, call)
		require.Error(t, err)
	})
	require.Zero(t, d.sent)
}
