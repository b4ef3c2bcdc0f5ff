package agent_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

func nest(t *testing.T, tx *agent.Txn, s *agent.Session) *agent.Txn {
	in, err := tx.BeginNested(context.Background(), s)
	require.NoError(t, err)
	return in
}

func saves(t *testing.T, tx *agent.Txn, path, content string) tool.Outcome {
	out, err := tx.Invoke(context.Background(), "file_write", tool.Args{"path": path, "content": content})
	require.NoError(t, err)
	return out
}

func fsckClean(t *testing.T, rt *agent.Runtime) {
	rep, err := revert.Fsck(context.Background(), rt.Journal(), revert.FsckOptions{Found: func(p revert.Problem) { t.Errorf("%+v", p) }})
	require.NoError(t, err, "%+v", rep)
}

// TestNestedTransactions makes random trees of transactions, of sub-agents, that
// write, commit and are reverted, beside a plain model: a stack of maps. Some
// worlds end in a crash in between, and go on in another process.
func TestNestedTransactions(t *testing.T) {
	ctx := context.Background()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			o := newOffice(t)
			before := tree(t, o.dir)
			rt, end := o.open()
			s := newSession(t, rt)
			root := begin(t, s)
			open, own := []*agent.Txn{root}, []map[string]string{{}}
			sessions, n := []*agent.Session{s}, 0
			top := func() int { return len(open) - 1 }
			for range 40 {
				switch r.IntN(5) {
				case 0:
					if len(open) < 4 {
						who := sessions[top()]
						if r.IntN(2) == 0 {
							who = hand(t, who)
						}
						open, own, sessions = append(open, nest(t, open[top()], who)), append(own, map[string]string{}), append(sessions, who)
					}
				case 1:
					if i := top(); i > 0 {
						require.NoError(t, open[i].Commit(ctx))
						for k, v := range own[i] {
							own[i-1][k] = v
						}
						open, own, sessions = open[:i], own[:i], sessions[:i]
					}
				case 2:
					if i := r.IntN(len(open)); i > 0 { // with what is inside
						rep, err := open[i].Revert(ctx, revert.Options{})
						require.NoError(t, err)
						require.True(t, rep.Complete())
						open, own, sessions = open[:i], own[:i], sessions[:i]
					}
				case 3:
					if r.IntN(4) == 0 {
						id := root.ID()
						end()
						rt, end = o.open()
						tx, err := rt.ResumeTxn(ctx, id)
						require.NoError(t, err)
						root, open[0], sessions[0] = tx, tx, mustResume(t, rt, sessions[0])
						for i := 1; i < len(open); i++ {
							inner := open[i-1].Nested()
							require.Len(t, inner, 1)
							require.Equal(t, open[i].NestedID(), inner[0].NestedID())
							open[i], sessions[i] = inner[0], mustResume(t, rt, sessions[i])
						}
					}
				default:
					n++
					path := fmt.Sprintf("f%d.txt", r.IntN(6))
					for i, files := range own { // of the newest that wrote it, or new
						if _, wrote := files[path]; wrote && i != top() {
							path = fmt.Sprintf("g%d-%d.txt", i, n)
						}
					}
					saves(t, open[top()], path, fmt.Sprint(n))
					own[top()][path] = fmt.Sprint(n)
				}
				want := map[string]string{}
				for _, files := range own {
					for k, v := range files {
						want[k] = v
					}
				}
				got := tree(t, o.dir)
				for k, v := range want {
					require.Contains(t, got[k], " "+v)
				}
				for k := range got {
					_, was := before[k]
					_, is := want[k]
					require.True(t, was || is, "%s is left", k)
				}
			}
			_, err := root.Revert(ctx, revert.Options{})
			require.NoError(t, err)
			require.Equal(t, keys(before), keys(tree(t, o.dir)))
			fsckClean(t, rt)
		})
	}
}

func mustResume(t *testing.T, rt *agent.Runtime, s *agent.Session) *agent.Session {
	again, err := rt.ResumeSession(context.Background(), s.Token())
	require.NoError(t, err)
	return again
}

func keys(m map[string]string) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// TestNestsAreBounded: what a transaction with one open inside it can do, and what
// one that is inside cannot.
func TestNestsAreBounded(t *testing.T) {
	ctx := context.Background()
	o := newOffice(t)
	rt, _ := o.open()
	s := newSession(t, rt)
	tx := begin(t, s)
	require.NoError(t, tx.Savepoint(ctx, "a"))
	call := saves(t, tx, "b.txt", "1")
	helper := hand(t, s, agent.Grant(perm.Access(perm.Write, "file://workspace/c.txt"), perm.Access(perm.Call, "tool://file_write")))
	in := nest(t, tx, helper)
	require.ErrorIs(t, tx.Commit(ctx), agent.ErrNestedOpen)
	_, err := tx.RevertTo(ctx, "a")
	require.ErrorIs(t, err, agent.ErrNestedOpen)
	_, err = tx.Revert(ctx, revert.Options{Calls: []string{call.Call}})
	require.ErrorIs(t, err, agent.ErrNestedOpen)
	require.ErrorIs(t, in.Savepoint(ctx, "b"), tool.ErrInvalid)
	_, err = in.RevertTo(ctx, "a")
	require.ErrorIs(t, err, tool.ErrInvalid)
	_, err = in.Revert(ctx, revert.Options{By: "me"})
	require.ErrorIs(t, err, tool.ErrInvalid, "options are of the whole transaction")
	_, err = tx.BeginNested(ctx, newSession(t, rt))
	require.ErrorIs(t, err, tool.ErrInvalid, "a stranger's session")
	_, err = in.BeginNested(ctx, s)
	require.ErrorIs(t, err, tool.ErrInvalid, "nor the one above: that would widen")
	_, err = in.Invoke(ctx, "file_write", tool.Args{"path": "d.txt", "content": "x"})
	require.ErrorIs(t, err, tool.ErrDenied, "its own grant counts")
	saves(t, in, "c.txt", "2")
	require.Equal(t, tx.ID(), in.ID())
	require.NoError(t, in.Commit(ctx))
	require.ErrorIs(t, in.Commit(ctx), agent.ErrTxnEnded)
	_, err = in.Invoke(ctx, "file_write", tool.Args{"path": "c.txt", "content": "3"})
	require.ErrorIs(t, err, agent.ErrTxnEnded)
	late := nest(t, tx, helper)
	saves(t, late, "c.txt", "4")
	_, err = tx.Revert(ctx, revert.Options{})
	require.NoError(t, err)
	_, err = late.Invoke(ctx, "file_write", tool.Args{"path": "c.txt", "content": "5"})
	require.ErrorIs(t, err, agent.ErrTxnEnded)
	_, err = tx.BeginNested(ctx, helper)
	require.ErrorIs(t, err, agent.ErrTxnEnded)
	require.NotContains(t, tree(t, o.dir), "c.txt")
	fsckClean(t, rt)
}

// TestNestBeneathAnotherCall changes a file in a nested transaction and then in
// the outer one. The revert of the nested transaction leaves the later change
// and reports it.
func TestNestBeneathAnotherCall(t *testing.T) {
	ctx := context.Background()
	o := newOffice(t)
	rt, _ := o.open()
	s := newSession(t, rt)
	tx := begin(t, s)
	in := nest(t, tx, s)
	saves(t, in, "c.txt", "1")
	saves(t, in, "d.txt", "1")
	saves(t, tx, "c.txt", "2")
	rep, err := in.Revert(ctx, revert.Options{})
	require.ErrorIs(t, err, agent.ErrPartialRevert)
	require.Len(t, rep.NotReverted(), 1)
	require.Contains(t, tree(t, o.dir)["c.txt"], " 2")
	require.NotContains(t, tree(t, o.dir), "d.txt")
	_, err = tx.Revert(ctx, revert.Options{})
	require.NoError(t, err, "the whole can still be reverted, in order")
	require.NotContains(t, tree(t, o.dir), "c.txt")
	fsckClean(t, rt)
}

// TestSubAgentInsideACall: a tool that runs a sub-agent nests while it is in
// flight, and parallel ones end each by itself.
func TestSubAgentInsideACall(t *testing.T) {
	ctx := context.Background()
	var tx *agent.Txn
	var s *agent.Session
	delegate, err := tool.CreateWith("delegate", "", nil, func(ctx context.Context, _ ctxperm.ToolContext, in string) (string, error) {
		child, err := s.Delegate(ctx, perm.Principal{ID: in})
		if err != nil {
			return "", err
		}
		err = tx.UpdateNested(ctx, child, func(tx *agent.Txn) error {
			for i := range 3 {
				if _, err := tx.Invoke(ctx, "file_write", tool.Args{"path": fmt.Sprint(in, i), "content": "x"}); err != nil {
					return err
				}
			}
			if in[0] == 'b' {
				return errors.New("gave up")
			}
			return nil
		})
		return "", err
	}, tool.Pure())
	o := newOffice(t, mustTool(t, delegate, err))
	rt, _ := o.open()
	s = newSession(t, rt)
	tx = begin(t, s)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			_, _ = tx.Invoke(ctx, "delegate", fmt.Sprintf("%c%d", "ab"[i%2], i))
		})
	}
	all.Wait()
	require.Empty(t, tx.Nested())
	require.NoError(t, tx.Commit(ctx))
	got := tree(t, o.dir)
	for i := range 8 {
		for n := range 3 {
			name := fmt.Sprintf("%c%d%d", "ab"[i%2], i, n)
			_, there := got[name]
			require.Equal(t, i%2 == 0, there, name)
		}
	}
	_, err = s.Revert(ctx, tx.ID(), revert.Options{})
	require.NoError(t, err)
	fsckClean(t, rt)
}

// TestPendingInsideANest: a call that waits goes on where it was, also after a
// restart, and what it is in does not end before it.
func TestPendingInsideANest(t *testing.T) {
	ctx := context.Background()
	o := asksOffice(t)
	rt, end := o.open()
	s := newSession(t, rt)
	tx := begin(t, s)
	err := tx.UpdateNested(ctx, hand(t, s), func(tx *agent.Txn) error {
		_, err := tx.Invoke(ctx, "file_write", tool.Args{"path": "c.txt", "content": "1"})
		return err
	})
	require.ErrorIs(t, err, tool.ErrPending)
	require.Len(t, tx.Nested(), 1)
	require.ErrorIs(t, tx.Nested()[0].Commit(ctx), tool.ErrPending)
	id := tx.ID()
	end()

	rt, _ = o.open()
	tx, err = rt.ResumeTxn(ctx, id)
	require.NoError(t, err)
	loaded, err := revert.Load(ctx, rt.Journal(), id)
	require.NoError(t, err)
	call := loaded.Calls[0].Ref.Call
	require.NoError(t, rt.Answer(ctx, agent.Answer{Call: call, Approved: true, By: "boss"}))
	out, err := tx.Resume(ctx, call)
	require.NoError(t, err)
	require.Equal(t, tool.StatusDone, out.Status)
	in := tx.Nested()[0]
	_, err = in.Revert(ctx, revert.Options{})
	require.NoError(t, err)
	require.NotContains(t, tree(t, o.dir), "c.txt", "it is part of what it was asked in")
	require.NoError(t, tx.Commit(ctx))
	fsckClean(t, rt)
}

// TestNestIsRevertedAcrossCrashes ends the process at each step of taking a
// nested transaction back: the next one finishes it, and touches nothing else.
func TestNestIsRevertedAcrossCrashes(t *testing.T) {
	ctx := context.Background()
	step := statcheck.Stride(9)
	for at := 1; ; at += step {
		o := newOffice(t)
		before := keys(tree(t, o.dir))
		rt, end := o.open()
		s := newSession(t, rt)
		tx := begin(t, s)
		saves(t, tx, "out.txt", "1")
		in := nest(t, tx, s)
		inner := nest(t, in, s)
		saves(t, inner, "c.txt", "1")
		saves(t, in, "d.txt", "1")
		n, over := 0, false
		o.host.OnPoint = func(string) error {
			if n++; n >= at {
				over = true
				return errors.New("the process is gone")
			}
			return nil
		}
		_, err := in.Revert(ctx, revert.Options{})
		o.host.OnPoint = nil
		require.Equal(t, over, err != nil)
		id, nestID := tx.ID(), in.NestedID()
		end()

		rt, end = o.open()
		_, err = rt.Recover(ctx)
		require.NoError(t, err)
		tx, err = rt.ResumeTxn(ctx, id)
		require.NoError(t, err)
		if left := tx.Nested(); len(left) > 0 {
			require.Equal(t, nestID, left[0].NestedID())
			_, err = left[0].Revert(ctx, revert.Options{})
			require.NoError(t, err, at)
		}
		got := tree(t, o.dir)
		require.Contains(t, got, "out.txt")
		require.NotContains(t, got, "c.txt")
		require.NotContains(t, got, "d.txt")
		require.NoError(t, tx.Commit(ctx))
		_, err = rt.Revert(ctx, id, revert.Options{})
		require.NoError(t, err)
		require.Equal(t, before, keys(tree(t, o.dir)))
		fsckClean(t, rt)
		end()
		if !over {
			require.Greater(t, at, 10)
			return
		}
	}
}
