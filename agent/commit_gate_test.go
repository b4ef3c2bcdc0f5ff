package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// gateEngine decides commits by a function, and allows every call.
type gateEngine struct {
	commit func(perm.Request) (perm.Effect, error)
	seen   *[]perm.Request
}

func (gateEngine) DecidesCommits() bool { return true }

func (g gateEngine) Decide(_ context.Context, r perm.Request) (perm.Decision, error) {
	if r.Purpose != perm.PurposeCommit {
		return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "calls run"}}}), nil
	}
	if g.seen != nil {
		*g.seen = append(*g.seen, r)
	}
	effect, err := g.commit(r)
	return perm.NewDecision(effect, perm.Details{Reasons: []perm.Reason{{Text: "so"}}}), err
}

// TestCommitUndecided leaves the transaction open: a policy that fails has refused nothing.
func TestCommitUndecided(t *testing.T) {
	fail := error(perm.ErrTimeout)
	effect := perm.Allow
	engine := gateEngine{commit: func(perm.Request) (perm.Effect, error) { return effect, fail }}
	rt, dir := gatedRuntime(t, oneLook, agent.Policy(engine))
	s := newSession(t, rt)
	tx := begin(t, s)
	saves(t, tx, "a", "new\n")
	var gate *agent.CommitError
	err := tx.Commit(t.Context())
	require.ErrorAs(t, err, &gate)
	require.ErrorIs(t, err, perm.ErrTimeout)
	require.NotErrorIs(t, err, tool.ErrDenied)
	require.NotErrorIs(t, err, tool.ErrPending)
	require.Equal(t, "new\n", contentOf(t, dir, "a"))
	effect, fail = perm.Hold, nil // only calls can be held
	require.ErrorAs(t, tx.Commit(t.Context()), &gate)
	require.Equal(t, revert.TxnOpen, loadTxn(t, rt, tx.ID()).State())
	effect = perm.Allow
	require.NoError(t, tx.Commit(t.Context()))

	effect, fail = perm.Deny, errors.New("broken")
	id, err := s.Update(t.Context(), func(tx *agent.Txn) error {
		saves(t, tx, "b", "new\n")
		return nil
	})
	require.ErrorAs(t, err, &gate)
	require.Equal(t, revert.TxnOpen, loadTxn(t, rt, id).State())
	require.Equal(t, "new\n", contentOf(t, dir, "b"))
	left, err := rt.ResumeTxn(t.Context(), id)
	require.NoError(t, err)
	fail = nil
	require.ErrorIs(t, left.Commit(t.Context()), tool.ErrDenied)
	require.Equal(t, "two\n", contentOf(t, dir, "b"))
}

// TestUpdateAndCallAtTheGate checks how Update and Call end.
func TestUpdateAndCallAtTheGate(t *testing.T) {
	effect := perm.Ask
	rt, dir := gatedRuntime(t, oneLook, agent.Policy(gateEngine{commit: func(perm.Request) (perm.Effect, error) { return effect, nil }}))
	s := newSession(t, rt)
	id, err := s.Update(t.Context(), func(tx *agent.Txn) error {
		saves(t, tx, "a", "new\n")
		return nil
	})
	var gate *agent.CommitError
	require.ErrorAs(t, err, &gate)
	require.ErrorIs(t, err, tool.ErrPending)
	approveCommit(t, rt, gate)
	tx, err := s.ResumeTxn(t.Context(), id)
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))

	effect = perm.Deny
	_, err = s.Update(t.Context(), func(tx *agent.Txn) error {
		saves(t, tx, "b", "new\n")
		return nil
	})
	require.ErrorIs(t, err, tool.ErrDenied)
	require.NotErrorIs(t, err, agent.ErrTxnEnded)
	require.Equal(t, "two\n", contentOf(t, dir, "b"))

	out, err := s.Call(t.Context(), "file_write", tool.Args{"path": "b", "content": "new\n"})
	require.ErrorIs(t, err, tool.ErrDenied)
	require.Equal(t, tool.StatusDenied, out.Status)
	require.Equal(t, "all", out.Reverted)
	require.Contains(t, out.Text, "reverted")
	require.Equal(t, "null", string(out.Output))
	require.Equal(t, "two\n", contentOf(t, dir, "b"))

	effect = perm.Ask
	out, err = s.Call(t.Context(), "file_write", tool.Args{"path": "b", "content": "new\n"})
	require.ErrorIs(t, err, tool.ErrPending)
	require.Equal(t, tool.StatusDone, out.Status)
	require.Contains(t, out.Text, "waits for approval")
	require.NotContains(t, out.Text, "remit approve")
	fsckClean(t, rt)
}

// TestReadsAreNotDecided: a commit of nothing is not asked about.
func TestReadsAreNotDecided(t *testing.T) {
	var seen []perm.Request
	rt, _ := gatedRuntime(t, oneLook, agent.Policy(gateEngine{commit: func(perm.Request) (perm.Effect, error) { return perm.Deny, nil }, seen: &seen}))
	s := newSession(t, rt)
	_, err := s.Call(t.Context(), "file_read", tool.Args{"path": "a"})
	require.NoError(t, err)
	tx := begin(t, s)
	_, err = tx.Invoke(t.Context(), "file_read", tool.Args{"path": "a"})
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	tx = begin(t, s)
	saves(t, tx, "a", "new\n")
	out := saves(t, tx, "c", "new\n")
	_, err = tx.Revert(t.Context(), revert.Options{Calls: []string{out.Call}})
	require.NoError(t, err)
	saves(t, tx, "a", "one\n") // as it was
	require.NoError(t, tx.Commit(t.Context()))
	require.Empty(t, seen)
}

// TestCommitOfHeldCalls is decided before any of them is released.
func TestCommitOfHeldCalls(t *testing.T) {
	p := &post{}
	rt, dir := gatedRuntime(t, oneLook, agent.Tools(p.mail(t)))
	s := newSession(t, rt)
	tx := begin(t, s)
	saves(t, tx, "a", "new\n")
	holds(t, tx, "mail", "one")
	holds(t, tx, "mail", "two")
	gate := commitWaits(t, tx)
	require.Empty(t, p.texts())
	var saw perm.TxnFacts
	require.NoError(t, canon.Decode(loadTxn(t, rt, tx.ID()).Commits[0].Decided.Txn, &saw))
	require.Equal(t, 2, saw.Totals.Held)
	require.Equal(t, []string{"release", "release", "write"}, effectKinds(saw.Effects))
	approveCommit(t, rt, gate)
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, []string{"one", "two"}, p.texts())
	fsckClean(t, rt)

	tx = begin(t, s) // a rejection drops them
	saves(t, tx, "b", "new\n")
	holds(t, tx, "mail", "three")
	_ = commitWaits(t, tx)
	require.NoError(t, rt.Answer(t.Context(), agent.Answer{Txn: tx.ID(), By: "boss"}))
	require.ErrorIs(t, tx.Commit(t.Context()), tool.ErrDenied)
	require.Equal(t, []string{"one", "two"}, p.texts())
	require.Equal(t, "two\n", contentOf(t, dir, "b"))
	fsckClean(t, rt)
}

// TestCommitThatStoppedIsNotAskedAgain: once calls are released, the decision stands.
func TestCommitThatStoppedIsNotAskedAgain(t *testing.T) {
	p := &post{}
	broken := true
	p.fails = func(m sentMessage) error {
		if m.text == "two" && broken {
			return errors.New("the line is down")
		}
		return nil
	}
	mail := p.mail(t, func(s *tool.Spec) {
		run := s.Execute
		s.Execute = func(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
			res, err := run(ctx, tc, in)
			if err != nil {
				err = tool.NoEffect(err)
			}
			return res, err
		}
	})
	rt, _ := gatedRuntime(t, oneLook, agent.Tools(mail))
	tx := begin(t, newSession(t, rt))
	holds(t, tx, "mail", "one")
	holds(t, tx, "mail", "two")
	approveCommit(t, rt, commitWaits(t, tx))
	require.ErrorIs(t, tx.Commit(t.Context()), agent.ErrNotReleased)
	broken = false
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, []string{"one", "two"}, p.texts())
	fsckClean(t, rt)
}

func effectKinds(all []perm.EffectFacts) (kinds []string) {
	for _, e := range all {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// TestPivotsAreReported: what was sent before the denial stays, and the error says so.
func TestPivotsAreReported(t *testing.T) {
	p := &post{}
	var seen []perm.Request
	rt, dir := gatedRuntime(t, oneLook, agent.Tools(p.mail(t, func(s *tool.Spec) { s.EffectClass = effect.Pivot })),
		agent.Policy(gateEngine{commit: func(perm.Request) (perm.Effect, error) { return perm.Deny, nil }, seen: &seen}))
	tx := begin(t, newSession(t, rt))
	saves(t, tx, "a", "new\n")
	_, err := tx.Invoke(t.Context(), "mail", "sent")
	require.NoError(t, err)
	err = tx.Commit(t.Context())
	require.ErrorIs(t, err, tool.ErrDenied)
	require.ErrorIs(t, err, agent.ErrPartialRevert)
	require.ErrorContains(t, err, "tool://mail")
	require.Equal(t, "one\n", contentOf(t, dir, "a"))
	require.Len(t, seen, 1)
	require.Equal(t, "pivot", seen[0].Txn.Effects[0].Class)
	require.Equal(t, "call", seen[0].Txn.Effects[0].Kind)
	require.Equal(t, "coder", seen[0].Principal.ID)
	require.NotNil(t, seen[0].Session.Client)
	require.Equal(t, 1, seen[0].Txn.Totals.Pivot)
	fsckClean(t, rt)
}

// TestCommitOfManyChanges sees a bounded part, what is hardest to revert first.
func TestCommitOfManyChanges(t *testing.T) {
	p := &post{}
	var seen []perm.Request
	many := manyFiles(t, 300)
	rt, _ := gatedRuntime(t, oneLook, agent.Tools(many, p.mail(t, func(s *tool.Spec) { s.EffectClass = effect.Pivot })),
		agent.Policy(gateEngine{commit: func(perm.Request) (perm.Effect, error) { return perm.Ask, nil }, seen: &seen}))
	tx := begin(t, newSession(t, rt))
	_, err := tx.Invoke(t.Context(), "many", "")
	require.NoError(t, err)
	_, err = tx.Invoke(t.Context(), "mail", "sent")
	require.NoError(t, err)
	_ = commitWaits(t, tx)
	txn := seen[0].Txn
	require.True(t, txn.EffectsCut)
	require.Len(t, txn.Effects, 256)
	require.Equal(t, 301, txn.Totals.Effects)
	require.Equal(t, "mail", txn.Effects[0].Tool)
	require.Less(t, len(loadTxn(t, rt, tx.ID()).Commits[0].Decided.Txn), 256<<10)
	text, err := rt.CommitText(t.Context(), tx.ID())
	require.NoError(t, err)
	require.Less(t, len(text), 128<<10)
	require.Contains(t, text, "+new f00000")
	require.Contains(t, text, "what a pivot call does outside files is not shown")
}

// manyFiles is a tool that creates n files.
func manyFiles(t *testing.T, n int) tool.Tool {
	tl, err := tool.CreateWith("many", "Creates files.", []perm.ResourceAccess{perm.Access(perm.Write, "file://workspace/**")}, func(ctx context.Context, tc ctxperm.ToolContext, _ string) (string, error) {
		f, err := files.Open(tc, "workspace")
		for i := 0; err == nil && i < n; i++ {
			err = putNew(ctx, f, fmt.Sprintf("f%05d", i))
		}
		return "", err
	}, tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
	return mustTool(t, tl, err)
}

// TestConcurrentCommitAndAnswer commits in several goroutines while a person
// answers: the transaction ends once.
func TestConcurrentCommitAndAnswer(t *testing.T) {
	for round := range 10 {
		for _, approved := range []bool{true, false} {
			rt, dir := gatedRuntime(t, oneLook)
			tx := begin(t, newSession(t, rt))
			saves(t, tx, "a", "new\n")
			gate := commitWaits(t, tx)
			var all sync.WaitGroup
			var mu sync.Mutex
			ended := 0
			for range 4 {
				all.Go(func() {
					for {
						err := tx.Commit(context.Background())
						if errors.Is(err, tool.ErrPending) {
							continue
						}
						mu.Lock()
						defer mu.Unlock()
						if !errors.Is(err, agent.ErrTxnEnded) {
							ended++
						}
						return
					}
				})
			}
			require.NoError(t, rt.Answer(t.Context(), agent.Answer{Txn: tx.ID(), Approved: approved, By: "boss", RequestDigest: gate.Request}))
			all.Wait()
			require.Equal(t, 1, ended, fmt.Sprint(round))
			want := map[bool]string{true: "new\n", false: "one\n"}[approved]
			require.Equal(t, want, contentOf(t, dir, "a"))
			fsckClean(t, rt)
		}
	}
}

// TestCommitInAnotherProcess answers and commits in processes of their own.
func TestCommitInAnotherProcess(t *testing.T) {
	state, dir := t.TempDir(), workspaceOf(t, map[string]string{"a": "one\n"})
	open := func() (*agent.Runtime, func()) {
		j, err := sqlite.Open(t.Context(), state)
		require.NoError(t, err)
		rt, err := agent.New(quiet(), agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Journal(j), agent.OnAbandoned(agent.RevertAbandoned),
			agent.Policy(mustLoad(t, rego.Options{Modules: map[string]string{"p.rego": oneLook}})))
		require.NoError(t, err)
		return rt, func() { require.NoError(t, errors.Join(rt.Close(), j.Close())) }
	}
	rt, end := open()
	tx := begin(t, newSession(t, rt))
	saves(t, tx, "a", "new\n")
	gate := commitWaits(t, tx)
	beside, endBeside := open() // while the first one lives
	approveCommit(t, beside, gate)
	endBeside()
	end()

	rt, end = open()
	rec, err := rt.Recover(t.Context()) // it waits, so it is not given up
	require.NoError(t, err)
	require.Equal(t, []string{tx.ID()}, rec.Abandoned)
	require.Empty(t, rec.Reverted)
	again, err := rt.ResumeTxn(t.Context(), tx.ID())
	require.NoError(t, err)
	require.NoError(t, again.Commit(t.Context()))
	require.Equal(t, "new\n", contentOf(t, dir, "a"))
	fsckClean(t, rt)
	end()
}

// TestPolicyThatDecidesCommitsNoMore lets a commit that waits not pass unanswered, and a rejected one not at all.
func TestPolicyThatDecidesCommitsNoMore(t *testing.T) {
	live := rego.NewSwappableEngine(mustLoad(t, rego.Options{Modules: map[string]string{"p.rego": oneLook}}))
	plain := strings.Split(oneLook, "ask_commit")[0]
	rt, dir := gatedRuntime(t, oneLook, agent.Policy(live))
	s := newSession(t, rt)
	for _, rejected := range []bool{false, true} {
		old := live.Engine()
		tx := begin(t, s)
		saves(t, tx, "b", fmt.Sprint(rejected))
		gate := commitWaits(t, tx)
		if rejected {
			require.NoError(t, rt.Answer(t.Context(), agent.Answer{Txn: gate.Txn, By: "boss"}))
		}
		live.Swap(mustLoad(t, rego.Options{Modules: map[string]string{"p.rego": plain}}))
		err := tx.Commit(t.Context())
		require.Error(t, err)
		require.Equal(t, rejected, errors.Is(err, tool.ErrDenied), "%v", err)
		if !rejected {
			require.ErrorContains(t, err, "another policy asked about the commit")
			require.Contains(t, kindsOf(t, rt, tx.ID(), record.KindCommitDecided), record.KindCommitDecided)
			require.Empty(t, kindsOf(t, rt, tx.ID(), record.KindCommitted, record.KindAborting), "it stays open")
			approveCommit(t, rt, gate)
			require.NoError(t, tx.Commit(t.Context()), "a person approved exactly this")
		}
		require.Equal(t, "false", contentOf(t, dir, "b"))
		live.Swap(old)
	}
	tx := begin(t, s) // an approval of another policy's request does not count
	saves(t, tx, "a", "new\n")
	approveCommit(t, rt, commitWaits(t, tx))
	live.Swap(mustLoad(t, rego.Options{Modules: map[string]string{"p.rego": oneLook + "\n# changed\n"}}))
	_ = commitWaits(t, tx)
	fsckClean(t, rt)
}

// TestAskedStaysAsked: what a policy asked about needs its answer, although a condition of the rule holds no longer, a
// second policy asked too, or the transaction changed after a rejection. A session does not redo what was not permitted.
func TestAskedStaysAsked(t *testing.T) {
	const once = "package remit\n\nallow contains \"all\"\n\nask_commit contains \"one file\" if input.txn.totals.effects == 1\n"
	const burst = "package remit\n\nallow contains \"all\"\n\nask_commit contains \"first\" if input.session.tools.file_write.run == 1\n"

	t.Run("the same content", func(t *testing.T) {
		rt, _ := gatedRuntime(t, burst)
		s := newSession(t, rt)
		tx, other := begin(t, s), begin(t, s)
		saves(t, tx, "a", "bad\n")
		_ = commitWaits(t, tx)
		saves(t, other, "b", "x\n")
		_ = commitWaits(t, tx)
	})
	t.Run("more after a rejection", func(t *testing.T) {
		rt, _ := gatedRuntime(t, once)
		tx := begin(t, newSession(t, rt))
		saves(t, tx, "a", "bad\n")
		_ = commitWaits(t, tx)
		require.NoError(t, rt.Answer(t.Context(), agent.Answer{Txn: tx.ID(), By: "boss"}))
		saves(t, tx, "c", "more\n")
		approveCommit(t, rt, commitWaits(t, tx))
		require.NoError(t, tx.Commit(t.Context()), "a person saw both")
	})
	t.Run("less than was asked about", func(t *testing.T) {
		rt, _ := gatedRuntime(t, "package remit\n\nallow contains \"all\"\n\nask_commit contains \"two files\" if input.txn.totals.effects == 2\n")
		tx := begin(t, newSession(t, rt))
		saves(t, tx, "a", "good\n")
		require.NoError(t, tx.Savepoint(t.Context(), "s"))
		saves(t, tx, "b", "bad\n")
		_ = commitWaits(t, tx)
		_, err := tx.RevertTo(t.Context(), "s")
		require.NoError(t, err)
		require.NoError(t, tx.Commit(t.Context()), "the same policy decides anew about what is left")
	})
	t.Run("two policies", func(t *testing.T) {
		live := rego.NewSwappableEngine(mustLoad(t, rego.Options{Modules: map[string]string{"p.rego": oneLook}}))
		rt, _ := gatedRuntime(t, oneLook, agent.Policy(live))
		tx := begin(t, newSession(t, rt))
		saves(t, tx, "a", "bad\n")
		_ = commitWaits(t, tx)
		live.Swap(mustLoad(t, rego.Options{Modules: map[string]string{"p.rego": once}}))
		_ = commitWaits(t, tx)
		saves(t, tx, "c", "more\n")
		require.ErrorContains(t, tx.Commit(t.Context()), "another policy asked about the commit")
	})
	t.Run("back to what was rejected", func(t *testing.T) {
		rt, dir := gatedRuntime(t, oneLook)
		tx := begin(t, newSession(t, rt))
		saves(t, tx, "a", "bad\n")
		require.NoError(t, tx.Savepoint(t.Context(), "s"))
		_ = commitWaits(t, tx)
		require.NoError(t, rt.Answer(t.Context(), agent.Answer{Txn: tx.ID(), By: "boss"}))
		saves(t, tx, "b", "x\n")
		_ = commitWaits(t, tx)
		_, err := tx.RevertTo(t.Context(), "s")
		require.NoError(t, err)
		require.ErrorIs(t, tx.Commit(t.Context()), tool.ErrDenied)
		require.Equal(t, "one\n", contentOf(t, dir, "a"))
	})
	t.Run("redo", func(t *testing.T) {
		rt, dir := gatedRuntime(t, oneLook)
		s := newSession(t, rt)
		for _, answered := range []bool{true, false} {
			tx := begin(t, s)
			saves(t, tx, "a", "bad\n")
			_ = commitWaits(t, tx)
			if answered {
				require.NoError(t, rt.Answer(t.Context(), agent.Answer{Txn: tx.ID(), By: "boss"}))
				require.ErrorIs(t, tx.Commit(t.Context()), tool.ErrDenied)
			} else {
				_, err := tx.Revert(t.Context(), revert.Options{})
				require.NoError(t, err)
			}
			_, err := s.Redo(t.Context(), tx.ID())
			require.ErrorIs(t, err, tool.ErrDenied)
			require.Equal(t, "one\n", contentOf(t, dir, "a"))
			if answered {
				_, err = rt.Redo(t.Context(), tx.ID(), "boss")
				require.NoError(t, err, "a person may")
				_, err = s.Revert(t.Context(), tx.ID(), revert.Options{})
				require.NoError(t, err)
			}
		}
	})
}
