package agent_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
)

const asksForPivots = "package remit\nask contains \"it leaves the house\" if input.call.effect_class == \"pivot\"\nallow contains \"the rest\" if input.call.effect_class == \"pure\"\n"

const allowsAnything = "package remit\nallow contains \"anything\"\n"

// approvalSetup is a state folder that several lives of a program share, and a tool that
// counts how often it ran.
type approvalSetup struct {
	t     *testing.T
	state string
	host  *hosttest.Host
	sent  int
}

func newApprovalSetup(t *testing.T) *approvalSetup {
	return &approvalSetup{t: t, state: filepath.Join(t.TempDir(), "state"), host: hosttest.New(1)}
}

func (d *approvalSetup) send(description string) tool.Tool {
	tl, err := tool.Create("send", description, func(context.Context, string) (string, error) {
		d.sent++
		return "sent", nil
	}, tool.Effect(effect.Pivot))
	return mustTool(d.t, tl, err)
}

// life is one process: what it opens is closed when fn returns.
func (d *approvalSetup) life(policy, description string, fn func(rt *agent.Runtime)) {
	ctx := context.Background()
	j, err := sqlite.Open(ctx, d.state)
	require.NoError(d.t, err)
	e := mustLoad(d.t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": policy}})
	rt, err := agent.New(quiet(), agent.Tools(d.send(description)), agent.Policy(e), agent.Journal(j), agent.SuspendForApproval(), agent.Host(d.host))
	require.NoError(d.t, err)
	fn(rt)
	require.NoError(d.t, rt.Close())
	require.NoError(d.t, j.Close())
}

// ask leaves a pending call behind.
func (d *approvalSetup) ask() (txn, call string) {
	d.life(asksForPivots, "v1", func(rt *agent.Runtime) {
		s := newSession(d.t, rt)
		id, err := s.Update(context.Background(), func(tx *agent.Txn) error {
			out, err := tx.Invoke(context.Background(), "send", "hello")
			require.Equal(d.t, tool.StatusPending, out.Status)
			require.Equal(d.t, 4, out.ExitCode())
			require.False(d.t, out.Status.OK())
			call = out.Call
			return err
		})
		require.ErrorIs(d.t, err, tool.ErrPending)
		txn = id
	})
	require.Zero(d.t, d.sent)
	return txn, call
}

// resume goes on in a new life and commits.
func (d *approvalSetup) resume(policy, description, txn, call string) (out tool.Outcome) {
	d.life(policy, description, func(rt *agent.Runtime) {
		tx, err := rt.ResumeTxn(context.Background(), txn)
		require.NoError(d.t, err)
		out, err = tx.Resume(context.Background(), call)
		require.Equal(d.t, out.Status.OK(), err == nil)
	})
	return out
}

func (d *approvalSetup) answer(call string, approved bool, by string) (err error) {
	d.life(asksForPivots, "v1", func(rt *agent.Runtime) {
		err = rt.Answer(context.Background(), agent.Answer{Call: call, Approved: approved, By: by, Why: "because"})
	})
	return err
}

// approveBeside writes an approval that was given before its process saw the refusal.
func (d *approvalSetup) approveBeside(txn, call, by string) {
	ctx := context.Background()
	j, err := sqlite.Open(ctx, d.state)
	require.NoError(d.t, err)
	t, c, err := revert.LoadCall(ctx, j, call)
	require.NoError(d.t, err)
	line := revert.CallRecord{Txn: txn, Call: call, Body: &record.Answered{Approved: true, By: by, Digest: c.Asked.Digest}}
	require.NoError(d.t, revert.NewRecorder(j, d.host, t.Session).Write(ctx, revert.Write{Records: []revert.CallRecord{line}, Durable: true}))
	require.NoError(d.t, j.Close())
}

func TestApprovalAcrossRestarts(t *testing.T) {
	d := newApprovalSetup(t)
	txn, call := d.ask()
	require.Equal(t, tool.StatusPending, d.resume(asksForPivots, "v1", txn, call).Status, "nobody has answered")
	require.NoError(t, d.answer(call, true, "boss"))
	require.Equal(t, tool.StatusDone, d.resume(asksForPivots, "v1", txn, call).Status)
	require.Equal(t, 1, d.sent)

	again := d.resume(asksForPivots, "v1", txn, call)
	require.Equal(t, tool.StatusInvalid, again.Status, "an approval is used once")
	require.Error(t, d.answer(call, true, "boss"), "nothing waits any more")
	require.Equal(t, 1, d.sent)
}

func TestAnswersThatDoNotCount(t *testing.T) {
	changed := asksForPivots + "hint contains \"changed\"\n"
	for _, tc := range []struct {
		name   string
		do     func(d *approvalSetup, txn, call string) tool.Outcome
		why    string
		status tool.Status
	}{
		{"refused", func(d *approvalSetup, txn, call string) tool.Outcome {
			require.NoError(d.t, d.answer(call, false, "boss"))
			return d.resume(asksForPivots, "v1", txn, call)
		}, "refused by boss: because", tool.StatusDenied},
		{"refused, and the policy does not ask any more", func(d *approvalSetup, txn, call string) tool.Outcome {
			require.NoError(d.t, d.answer(call, false, "boss"))
			return d.resume("package remit\nallow contains \"anything\"\n", "v1", txn, call)
		}, "refused by boss: because", tool.StatusDenied},
		{"refused, and approved afterwards", func(d *approvalSetup, txn, call string) tool.Outcome {
			require.NoError(d.t, d.answer(call, false, "boss"))
			require.ErrorContains(d.t, d.answer(call, true, "owner"), "stays refused")
			return d.resume(asksForPivots, "v1", txn, call)
		}, "refused by boss: because", tool.StatusDenied},
		{"refused and approved at the same moment", func(d *approvalSetup, txn, call string) tool.Outcome {
			require.NoError(d.t, d.answer(call, false, "boss"))
			d.approveBeside(txn, call, "owner")
			return d.resume(asksForPivots, "v1", txn, call)
		}, "refused by boss: because", tool.StatusDenied},
		{"given by who asks", func(d *approvalSetup, txn, call string) tool.Outcome {
			require.ErrorIs(d.t, d.answer(call, true, "coder"), tool.ErrDenied)
			return d.resume(asksForPivots, "v1", txn, call)
		}, "it leaves the house", tool.StatusPending},
		{"given by nobody", func(d *approvalSetup, txn, call string) tool.Outcome {
			require.ErrorIs(d.t, d.answer(call, true, ""), tool.ErrInvalid)
			return d.resume(asksForPivots, "v1", txn, call)
		}, "it leaves the house", tool.StatusPending},
		{"too late", func(d *approvalSetup, txn, call string) tool.Outcome {
			require.NoError(d.t, d.answer(call, true, "boss"))
			d.host.Advance(25 * time.Hour)
			return d.resume(asksForPivots, "v1", txn, call)
		}, "in time", tool.StatusDenied},
		{"the tool changed", func(d *approvalSetup, txn, call string) tool.Outcome {
			require.NoError(d.t, d.answer(call, true, "boss"))
			return d.resume(asksForPivots, "v2", txn, call)
		}, "has changed since", tool.StatusDenied},
		{"the policy changed", func(d *approvalSetup, txn, call string) tool.Outcome {
			require.NoError(d.t, d.answer(call, true, "boss"))
			return d.resume(changed, "v1", txn, call)
		}, "has changed since", tool.StatusDenied},
		{"refused, and the policy allows by now", func(d *approvalSetup, txn, call string) tool.Outcome {
			require.NoError(d.t, d.answer(call, false, "boss"))
			return d.resume(allowsAnything, "v1", txn, call)
		}, "refused by boss: because", tool.StatusDenied},
		{"asked under another policy, which allows it", func(d *approvalSetup, txn, call string) tool.Outcome {
			return d.resume(allowsAnything, "v1", txn, call)
		}, "has changed since", tool.StatusDenied},
		{"the policy denies by now", func(d *approvalSetup, txn, call string) tool.Outcome {
			require.NoError(d.t, d.answer(call, true, "boss"))
			return d.resume(asksForPivots+"deny contains \"closed\"\n", "v1", txn, call)
		}, "closed", tool.StatusDenied},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newApprovalSetup(t)
			txn, call := d.ask()
			out := tc.do(d, txn, call)
			require.Equal(t, tc.status, out.Status)
			require.Contains(t, out.Error.Why, tc.why)
			if out.Status == tool.StatusDenied {
				require.NotContains(t, out.Text, "anything", "what allows it is no reason for a denial")
			}
			require.Zero(t, d.sent, "the tool's code is not entered")
		})
	}
}

// TestNobodyAnswersWhatIsOver: what waits in a transaction that has ended can neither be
// approved nor go on.
func TestNobodyAnswersWhatIsOver(t *testing.T) {
	d := newApprovalSetup(t)
	txn, call := d.ask()
	d.life(asksForPivots, "v1", func(rt *agent.Runtime) {
		_, err := rt.Revert(context.Background(), txn, revert.Options{})
		require.NoError(t, err)
	})
	err := d.answer(call, true, "boss")
	require.ErrorIs(t, err, tool.ErrInvalid)
	require.ErrorContains(t, err, "its transaction is reverted")
}

func TestAnswerToAnotherQuestion(t *testing.T) {
	ctx := context.Background()
	d := newApprovalSetup(t)
	txn, call := d.ask()
	d.life(asksForPivots, "v1", func(rt *agent.Runtime) {
		c, err := revert.Load(ctx, rt.Journal(), txn)
		require.NoError(t, err)
		forged := &record.Answered{Approved: true, By: "boss", Digest: "sha256:0000"}
		rec := revert.NewRecorder(rt.Journal(), d.host, c.Session)
		require.NoError(t, rec.Write(ctx, revert.Write{Records: []revert.CallRecord{{Txn: txn, Call: call, Body: forged}}, Durable: true}))
	})
	out := d.resume(asksForPivots, "v1", txn, call)
	require.Equal(t, tool.StatusDenied, out.Status)
	require.Contains(t, out.Error.Why, "another question")
	require.Zero(t, d.sent)
}

// TestOpenAgain: a transaction that its process left is found again with the
// session that it had: principal, grant, counts, savepoints.
func TestOpenAgain(t *testing.T) {
	ctx := context.Background()
	d := newApprovalSetup(t)
	txn, call := d.ask()
	require.NoError(t, d.answer(call, true, "boss"))
	d.life("package remit\nask contains \"x\" if input.principal.id == \"coder\"\n", "v1", func(rt *agent.Runtime) {
		tx, err := rt.ResumeTxn(ctx, txn)
		require.NoError(t, err)
		same, err := rt.ResumeTxn(ctx, txn)
		require.NoError(t, err)
		require.Same(t, tx, same)
		require.NoError(t, tx.Savepoint(ctx, "here"))
		out, err := tx.Invoke(ctx, "send", "more")
		require.ErrorIs(t, err, tool.ErrPending, "the same principal asks")
		require.NotEqual(t, call, out.Call)
		_, err = tx.Revert(ctx, revert.Options{})
		require.NoError(t, err)
		_, err = rt.ResumeTxn(ctx, txn)
		require.ErrorIs(t, err, journal.ErrNotOwner)
	})
	require.Zero(t, d.sent)

	t.Run("a grant does not grow", func(t *testing.T) {
		j := journal.Memory()
		rt := newRuntime(t, agent.Tools(d.send("v1")), agent.Policy(allowAll()), agent.Journal(j))
		tx := begin(t, newSession(t, rt, agent.Grant()))
		other := newRuntime(t, agent.Tools(d.send("v1")), agent.Policy(allowAll()), agent.Journal(j))
		_, err := other.ResumeTxn(ctx, tx.ID())
		require.ErrorIs(t, err, revert.ErrBusy, "its process lives")
		again, err := rt.ResumeTxn(ctx, tx.ID())
		require.NoError(t, err)
		_, err = again.Invoke(ctx, "send", "x")
		require.ErrorIs(t, err, tool.ErrDenied)
	})
}

// TestResumedWithoutItsTool: a program that does not have the tool cannot let a call
// go on, and leaves it waiting, with a journal that is whole.
func TestResumedWithoutItsTool(t *testing.T) {
	ctx, st := context.Background(), newStore()
	look, err := tool.Create("look", "", func(_ context.Context, in string) (string, error) { return in, nil }, tool.Pure())
	life := func(tools ...tool.Tool) (*agent.Runtime, func()) {
		j := st.open(nil)
		rt, err := agent.New(quiet(), agent.Tools(tools...), agent.Policy(asks(false)), agent.SuspendForApproval(), agent.Journal(j))
		require.NoError(t, err)
		return rt, func() { require.NoError(t, errors.Join(rt.Close(), j.Close())) }
	}
	rt, end := life(mustTool(t, look, err))
	tx := begin(t, newSession(t, rt))
	asked, _ := tx.Invoke(ctx, "look", "x")
	require.Equal(t, tool.StatusPending, asked.Status)
	end()
	for _, tools := range [][]tool.Tool{nil, {look}} {
		rt, end := life(tools...)
		if len(tools) == 0 {
			require.NoError(t, rt.Answer(ctx, agent.Answer{Call: asked.Call, Approved: true, By: "boss"}))
		}
		tx, err := rt.ResumeTxn(ctx, tx.ID())
		require.NoError(t, err)
		out, err := tx.Resume(ctx, asked.Call)
		if len(tools) == 0 {
			require.ErrorIs(t, err, tool.ErrInvalid)
			require.Contains(t, out.Error.Fix, "has the tool")
		} else {
			require.NoError(t, err)
		}
		fsckClean(t, rt)
		end()
	}
}
