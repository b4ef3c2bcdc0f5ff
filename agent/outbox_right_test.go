package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// branch is an office whose mail is held.
func branch(t *testing.T, p *post) *office {
	o := newOffice(t, p.mail(t))
	o.engine = holdAll()
	return o
}

// TestReleaseUnderAGrantThatEnded: revoked, or expired, it lets nothing leave that
// was held under it; the call stays in the queue, and the record says why.
func TestReleaseUnderAGrantThatEnded(t *testing.T) {
	p := &post{}
	o := branch(t, p)
	rt, _ := o.open()
	root := newSession(t, rt)
	child := hand(t, root)
	tx := begin(t, root)
	in := nest(t, tx, child)
	out := holds(t, in, "mail", "one")
	require.NoError(t, in.Commit(t.Context()))
	require.NoError(t, rt.Revoke(t.Context(), child.ID(), "boss", "enough"))
	err := tx.Commit(t.Context())
	require.ErrorIs(t, err, agent.ErrNotReleased)
	require.ErrorIs(t, err, tool.ErrDenied)
	require.Empty(t, p.got)
	got := tx.Released()[0]
	require.Equal(t, tool.StatusDenied, got.Status)
	require.Equal(t, "grant", got.Stage)
	require.Contains(t, got.Error.Why, "was revoked by boss: enough")
	require.Equal(t, 3, got.ExitCode())
	c, _ := loadTxn(t, rt, tx.ID()).Call(out.Call)
	require.Equal(t, "not_started", c.Failed.Proof)
	require.Equal(t, child.ID(), c.Session)
	require.True(t, c.IsHeld())
	rep, err := tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	require.True(t, rep.Complete())
	fsckClean(t, rt)
}

// TestHeldCallsOfAnotherSession are released under the principal and the grant of
// the session that made them.
func TestHeldCallsOfAnotherSession(t *testing.T) {
	var who []string
	p := &post{}
	mail := p.mail(t, func(s *tool.Spec) {
		s.Execute = func(_ context.Context, tc ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
			who = append(who, tc.Call().Principal.ID)
			return tool.Text("sent"), nil
		}
	})
	o := newOffice(t, mail)
	o.engine = holdAll()
	rt, end := o.open()
	root := newSession(t, rt)
	tx := begin(t, root)
	holds(t, tx, "mail", "one")
	in := nest(t, tx, hand(t, root))
	holds(t, in, "mail", "two")
	require.NoError(t, in.Commit(t.Context()))
	holds(t, tx, "mail", "three")
	id := tx.ID()
	end()
	rt, _ = o.open() // in another process
	tx, err := rt.ResumeTxn(t.Context(), id)
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, []string{"coder", "helper", "coder"}, who)
	fsckClean(t, rt)
}

// TestUsesAreTakenWhenHeld: what is held has its use of the grant, also when it is
// tried twice, and in another process.
func TestUsesAreTakenWhenHeld(t *testing.T) {
	down := true
	p := &post{fails: func(sentMessage) error {
		if down {
			return tool.NoEffect(errors.New("down"))
		}
		return nil
	}}
	o := branch(t, p)
	rt, end := o.open()
	child := hand(t, newSession(t, rt), agent.MaxUses(2))
	tx := begin(t, child)
	holds(t, tx, "mail", "one")
	holds(t, tx, "mail", "two")
	_, err := tx.Invoke(t.Context(), "mail", "three")
	require.ErrorIs(t, err, tool.ErrDenied)
	require.ErrorContains(t, err, "is used up")
	require.ErrorIs(t, tx.Commit(t.Context()), tool.ErrFailed)
	id, token := tx.ID(), child.Token()
	end()
	rt, _ = o.open()
	tx, err = rt.ResumeTxn(t.Context(), id)
	require.NoError(t, err)
	down = false
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, []string{"one", "two"}, p.texts())
	again, err := rt.ResumeSession(t.Context(), token)
	require.NoError(t, err)
	_, err = begin(t, again).Invoke(t.Context(), "mail", "four")
	require.ErrorContains(t, err, "is used up")
}

// TestReleaseByAnotherTool: a tool whose declaration changed, that is gone, or that
// would touch something else, was not decided about.
func TestReleaseByAnotherTool(t *testing.T) {
	elsewhere := false
	p := &post{}
	moves := func(s *tool.Spec) {
		s.Needs = anyWrite()
		s.AccessFor = func(json.RawMessage) ([]perm.ResourceAccess, error) {
			name := "a"
			if elsewhere {
				name = "b"
			}
			return []perm.ResourceAccess{perm.Access(perm.Write, "file://workspace/"+name)}, nil
		}
	}
	stubborn := func(s *tool.Spec) {
		moves(s)
		s.AccessFor = func(json.RawMessage) ([]perm.ResourceAccess, error) {
			if elsewhere {
				return nil, errors.New("not today")
			}
			return []perm.ResourceAccess{perm.Access(perm.Write, "file://workspace/a")}, nil
		}
	}
	for name, tt := range map[string]struct {
		first, later func(*tool.Spec)
		gone         bool
		says         string
	}{
		"changed":   {func(*tool.Spec) {}, func(s *tool.Spec) { s.Description = "Sends another mail." }, false, "is not the one that was decided about"},
		"gone":      {func(*tool.Spec) {}, func(*tool.Spec) {}, true, "there is no tool mail here"},
		"elsewhere": {moves, moves, false, "would touch something else than what was decided about"},
		"refuses":   {stubborn, stubborn, false, "not today"},
	} {
		t.Run(name, func(t *testing.T) {
			elsewhere = false
			o := newOffice(t, p.mail(t, tt.first))
			o.engine = holdAll()
			rt, end := o.open()
			tx := begin(t, newSession(t, rt))
			held := holds(t, tx, "mail", "one")
			end()
			elsewhere = true
			o.tools = []tool.Tool{p.mail(t, tt.later)}
			if tt.gone {
				o.tools = nil
			}
			rt, end = o.open()
			again, err := rt.ResumeTxn(t.Context(), tx.ID())
			require.NoError(t, err)
			err = again.Commit(t.Context())
			require.ErrorIs(t, err, agent.ErrNotReleased)
			require.ErrorIs(t, err, tool.ErrFailed)
			require.ErrorContains(t, err, tt.says)
			require.Contains(t, again.Released()[0].Text, "still queued")
			require.Empty(t, p.got)
			require.Len(t, loadTxn(t, rt, tx.ID()).HeldCalls(), 1)
			end()
			elsewhere = false
			o.tools = []tool.Tool{p.mail(t, tt.first)}
			rt, _ = o.open()
			again, err = rt.ResumeTxn(t.Context(), tx.ID())
			require.NoError(t, err)
			require.NoError(t, again.Commit(t.Context()), "by the tool that it was")
			require.Equal(t, held.Call, again.Released()[0].Call)
			require.Equal(t, []string{"one"}, p.texts())
			p.got = nil
			fsckClean(t, rt)
		})
	}
}

// TestDoubtfulReleaseByAnotherTool: that it cannot be sent again says nothing of
// whether it was sent.
func TestDoubtfulReleaseByAnotherTool(t *testing.T) {
	p := &post{lost: func(sentMessage) error { return errors.New("the connection broke") }}
	keyed := func(s *tool.Spec) { s.Hints.Idempotent = true }
	o := newOffice(t, p.mail(t, keyed))
	o.engine = holdAll()
	rt, end := o.open()
	tx := begin(t, newSession(t, rt))
	holds(t, tx, "mail", "one")
	require.ErrorIs(t, tx.Commit(t.Context()), tool.ErrUnknown)
	end()
	o.tools = nil
	rt, _ = o.open()
	again, err := rt.ResumeTxn(t.Context(), tx.ID())
	require.NoError(t, err)
	require.ErrorIs(t, again.Commit(t.Context()), tool.ErrUnknown)
	require.Equal(t, revert.PhaseUnknown, loadTxn(t, rt, tx.ID()).Calls[0].Phase)
	rep, err := again.Revert(t.Context(), revert.Options{})
	require.ErrorIs(t, err, agent.ErrPartialRevert)
	require.Len(t, rep.Items, 1)
	require.Equal(t, effect.Unknown, rep.Items[0].Outcome)
	fsckClean(t, rt)
}

// TestPolicyIsNotAskedAgain: it decided when the call was held, by what was known
// then; what a released call asks for while it runs is asked as ever.
func TestPolicyIsNotAskedAgain(t *testing.T) {
	p := &post{}
	o := branch(t, p)
	rt, end := o.open()
	tx := begin(t, newSession(t, rt))
	holds(t, tx, "mail", "one")
	end()
	o.engine = perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		require.Equal(t, perm.PurposeVerify, r.Purpose, "its postconditions are looked at when it has run")
		return perm.NewDecision(perm.Allow, perm.Details{}), nil
	})
	rt, _ = o.open()
	again, err := rt.ResumeTxn(t.Context(), tx.ID())
	require.NoError(t, err)
	require.NoError(t, again.Commit(t.Context()))
	require.Equal(t, []string{"one"}, p.texts())
}

// TestTermsOfAHeldCall: what the policy attached to the right that it gave is there
// when the call runs, also in another process.
func TestTermsOfAHeldCall(t *testing.T) {
	var got callstate.Obligations
	p := &post{}
	mail := p.mail(t, func(s *tool.Spec) {
		s.Verify = func(context.Context, verify.Subject) verify.Verdict { return verify.Applied() }
		s.Execute = func(_ context.Context, tc ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
			got = callOf(tc).Terms()
			return tool.Text("sent"), nil
		}
	})
	o := newOffice(t, mail)
	o.engine = perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Hold, perm.Details{Masks: []string{"file://workspace/.env"}, Requires: []perm.Reason{{Text: "verify"}}}), nil
	})
	rt, end := o.open()
	tx := begin(t, newSession(t, rt))
	holds(t, tx, "mail", "one")
	end()
	rt, _ = o.open()
	again, err := rt.ResumeTxn(t.Context(), tx.ID())
	require.NoError(t, err)
	require.NoError(t, again.Commit(t.Context()))
	require.Equal(t, callstate.Obligations{Masks: []string{"file://workspace/.env"}, Requires: []string{"verify"}}, got)
}

// TestRedactedCallsCannotBeHeld: what is not kept cannot be sent later. What is
// redacted of an output is hidden as ever.
func TestRedactedCallsCannotBeHeld(t *testing.T) {
	const text = `package remit
hold contains "later" if true
redact contains "/args" if input.call.args == "secret"
redact contains "/output" if input.call.args == "whisper"
`
	e, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": text}})
	require.NoError(t, err)
	p := &post{}
	rt := newRuntime(t, agent.Tools(p.mail(t)), agent.Policy(e))
	tx := begin(t, newSession(t, rt))
	out, err := tx.Invoke(t.Context(), "mail", "secret")
	require.ErrorIs(t, err, tool.ErrDenied)
	require.Contains(t, out.Error.Why, "cannot be kept until its transaction commits")
	held := holds(t, tx, "mail", "whisper")
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, "(hidden)", tx.Released()[0].Text)
	c, _ := loadTxn(t, rt, tx.ID()).Call(held.Call)
	require.NotContains(t, string(c.Done.Output), "whisper")
	require.Equal(t, []string{"whisper"}, p.texts())
}

// TestHeldCallsByTheirID: the host asks again with its own id, and is told how the
// call stands.
func TestHeldCallsByTheirID(t *testing.T) {
	bad := errors.New("the connection broke")
	p := &post{lost: func(l sentMessage) error {
		if l.text == "lost" {
			return bad
		}
		return nil
	}}
	rt := newRuntime(t, agent.Tools(p.mail(t, func(s *tool.Spec) { s.Hints.Idempotent = true })), agent.Policy(holdAll()))
	s := newSession(t, rt)
	tx := begin(t, s)
	ask := func(tx *agent.Txn, id, text string) tool.Outcome {
		out, _ := tx.Invoke(t.Context(), "mail", text, agent.WithCallID(id))
		return out
	}
	first := ask(tx, "sent", "sent")
	require.Equal(t, tool.StatusHeld, first.Status)
	again := ask(tx, "sent", "sent")
	require.Equal(t, first.Call, again.Call)
	require.Equal(t, tool.StatusHeld, again.Status)
	require.Equal(t, effect.Deferrable, again.EffectClass)
	require.Equal(t, "hold", again.Decision.Effect)
	require.Equal(t, tool.StatusInvalid, ask(tx, "sent", "another").Status)
	dropped := ask(tx, "dropped", "dropped")
	_, err := s.Revert(t.Context(), dropped.Call, revert.Options{})
	require.NoError(t, err)
	ask(tx, "lost", "lost")
	require.ErrorIs(t, tx.Commit(t.Context()), tool.ErrUnknown)
	next := begin(t, s)
	require.Equal(t, tool.StatusDone, ask(next, "sent", "sent").Status)
	require.Equal(t, tool.StatusUnknown, ask(next, "lost", "lost").Status)
	gone := ask(next, "dropped", "dropped")
	require.Equal(t, tool.StatusCancelled, gone.Status)
	require.Equal(t, "it was reverted itself by coder", gone.Error.Why)
	bad = nil
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, tool.StatusDone, ask(next, "lost", "lost").Status)
	require.Equal(t, []string{"sent", "lost", "lost"}, p.texts(), "asking sends nothing")
}

// TestHeldCallThatCouldNotBeStarted, by its id.
func TestHeldCallThatCouldNotBeStarted(t *testing.T) {
	p := &post{}
	o := branch(t, p)
	rt, _ := o.open()
	root := newSession(t, rt)
	child := hand(t, root)
	tx := begin(t, child)
	out, err := tx.Invoke(t.Context(), "mail", "one", agent.WithCallID("x"))
	require.NoError(t, err)
	require.NoError(t, rt.Revoke(t.Context(), child.ID(), "boss", "enough"))
	require.ErrorIs(t, tx.Commit(t.Context()), tool.ErrDenied)
	rep, err := rt.Revert(t.Context(), out.Call, revert.Options{})
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.NoError(t, tx.Commit(t.Context()), "nothing is left to release")
	require.Empty(t, p.got)
	fsckClean(t, rt)
}

// TestTwoWhoCommit checks that no other process can commit while the owner
// lives. Only one of two processes can take over the transaction. A second
// commit of the same process fails.
func TestTwoWhoCommit(t *testing.T) {
	ctx := context.Background()
	p := &post{}
	o := branch(t, p)
	rt, end := o.open()
	tx := begin(t, newSession(t, rt))
	holds(t, tx, "mail", "one")
	other, _ := o.open()
	_, err := other.ResumeTxn(ctx, tx.ID())
	require.ErrorIs(t, err, revert.ErrBusy)
	end()
	third, _ := o.open()
	one, err := other.ResumeTxn(ctx, tx.ID())
	require.NoError(t, err)
	_, err = third.ResumeTxn(ctx, tx.ID())
	require.ErrorIs(t, err, revert.ErrBusy)
	require.NoError(t, one.Commit(ctx))
	require.ErrorIs(t, one.Commit(ctx), agent.ErrTxnEnded)
	require.Equal(t, []string{"one"}, p.texts())
}

// TestAbandonedCommits: what a dead process had decided to commit is not reverted
// by itself; what it only held is.
func TestAbandonedCommits(t *testing.T) {
	ctx := context.Background()
	p := &post{fails: func(sentMessage) error { return tool.NoEffect(errors.New("down")) }}
	o := branch(t, p)
	rt, end := o.open()
	s := newSession(t, rt)
	decided, held := begin(t, s), begin(t, s)
	holds(t, decided, "mail", "one")
	holds(t, held, "mail", "two")
	require.ErrorIs(t, decided.Commit(ctx), tool.ErrFailed)
	end()
	j, err := sqlite.Open(ctx, o.state)
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close()) }()
	rt = newRuntime(t, agent.Journal(j), agent.Policy(holdAll()), agent.Tools(o.tools...), agent.Root("workspace", o.dir), agent.OnAbandoned(agent.RevertAbandoned))
	rec, err := rt.Recover(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{decided.ID()}, rec.Committing)
	require.Len(t, rec.Reverted, 1)
	require.Equal(t, held.ID(), rec.Reverted[0].Txn)
	require.Equal(t, revert.TxnOpen, loadTxn(t, rt, decided.ID()).State())
}

// TestHeldRecordThatIsMissing: where the journal could not take it, the call is not
// queued, and its transaction can only be reverted: it may be there all the same.
func TestHeldRecordThatIsMissing(t *testing.T) {
	for _, tt := range []struct {
		kind record.Kind
		n    int
	}{{record.KindHeld, 1}, {record.KindCommitting, 1}, {record.KindStarted, 1}, {record.KindDone, 1}, {record.KindVerified, 1}, {record.KindCommitted, 1}} {
		t.Run(string(tt.kind), func(t *testing.T) {
			p := &post{}
			fails, failed := nth(tt.n, false, ofKind(tt.kind))
			mail := p.mail(t, func(s *tool.Spec) {
				s.Verify = func(context.Context, verify.Subject) verify.Verdict { return verify.Applied() }
			})
			st := newStore()
			j := st.open(fails)
			rt := newRuntime(t, agent.Tools(mail), agent.Policy(holdAll()), agent.Journal(j))
			tx := begin(t, newSession(t, rt))
			out, err := tx.Invoke(t.Context(), "mail", "one")
			if tt.kind == record.KindHeld {
				require.Equal(t, tool.StatusFailed, out.Status)
				require.ErrorIs(t, tx.Commit(t.Context()), agent.ErrTxnEnded)
				return
			}
			require.NoError(t, err)
			err = tx.Commit(t.Context())
			require.Error(t, err)
			require.True(t, failed())
			switch tt.kind {
			case record.KindCommitting, record.KindCommitted:
				_, err = tx.Invoke(t.Context(), "mail", "two")
				require.ErrorIs(t, err, agent.ErrNotReleased)
				require.NoError(t, tx.Commit(t.Context()))
				require.Equal(t, []string{"one"}, p.texts())
			default: // the journal is behind the world
				require.ErrorIs(t, tx.Commit(t.Context()), agent.ErrTxnEnded)
				require.Len(t, p.got, map[record.Kind]int{record.KindDone: 1, record.KindVerified: 1}[tt.kind])
			}
			require.NoError(t, j.Close())
			next := newRuntime(t, agent.Tools(mail), agent.Policy(holdAll()), agent.Journal(st.open(nil)))
			_, err = next.Recover(t.Context())
			require.NoError(t, err)
			fsckClean(t, next)
		})
	}
}

// TestCommitThatIsGivenUp: between two releases its caller may go away; the one that
// has begun is not given up.
func TestCommitThatIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := &post{}
	mail := p.mail(t, func(s *tool.Spec) {
		s.Execute = func(ctx context.Context, tc ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
			cancel()
			return tool.Text("sent"), errors.Join(ctx.Err(), p.deliver(sentMessage{tc.Call().Key, "x"}))
		}
	})
	rt := newRuntime(t, agent.Tools(mail), agent.Policy(holdAll()))
	tx := begin(t, newSession(t, rt))
	holds(t, tx, "mail", "one")
	holds(t, tx, "mail", "two")
	err := tx.Commit(ctx)
	require.ErrorIs(t, err, agent.ErrNotReleased)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, p.got, 1)
	require.NoError(t, tx.Commit(t.Context()))
	require.Len(t, p.got, 2)
}

// TestReleaseThatDoesNotVerify was sent: the commit stops at it, and passes over it.
func TestReleaseThatDoesNotVerify(t *testing.T) {
	p := &post{}
	mail := p.mail(t, func(s *tool.Spec) {
		s.Verify = func(context.Context, verify.Subject) verify.Verdict { return verify.Partial("half of it") }
	})
	rt := newRuntime(t, agent.Tools(mail), agent.Policy(holdAll()))
	tx := begin(t, newSession(t, rt))
	holds(t, tx, "mail", "one")
	require.ErrorIs(t, tx.Commit(t.Context()), tool.ErrVerifyFailed)
	require.Equal(t, 6, tx.Released()[0].ExitCode())
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, []string{"one"}, p.texts())
	fsckClean(t, rt)
}
