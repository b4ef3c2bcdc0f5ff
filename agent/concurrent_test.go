package agent_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// held is code that says when it is there, and goes on when it is released.
func held(there chan<- struct{}, release <-chan struct{}, then execute) execute {
	return func(ctx context.Context, tc ctxperm.ToolContext, in string) (string, error) {
		close(there)
		<-release
		return then(ctx, tc, in)
	}
}

// TestRevertWaitsForCallsInFlight: whichever way an open transaction is taken
// back, what a running call still does is reverted too.
func TestRevertWaitsForCallsInFlight(t *testing.T) {
	for name, back := range map[string]func(context.Context, *agent.Runtime, *agent.Session, *agent.Txn) (revert.Report, error){
		"transaction": func(ctx context.Context, _ *agent.Runtime, _ *agent.Session, tx *agent.Txn) (revert.Report, error) {
			return tx.Revert(ctx, revert.Options{})
		},
		"session": func(ctx context.Context, _ *agent.Runtime, s *agent.Session, tx *agent.Txn) (revert.Report, error) {
			return s.Revert(ctx, tx.ID(), revert.Options{})
		},
		"runtime": func(ctx context.Context, rt *agent.Runtime, _ *agent.Session, tx *agent.Txn) (revert.Report, error) {
			return rt.Revert(ctx, tx.ID(), revert.Options{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := workspace(t)
			before := tree(t, dir)
			synctest.Test(t, func(t *testing.T) {
				there, release := make(chan struct{}), make(chan struct{})
				tl, err := tool.CreateWith("put", "", anyWrite(), held(there, release, puts("a.txt", returns("ok", nil))), confined()...)
				rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Policy(allowAll()), agent.Root("workspace", dir))
				s := newSession(t, rt)
				tx := begin(t, s)
				var called, reverted atomic.Bool
				go func() {
					_, err := tx.Invoke(t.Context(), "put", "agent's")
					require.NoError(t, err)
					called.Store(true)
				}()
				<-there
				go func() {
					rep, err := back(t.Context(), rt, s, tx)
					require.NoError(t, err)
					require.True(t, called.Load())
					require.Equal(t, revert.TxnReverted, rep.State)
					require.Len(t, rep.Items, 1)
					reverted.Store(true)
				}()
				synctest.Wait()
				require.False(t, reverted.Load())
				close(release)
				synctest.Wait()
				require.True(t, reverted.Load())
			})
			require.Equal(t, before, tree(t, dir))
		})
	}
}

// TestSecondReverterIsTurnedAway checks that a second revert of a committed
// transaction fails while the first one runs.
func TestSecondReverterIsTurnedAway(t *testing.T) {
	returned := atomic.Int32{}
	there, release := make(chan struct{}, 1), make(chan struct{})
	tl, err := tool.CreateWith("pay", "", nil, returns("ok", nil), tool.Effect(effect.Compensable), tool.RevertWith("1", func(context.Context, tool.RevertContext) error {
		returned.Add(1)
		there <- struct{}{}
		<-release
		return nil
	}))
	rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Policy(allowAll()))
	s := newSession(t, rt)
	tx := begin(t, s)
	_, err = tx.Invoke(t.Context(), "pay", "in")
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	first := make(chan error, 1)
	go func() {
		_, err := s.Revert(t.Context(), tx.ID(), revert.Options{})
		first <- err
	}()
	<-there
	_, err = rt.Revert(t.Context(), tx.ID(), revert.Options{})
	require.ErrorIs(t, err, revert.ErrBusy)
	txn, err := revert.Load(t.Context(), rt.Journal(), tx.ID())
	require.NoError(t, err)
	_, err = rt.Revert(t.Context(), txn.RevertedBy[0], revert.Options{})
	require.ErrorIs(t, err, revert.ErrBusy, "also by the name of the undo")
	close(release)
	require.NoError(t, <-first)
	require.EqualValues(t, 1, returned.Load())
}

// together is a journal that lets several openings come to the point where they
// begin to take a transaction back before one of them does.
type together struct {
	journal.Journal
	all *sync.WaitGroup
}

func (j together) Append(ctx context.Context, b journal.Batch) error {
	if len(b.Entries) == 2 && b.Entries[1].Header.Kind == record.KindRevertedBy {
		j.all.Done()
		j.all.Wait()
	}
	return j.Journal.Append(ctx, b)
}

// TestSecondProcessIsTurnedAway: of two openings of one journal that begin to
// take a transaction back at the same time, one does.
func TestSecondProcessIsTurnedAway(t *testing.T) {
	returned := atomic.Int32{}
	release := make(chan struct{})
	tl, err := tool.CreateWith("pay", "", nil, returns("ok", nil), tool.Effect(effect.Compensable), tool.RevertWith("1", func(context.Context, tool.RevertContext) error {
		returned.Add(1)
		<-release
		return nil
	}))
	require.NoError(t, err)
	state, all := t.TempDir(), &sync.WaitGroup{}
	all.Add(2)
	var runtimes [2]*agent.Runtime
	for i := range runtimes {
		j, err := sqlite.Open(t.Context(), state)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, j.Close()) })
		runtimes[i] = newRuntime(t, agent.Tools(tl), agent.Policy(allowAll()), agent.Journal(together{j, all}))
	}
	tx := begin(t, newSession(t, runtimes[0]))
	_, err = tx.Invoke(t.Context(), "pay", "in")
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	ends := make(chan error, 2)
	for _, rt := range runtimes {
		go func() {
			_, err := rt.Revert(t.Context(), tx.ID(), revert.Options{})
			ends <- err
		}()
	}
	require.ErrorIs(t, <-ends, revert.ErrBusy, "the other one is inside the tool's Revert")
	close(release)
	require.NoError(t, <-ends)
	require.EqualValues(t, 1, returned.Load())
	for _, rt := range runtimes {
		rep, err := rt.Revert(t.Context(), tx.ID(), revert.Options{})
		require.NoError(t, err)
		require.Empty(t, rep.Items)
	}
}

// TestChangeIsRecordedBeforeItsCallEnds: the end of a permit does not overtake a
// record that another goroutine of the tool is writing under it.
func TestChangeIsRecordedBeforeItsCallEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hosttest.New(1)
		there, release := make(chan struct{}), make(chan struct{})
		h.OnPoint = func(id string) error {
			if strings.HasPrefix(id, "journal.append") && strings.HasSuffix(id, "changed") {
				close(there)
				<-release
			}
			return nil
		}
		intended := make(chan error, 1)
		run := func(ctx context.Context, tc ctxperm.ToolContext, _ string) (string, error) {
			p, err := ctxperm.Authorize(ctx, tc, perm.Access(perm.Write, "file://workspace/a.txt"))
			require.NoError(t, err)
			go func() {
				_, err := p.RecordChange(ctx, []effect.Change{{Scheme: "x", Resource: "file://workspace/a.txt", Kind: "write", Pre: "a", Post: "b"}})
				intended <- err
			}()
			<-there
			p.End()
			return "ok", nil
		}
		tl, err := tool.CreateWith("put", "", anyWrite(), run, confined()...)
		rt := newRuntime(t, agent.Host(h), agent.Tools(mustTool(t, tl, err)), agent.Policy(allowAll()))
		tx := begin(t, newSession(t, rt))
		ended := make(chan error, 1)
		go func() {
			_, err := tx.Invoke(t.Context(), "put", "in")
			ended <- err
		}()
		synctest.Wait()
		require.Empty(t, ended, "the call waits for the record")
		close(release)
		require.NoError(t, <-ended)
		require.NoError(t, <-intended)
		txn, err := revert.Load(t.Context(), rt.Journal(), tx.ID())
		require.NoError(t, err)
		require.Len(t, txn.Calls[0].Changes, 1)
	})
}

// TestParallelCallsOnOneFile: calls of one transaction take turns.
func TestParallelCallsOnOneFile(t *testing.T) {
	dir := workspace(t)
	before := tree(t, dir)
	tl, err := tool.CreateWith("put", "", anyWrite(), puts("a.txt", returns("ok", nil)), confined()...)
	rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Policy(allowAll()), agent.Root("workspace", dir))
	tx := begin(t, newSession(t, rt))
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			out, err := tx.Invoke(t.Context(), "put", fmt.Sprint("by ", i))
			require.NoError(t, err, "%+v", out.Error)
			require.Len(t, out.Changes, 1)
		})
	}
	all.Wait()
	rep, err := tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	require.Len(t, rep.Items, 20)
	require.Equal(t, before, tree(t, dir))
}

// TestParallelCallsThatCreateOneFile checks that one of the parallel calls
// creates the file. The others fail without an effect.
func TestParallelCallsThatCreateOneFile(t *testing.T) {
	dir := workspace(t)
	before := tree(t, dir)
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir))
	tx := begin(t, newSession(t, rt))
	var all sync.WaitGroup
	var done, failed atomic.Int32
	for i := range 20 {
		all.Go(func() {
			out, err := tx.Invoke(t.Context(), "file_write", tool.Args{"path": "fresh.txt", "content": fmt.Sprint(i), "if_absent": true})
			if err == nil {
				done.Add(1)
				return
			}
			require.Equal(t, tool.StatusFailed, out.Status, "%+v", out.Error)
			failed.Add(1)
		})
	}
	all.Wait()
	require.EqualValues(t, 1, done.Load())
	require.EqualValues(t, 19, failed.Load())
	_, err := tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, before, tree(t, dir))
}

// TestLaterWriterWaits checks that a second writer waits until the first call
// has ended. The runtime can therefore revert a failed first call.
func TestLaterWriterWaits(t *testing.T) {
	dir := workspace(t)
	before := tree(t, dir)
	there, release := make(chan struct{}), make(chan struct{})
	slow := puts("a.txt", held(there, release, returns("", errors.New("boom"))))
	tl, err := tool.CreateWith("slow", "", anyWrite(), slow, confined()...)
	rt := newRuntime(t, agent.Tools(append(builtin.Files(), mustTool(t, tl, err))...), agent.Root("workspace", dir), agent.Policy(allowAll()))
	tx := begin(t, newSession(t, rt))
	first, second := make(chan tool.Outcome, 1), make(chan tool.Outcome, 1)
	go func() {
		out, _ := tx.Invoke(t.Context(), "slow", "first")
		first <- out
	}()
	<-there
	go func() {
		out, _ := tx.Invoke(t.Context(), "file_write", tool.Args{"path": "a.txt", "content": "second"})
		second <- out
	}()
	close(release)
	out := <-first
	require.Equal(t, tool.StatusFailed, out.Status, "%+v", out.Error)
	require.Equal(t, "all", out.Reverted)
	require.Equal(t, tool.StatusDone, (<-second).Status)
	require.Equal(t, "second", content(t, dir, "a.txt"))
	rep, err := tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, revert.TxnReverted, rep.State)
	require.Equal(t, before, tree(t, dir))
}

// TestParallelCallsOnFewFiles: calls that change the same files at once, each
// several of them and some twice, are each verified by themselves, and the
// transaction is reverted whole. A call that would wait in a circle fails
// without effect, and so does one whose folder went with it.
func TestParallelCallsOnFewFiles(t *testing.T) {
	for seed := range uint64(20) {
		dir := workspace(t)
		before := tree(t, dir)
		run := func(ctx context.Context, tc ctxperm.ToolContext, in string) (string, error) {
			f, err := handle.Open(tc, "workspace")
			if err != nil {
				return "", err
			}
			r := rand.New(rand.NewPCG(seed, uint64(len(in))))
			for range 1 + r.IntN(4) {
				name := []string{"a.txt", "d/b.txt", "new.txt"}[r.IntN(3)]
				if err := f.Write(ctx, name, []byte(in+name), handle.WriteOptions{MakeParents: true}); err != nil {
					return "", err
				}
			}
			return "ok", nil
		}
		tl, err := tool.CreateWith("put", "", anyWrite(), run, confined()...)
		rt := newRuntime(t, agent.Tools(append(builtin.Files(), mustTool(t, tl, err))...), agent.Policy(allowAll()), agent.Root("workspace", dir))
		tx := begin(t, newSession(t, rt))
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				name, input := "put", any(strings.Repeat("x", i))
				if i%2 == 0 {
					name, input = "file_write", tool.Args{"path": "a.txt", "content": strings.Repeat("y", i)}
				}
				out, err := tx.Invoke(t.Context(), name, input)
				if err == nil {
					return
				}
				require.Equal(t, tool.StatusFailed, out.Status, "%+v", out.Error)
				require.Contains(t, []string{"", "all"}, out.Reverted)
			})
		}
		all.Wait()
		rep, err := tx.Revert(t.Context(), revert.Options{})
		require.NoError(t, err, "seed %d: %+v", seed, rep.NotReverted())
		require.Equal(t, before, tree(t, dir), "seed %d", seed)
	}
}

// TestFoundAsWantedIsHeld: a call that found a file as it wants it relies on it
// until its transaction ends, as if it had written it.
func TestFoundAsWantedIsHeld(t *testing.T) {
	dir := workspace(t)
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir))
	s := newSession(t, rt)
	one, two := begin(t, s), begin(t, s)
	out := invoke(t, one, "file_write", tool.Args{"path": "a.txt", "content": "alpha"})
	require.Empty(t, out.Changes)
	out, err := two.Invoke(t.Context(), "file_write", tool.Args{"path": "a.txt", "content": "two"})
	require.ErrorIs(t, err, tool.ErrFailed)
	require.Contains(t, out.Error.Why, one.ID())
	require.NoError(t, one.Commit(t.Context()))
	invoke(t, two, "file_write", tool.Args{"path": "a.txt", "content": "two"})
}

// TestParallelCallsThatMakeOneFolder: a call that finds a folder made by another
// one has failed at worst, and can be repeated.
func TestParallelCallsThatMakeOneFolder(t *testing.T) {
	dir := workspace(t)
	before := tree(t, dir)
	run := func(ctx context.Context, tc ctxperm.ToolContext, in string) (string, error) {
		f, err := handle.Open(tc, "workspace")
		if err != nil {
			return "", err
		}
		return "ok", f.Write(ctx, "x/"+in, nil, handle.WriteOptions{MakeParents: true})
	}
	tl, err := tool.CreateWith("put", "", anyWrite(), run, confined()...)
	rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Policy(allowAll()), agent.Root("workspace", dir))
	tx := begin(t, newSession(t, rt))
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			out, err := tx.Invoke(t.Context(), "put", fmt.Sprint(i))
			if err != nil {
				require.Equal(t, tool.StatusFailed, out.Status, "%+v", out.Error)
				_, err = tx.Invoke(t.Context(), "put", fmt.Sprint(i))
			}
			require.NoError(t, err)
		})
	}
	all.Wait()
	_, err = tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, before, tree(t, dir))
}
