package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// post is a service outside: nothing that it got comes back.
type post struct {
	mu    sync.Mutex // never held across a wait
	got   []sentMessage
	fails func(sentMessage) error // before it is got; nil: never
	lost  func(sentMessage) error // after it is got; nil: never
}

type sentMessage struct{ key, text string }

func (p *post) deliver(l sentMessage) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails != nil {
		if err := p.fails(l); err != nil {
			return err
		}
	}
	p.got = append(p.got, l)
	if p.lost != nil {
		return p.lost(l)
	}
	return nil
}

func (p *post) texts() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	texts := []string{}
	for _, l := range p.got {
		texts = append(texts, l.text)
	}
	return texts
}

// keys are how often each operation key arrived.
func (p *post) keys() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := map[string]int{}
	for _, l := range p.got {
		n[l.key]++
	}
	return n
}

// mail is a tool that delivers its input.
func (p *post) mail(t *testing.T, change ...func(*tool.Spec)) tool.Tool {
	s := tool.Spec{
		Name: "mail", Description: "Sends a mail.", EffectClass: effect.Deferrable,
		Execute: func(_ context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
			var text string
			if err := json.Unmarshal(in, &text); err != nil {
				return tool.Result{}, err
			}
			return tool.Text("sent " + text), p.deliver(sentMessage{tc.Call().Key, text})
		},
	}
	for _, c := range change {
		c(&s)
	}
	tl, err := tool.FromSpec(s)
	return mustTool(t, tl, err)
}

// holdAll holds what can be held, and allows the rest.
func holdAll() perm.Engine {
	return perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		effect, set := perm.Allow, "allow"
		if r.Call.EffectClass == "deferrable" || r.Call.EffectClass == "pivot" {
			effect, set = perm.Hold, "hold"
		}
		return perm.NewDecision(effect, perm.Details{Reasons: []perm.Reason{{Text: "so", Set: set}}}), nil
	})
}

func holds(t *testing.T, tx *agent.Txn, name string, input any) tool.Outcome {
	out, err := tx.Invoke(context.Background(), name, input)
	require.NoError(t, err)
	require.Equal(t, tool.StatusHeld, out.Status, "%+v", out)
	return out
}

func loadTxn(t *testing.T, rt *agent.Runtime, id string) *revert.Txn {
	txn, err := revert.Load(context.Background(), rt.Journal(), id)
	require.NoError(t, err)
	return txn
}

// TestHeldUntilCommit: a held call is told to be queued, does nothing until its
// transaction commits, and is released then in order, each under the key that it
// was held with.
func TestHeldUntilCommit(t *testing.T) {
	p := &post{}
	rt := newRuntime(t, agent.Tools(p.mail(t), p.mail(t, func(s *tool.Spec) { s.Name, s.EffectClass = "launch", effect.Pivot })), agent.Policy(holdAll()))
	s := newSession(t, rt)
	tx := begin(t, s)
	var ids []string
	for i, text := range []string{"one", "two", "three"} {
		out := holds(t, tx, []string{"mail", "launch", "mail"}[i], text)
		require.Nil(t, out.Error)
		require.Zero(t, out.ExitCode())
		require.True(t, out.Status.OK())
		require.Equal(t, "null", string(out.Output))
		require.Contains(t, out.Text, "Its result is not known yet")
		require.Equal(t, "hold", out.Decision.Effect)
		ids = append(ids, out.Call)
	}
	require.Empty(t, p.got)
	txn := loadTxn(t, rt, tx.ID())
	require.Equal(t, revert.TxnOpen, txn.State())
	queue := txn.HeldCalls()
	require.Len(t, queue, 3)
	require.Equal(t, revert.PhaseHeld, queue[0].Phase)
	require.Empty(t, txn.InFlight())
	require.Empty(t, tx.Released())

	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, []string{"one", "two", "three"}, p.texts())
	for i, out := range tx.Released() {
		require.Equal(t, ids[i], out.Call)
		require.Equal(t, tool.StatusDone, out.Status)
		require.Equal(t, "sent "+p.got[i].text, out.Text)
		require.Equal(t, "hold", out.Decision.Effect)
		require.Equal(t, queue[i].Held.Key, p.got[i].key)
	}
	txn = loadTxn(t, rt, tx.ID())
	require.Equal(t, revert.TxnCommitted, txn.State())
	require.Empty(t, txn.HeldCalls())
	for _, c := range txn.Calls {
		require.Equal(t, revert.PhaseDone, c.Phase)
		require.Equal(t, c.Held.Started, *c.Started, "it started as it was held")
	}
	require.ErrorIs(t, tx.Commit(t.Context()), agent.ErrTxnEnded)
	require.Len(t, p.got, 3)
	fsckClean(t, rt)

	// What was released has no way back, and the report says so of each.
	rep, err := s.Revert(t.Context(), tx.ID(), revert.Options{})
	require.ErrorIs(t, err, agent.ErrPartialRevert)
	require.Equal(t, revert.TxnRevertedPartial, rep.State)
	require.Len(t, rep.NotReverted(), 3)
	require.Contains(t, rep.NotReverted()[1].Why, "pivot call cannot be reverted")
	fsckClean(t, rt)
}

// TestWhatCannotBeHeld: a hold on what is no deferrable or pivot call is a denial,
// as is one that a running call meets.
func TestWhatCannotBeHeld(t *testing.T) {
	engine := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		if r.Tool.Name == "mail" && !r.Access.Dynamic {
			return perm.NewDecision(perm.Allow, perm.Details{}), nil
		}
		return perm.NewDecision(perm.Hold, perm.Details{}), nil
	})
	p := &post{}
	entered := false
	pure, err := tool.Create("look", "", func(context.Context, string) (string, error) { entered = true; return "", nil }, tool.Pure())
	asks := p.mail(t, func(s *tool.Spec) {
		s.Needs = anyWrite()
		s.Execute = func(ctx context.Context, tc ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
			_, err := ctxperm.Authorize(ctx, tc, perm.Access(perm.Write, "file://workspace/a.txt"))
			return tool.Result{}, err
		}
	})
	rt := newRuntime(t, agent.Tools(mustTool(t, pure, err), asks), agent.Policy(engine))
	tx := begin(t, newSession(t, rt))
	out, err := tx.Invoke(t.Context(), "look", "in")
	require.ErrorIs(t, err, tool.ErrDenied)
	require.Contains(t, out.Error.Why, "only deferrable and pivot calls can wait for it, this one is pure")
	require.False(t, entered)
	out, err = tx.Invoke(t.Context(), "mail", "in")
	require.Error(t, err)
	require.Contains(t, out.Error.Why, "a call that runs cannot wait for it")
	require.NoError(t, tx.Commit(t.Context()))
}

// TestReleasedCallMeetsItsHold: what a released call asks for while it runs is held
// by the same rule, and its commit has come.
func TestReleasedCallMeetsItsHold(t *testing.T) {
	ran := false
	p := &post{}
	asks := p.mail(t, func(s *tool.Spec) {
		s.Needs = anyWrite()
		s.Execute = func(ctx context.Context, tc ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
			permit, err := ctxperm.Authorize(ctx, tc, perm.Access(perm.Write, "file://workspace/a.txt"))
			if err == nil {
				ran = true
				permit.End()
			}
			return tool.Result{}, err
		}
	})
	rt := newRuntime(t, agent.Tools(asks), agent.Policy(holdAll()))
	tx := begin(t, newSession(t, rt))
	holds(t, tx, "mail", "in")
	require.NoError(t, tx.Commit(t.Context()))
	require.True(t, ran)
}

// TestRevertDropsHeldCalls: nothing of them has happened, so nothing is left.
func TestRevertDropsHeldCalls(t *testing.T) {
	p := &post{}
	dir := workspace(t)
	rt := filesOn(t, dir, agent.Tools(p.mail(t)), agent.Policy(holdAll()))
	before := tree(t, dir)
	s := newSession(t, rt)
	tx := begin(t, s)
	saves(t, tx, "new.txt", "x")
	one := holds(t, tx, "mail", "one")
	preview, err := s.Preview(t.Context(), tx.ID(), revert.Options{})
	require.NoError(t, err)
	require.Len(t, preview.Items, 2)
	require.Equal(t, one.Call, preview.Items[0].Call)
	require.Equal(t, effect.Already, preview.Items[0].Outcome)
	require.Equal(t, revert.ActionDrop, preview.Items[0].Action)
	require.Contains(t, preview.Items[0].Why, "never ran")
	rep, err := tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, revert.TxnReverted, rep.State)
	require.Equal(t, preview.Items[0], rep.Items[0])
	require.Equal(t, before, tree(t, dir))
	require.Empty(t, p.got)
	c, ok := loadTxn(t, rt, tx.ID()).Call(one.Call)
	require.True(t, ok)
	require.Equal(t, revert.PhaseDropped, c.Phase)
	require.Equal(t, record.Dropped{Cause: "abort", By: "coder"}, *c.Dropped)
	fsckClean(t, rt)
}

// TestSavepointDropsWhatCameAfter, and nothing else; one call alone can be dropped
// by its id, and a nested transaction that stays hands what it holds on.
func TestSavepointDropsWhatCameAfter(t *testing.T) {
	p := &post{}
	rt := newRuntime(t, agent.Tools(p.mail(t)), agent.Policy(holdAll()))
	s := newSession(t, rt)
	tx := begin(t, s)
	holds(t, tx, "mail", "before")
	require.NoError(t, tx.Savepoint(t.Context(), "here"))
	holds(t, tx, "mail", "after")
	_, err := tx.RevertTo(t.Context(), "here")
	require.NoError(t, err)
	single := holds(t, tx, "mail", "single")
	stays, goes := nest(t, tx, s), nest(t, tx, s)
	holds(t, stays, "mail", "stays")
	holds(t, goes, "mail", "goes")
	deep := nest(t, goes, s)
	holds(t, deep, "mail", "deep")
	require.NoError(t, deep.Commit(t.Context()))
	require.NoError(t, stays.Commit(t.Context()))
	rep, err := goes.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	require.Len(t, rep.Items, 2)
	rep, err = s.Revert(t.Context(), single.Call, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, effect.Already, rep.Items[0].Outcome)
	holds(t, tx, "mail", "last")
	require.Empty(t, p.got)
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, []string{"before", "stays", "last"}, p.texts())
	causes := map[string]int{}
	for _, c := range loadTxn(t, rt, tx.ID()).Calls {
		if c.Dropped != nil {
			causes[c.Dropped.Cause]++
		}
	}
	require.Equal(t, map[string]int{"savepoint": 1, "nest": 2, "revert": 1}, causes)
	fsckClean(t, rt)
}

// TestReleaseThatFails: the commit stops there, takes no other call, and goes on
// from there; nothing is sent twice, and nothing is lost.
func TestReleaseThatFails(t *testing.T) {
	down := true
	p := &post{fails: func(l sentMessage) error {
		if l.text == "two" && down {
			return tool.NoEffect(errors.New("the server is down"))
		}
		return nil
	}}
	rt := newRuntime(t, agent.Tools(p.mail(t)), agent.Policy(holdAll()))
	s := newSession(t, rt)
	tx := begin(t, s)
	for _, text := range []string{"one", "two", "three"} {
		holds(t, tx, "mail", text)
	}
	err := tx.Commit(t.Context())
	require.ErrorIs(t, err, agent.ErrNotReleased)
	require.ErrorIs(t, err, tool.ErrFailed)
	require.Equal(t, []string{"one"}, p.texts())
	out := tx.Released()[1]
	require.Equal(t, tool.StatusFailed, out.Status)
	require.Contains(t, out.Error.Why, "the server is down")
	require.Contains(t, out.Error.Fix, "or revert the call, which takes it out of the queue")
	txn := loadTxn(t, rt, tx.ID())
	require.Equal(t, revert.TxnOpen, txn.State())
	require.True(t, txn.Committing)
	require.Len(t, txn.HeldCalls(), 2)
	fsckClean(t, rt)

	_, err = tx.Invoke(t.Context(), "mail", "four")
	require.ErrorIs(t, err, agent.ErrNotReleased)
	require.ErrorIs(t, tx.Savepoint(t.Context(), "x"), agent.ErrNotReleased)
	_, err = tx.BeginNested(t.Context(), s)
	require.Error(t, err)

	require.ErrorIs(t, tx.Commit(t.Context()), tool.ErrFailed, "it is tried again")
	down = false
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, []string{"one", "two", "three"}, p.texts())
	for key, n := range p.keys() {
		require.Equal(t, 1, n, key)
	}
	require.Equal(t, revert.TxnCommitted, loadTxn(t, rt, tx.ID()).State())
	fsckClean(t, rt)
}

// TestGivingUpOnARelease: the call that is in the way can be taken out of the
// queue, and all of it can be reverted: what was sent is listed, the rest is not
// sent.
func TestGivingUpOnARelease(t *testing.T) {
	for _, whole := range []bool{true, false} {
		p := &post{fails: func(l sentMessage) error {
			if l.text == "two" {
				return tool.NoEffect(errors.New("refused"))
			}
			return nil
		}}
		dir := workspace(t)
		rt := filesOn(t, dir, agent.Tools(p.mail(t)), agent.Policy(holdAll()))
		before := tree(t, dir)
		s := newSession(t, rt)
		tx := begin(t, s)
		saves(t, tx, "new.txt", "x")
		sent, stuck := holds(t, tx, "mail", "one"), holds(t, tx, "mail", "two")
		holds(t, tx, "mail", "three")
		require.ErrorIs(t, tx.Commit(t.Context()), agent.ErrNotReleased)
		if whole {
			rep, err := tx.Revert(t.Context(), revert.Options{})
			require.ErrorIs(t, err, agent.ErrPartialRevert)
			require.Equal(t, revert.TxnRevertedPartial, rep.State)
			require.Len(t, rep.NotReverted(), 1)
			require.Equal(t, sent.Call, rep.NotReverted()[0].Call)
			require.Equal(t, before, tree(t, dir))
			require.Equal(t, []string{"one"}, p.texts())
		} else {
			rep, err := s.Revert(t.Context(), stuck.Call, revert.Options{})
			require.NoError(t, err)
			require.Contains(t, rep.Items[0].Why, "has had no effect")
			require.NoError(t, tx.Commit(t.Context()))
			require.Equal(t, []string{"one", "three"}, p.texts())
		}
		fsckClean(t, rt)
	}
}

// TestUnknownRelease is not sent again: the commit stops at it, and passes over it
// when it is told to go on. Where the tool says that a key has one effect, it goes
// out again under the same key.
func TestUnknownRelease(t *testing.T) {
	for _, idempotent := range []bool{false, true} {
		lost := true
		p := &post{lost: func(l sentMessage) error {
			if l.text == "two" && lost {
				return errors.New("the connection broke")
			}
			return nil
		}}
		rt := newRuntime(t, agent.Tools(p.mail(t, func(s *tool.Spec) { s.Hints.Idempotent = idempotent })), agent.Policy(holdAll()))
		tx := begin(t, newSession(t, rt))
		for _, text := range []string{"one", "two", "three"} {
			holds(t, tx, "mail", text)
		}
		err := tx.Commit(t.Context())
		require.ErrorIs(t, err, agent.ErrNotReleased)
		require.ErrorIs(t, err, tool.ErrUnknown)
		require.Equal(t, []string{"one", "two"}, p.texts())
		if idempotent {
			p.fails = func(sentMessage) error { return tool.NoEffect(errors.New("nobody is there")) }
			require.ErrorIs(t, tx.Commit(t.Context()), tool.ErrUnknown, "that this attempt had no effect says nothing of the first")
			p.fails = nil
		}
		lost = false
		require.NoError(t, tx.Commit(t.Context()))
		txn := loadTxn(t, rt, tx.ID())
		require.Equal(t, revert.TxnCommitted, txn.State())
		if idempotent {
			require.Equal(t, []string{"one", "two", "two", "three"}, p.texts())
			require.Len(t, p.keys(), 3, "the same key again")
			require.Equal(t, revert.PhaseDone, txn.Calls[1].Phase)
		} else {
			require.Equal(t, []string{"one", "two", "three"}, p.texts())
			require.Equal(t, revert.PhaseUnknown, txn.Calls[1].Phase)
		}
		fsckClean(t, rt)
	}
}

// TestSettledRelease: a person says what became of a release, and the commit goes
// on by that.
func TestSettledRelease(t *testing.T) {
	for _, applied := range []bool{true, false} {
		broken := true
		p := &post{lost: func(sentMessage) error {
			if broken {
				return errors.New("the connection broke")
			}
			return nil
		}}
		rt := newRuntime(t, agent.Tools(p.mail(t)), agent.Policy(holdAll()))
		tx := begin(t, newSession(t, rt))
		out := holds(t, tx, "mail", "one")
		require.ErrorIs(t, tx.Commit(t.Context()), tool.ErrUnknown)
		require.NoError(t, rt.ResolveUnknown(t.Context(), out.Call, record.Decided{Applied: applied, By: "boss", Why: "looked"}))
		broken = false
		require.NoError(t, tx.Commit(t.Context()))
		require.Len(t, p.got, map[bool]int{true: 1, false: 2}[applied])
		require.Equal(t, revert.PhaseDone, loadTxn(t, rt, tx.ID()).Calls[0].Phase)
		fsckClean(t, rt)
	}
}

// TestUpdateWithHeldCalls checks that Update commits or reverts. If a call was
// already released, Update leaves the transaction open for the caller.
func TestUpdateWithHeldCalls(t *testing.T) {
	for name, bad := range map[string]string{"none": "", "first": "one", "second": "two"} {
		t.Run(name, func(t *testing.T) {
			p := &post{fails: func(l sentMessage) error {
				if l.text == bad {
					return tool.NoEffect(errors.New("refused"))
				}
				return nil
			}}
			dir := workspace(t)
			before := tree(t, dir)
			rt := filesOn(t, dir, agent.Tools(p.mail(t)), agent.Policy(holdAll()))
			s := newSession(t, rt)
			id, err := s.Update(t.Context(), func(tx *agent.Txn) error {
				saves(t, tx, "new.txt", "x")
				holds(t, tx, "mail", "one")
				holds(t, tx, "mail", "two")
				return nil
			})
			txn := loadTxn(t, rt, id)
			switch name {
			case "none":
				require.NoError(t, err)
				require.Equal(t, revert.TxnCommitted, txn.State())
			case "first":
				require.ErrorIs(t, err, agent.ErrNotReleased)
				require.Equal(t, revert.TxnReverted, txn.State())
				require.Equal(t, before, tree(t, dir))
				require.Empty(t, p.got)
			case "second":
				require.ErrorIs(t, err, agent.ErrNotReleased)
				require.Equal(t, revert.TxnOpen, txn.State())
				bad = ""
				tx, err := rt.ResumeTxn(t.Context(), id)
				require.NoError(t, err)
				require.NoError(t, tx.Commit(t.Context()))
				require.Equal(t, []string{"one", "two"}, p.texts())
			}
			fsckClean(t, rt)
		})
	}
}

// TestAskAndHoldCompose checks that the runtime holds a call after an approver
// approved it. The journal keeps the approval with the held call.
func TestAskAndHoldCompose(t *testing.T) {
	engine := perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Ask, perm.Details{Reasons: []perm.Reason{{Text: "look", Set: "ask"}, {Text: "later", Set: "hold"}}}), nil
	})
	for _, waits := range []bool{false, true} {
		p := &post{}
		opt := approver(ctxperm.Approve("boss"), nil)
		if waits {
			opt = agent.SuspendForApproval()
		}
		rt := newRuntime(t, agent.Tools(p.mail(t)), agent.Policy(engine), opt)
		tx := begin(t, newSession(t, rt))
		out, err := tx.Invoke(t.Context(), "mail", "one")
		if waits {
			require.ErrorIs(t, err, tool.ErrPending)
			require.NoError(t, rt.Answer(t.Context(), agent.Answer{Call: out.Call, Approved: true, By: "boss", Why: "fine"}))
			out, err = tx.Resume(t.Context(), out.Call)
		}
		require.NoError(t, err)
		require.Equal(t, tool.StatusHeld, out.Status)
		require.Empty(t, p.got)
		queue := loadTxn(t, rt, tx.ID()).HeldCalls()
		require.Len(t, queue, 1)
		require.Equal(t, "boss", queue[0].Held.Approval.By)
		require.NoError(t, tx.Commit(t.Context()))
		require.Equal(t, []string{"one"}, p.texts())
		fsckClean(t, rt)
	}
}

// TestHoldOfOneAccessHoldsTheCall, also where another access is asked about or
// allowed.
func TestHoldOfOneAccessHoldsTheCall(t *testing.T) {
	p := &post{}
	engine := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		effect := map[string]perm.Effect{"a": perm.Allow, "b": perm.Hold, "c": perm.Ask}[r.Access.Resource.Path]
		return perm.NewDecision(effect, perm.Details{Reasons: []perm.Reason{{Text: effect.String()}}}), nil
	})
	mail := p.mail(t, func(s *tool.Spec) {
		for _, name := range []string{"a", "b", "c"} {
			s.Needs = append(s.Needs, perm.Access(perm.Write, "file://workspace/"+name))
		}
	})
	rt := newRuntime(t, agent.Tools(mail), agent.Policy(engine), approver(ctxperm.Approve("boss"), nil))
	tx := begin(t, newSession(t, rt))
	out := holds(t, tx, "mail", "one")
	require.Equal(t, "ask", out.Decision.Effect)
	require.True(t, slices.ContainsFunc(out.Decision.Reasons, func(r perm.Reason) bool { return r.Set == "hold" && r.Text == "hold" }), "%+v", out.Decision)
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, []string{"one"}, p.texts())
}
