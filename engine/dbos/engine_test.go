package dbosagent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	dbosagent "github.com/remit-dev/remit/engine/dbos"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/proof/pgtest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

const asking = `package remit

allow contains "everything" if true

ask contains "deletions are asked about" if input.tool.name == "file_delete"
`

const askingCommits = `package remit

allow contains "everything" if true

ask_commit contains "commits are asked about" if true
`

// life is one process of an application, as far as DBOS and remit can tell.
type life struct {
	root   dbos.Context
	rt     *agent.Runtime
	engine *dbosagent.Engine
	end    func()
}

// live begins a process. work is its workflow, which takes and returns a text.
func (j job) live(t *testing.T, policy string, work func(*dbosagent.Txn, string) (string, error), opts ...agent.Option) (l life, run dbos.Workflow[string, string]) {
	t.Helper()
	rt, closeAll, err := j.runtime(t.Context(), host.Real(), policy, opts...)
	require.NoError(t, err)
	l.rt = rt
	l.root, err = dbos.NewContext(context.Background(), dbos.Config{
		AppName: j.Workflow, DatabaseURL: j.Database, ApplicationVersion: "1", ExecutorID: "one", Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	l.engine, err = dbosagent.New(l.root, rt, dbosagent.Poll(5*time.Millisecond))
	require.NoError(t, err)
	run = func(ctx dbos.Context, in string) (string, error) {
		return dbosagent.Run(ctx, l.engine, perm.Principal{ID: "worker"}, func(tx *dbosagent.Txn) (string, error) { return work(tx, in) })
	}
	dbos.RegisterWorkflow(l.root, run, dbos.WithWorkflowName("work"))
	ended := false
	l.end = func() {
		if !ended {
			ended = true
			require.NoError(t, dbos.Shutdown(l.root, time.Minute))
			closeAll()
		}
	}
	t.Cleanup(l.end)
	return l, run
}

// reverted waits for the end of a transaction: DBOS can return the result of a workflow before its function has returned.
func (l life) reverted(t *testing.T, txn string) {
	t.Helper()
	for end := record.Kind(""); end != record.KindAborted; {
		loaded, err := l.rt.Load(t.Context(), txn)
		require.NoError(t, err)
		end = loaded.End
	}
}

// waiting is the first call or commit that waits, as remit pending finds it.
func waiting(t *testing.T, j journal.Journal) (txn, call, digest string) {
	t.Helper()
	for {
		for e, err := range j.Entries(t.Context(), journal.Query{Kinds: []record.Kind{record.KindAsked, record.KindCommitDecided}}) {
			require.NoError(t, err)
			var asked struct{ Digest string }
			require.NoError(t, json.Unmarshal(e.Body, &asked))
			if e.Header.Kind == record.KindAsked {
				call = e.Header.Call
			}
			return e.Header.Txn, call, asked.Digest
		}
		require.NoError(t, t.Context().Err())
	}
}

func deletes(tx *dbosagent.Txn, _ string) (string, error) {
	if _, err := tx.Invoke("count", tool.Args{}); err != nil {
		return "", err
	}
	out, err := tx.Invoke("file_delete", tool.Args{"path": "c.txt"})
	if err != nil && !errors.Is(err, tool.ErrDenied) {
		return "", err
	}
	return string(out.Status), nil
}

// TestWaits: a call waits for its answer while no process of the workflow is there, and the next one goes on.
func TestWaits(t *testing.T) {
	t.Parallel()
	database, _ := pgtest.Database(t)
	for _, approved := range []bool{true, false} {
		j := newJob(t, database, fmt.Sprint("waits-", approved), false)
		l, run := j.live(t, asking, deletes)
		require.NoError(t, dbos.Launch(l.root))
		_, err := dbos.RunWorkflow(l.root, run, "", dbos.WithWorkflowID(j.Workflow))
		require.NoError(t, err)
		_, call, _ := waiting(t, l.rt.Journal())
		l.end()
		require.Equal(t, map[string]string{"a.txt": "alpha\n", "c.txt": "sea\n", "n.txt": "1"}, j.files(t), "the transaction stays open")

		rt, closeAll, err := j.runtime(t.Context(), host.Real(), asking)
		require.NoError(t, err)
		require.NoError(t, rt.Answer(t.Context(), agent.Answer{Call: call, Approved: approved, By: "boss"}))
		closeAll()

		l, _ = j.live(t, asking, deletes)
		_, err = l.engine.Recover(t.Context())
		require.NoError(t, err)
		require.NoError(t, dbos.Launch(l.root))
		h, err := dbos.RetrieveWorkflow[string](l.root, j.Workflow)
		require.NoError(t, err)
		out, err := h.GetResult()
		require.NoError(t, err)
		want := map[string]string{"a.txt": "alpha\n", "n.txt": "1"}
		if approved {
			require.Equal(t, "done", out)
		} else {
			require.Equal(t, "denied", out)
			want["c.txt"] = "sea\n"
		}
		require.Equal(t, want, j.files(t))
		l.end()
	}
}

// TestCancelled: cancelling a workflow reverts its transaction, at once or when the next process begins.
func TestCancelled(t *testing.T) {
	t.Parallel()
	database, _ := pgtest.Database(t)
	t.Run("while it waits", func(t *testing.T) {
		j := newJob(t, database, "cancelled-live", false)
		l, run := j.live(t, asking, deletes)
		require.NoError(t, dbos.Launch(l.root))
		h, err := dbos.RunWorkflow(l.root, run, "", dbos.WithWorkflowID(j.Workflow))
		require.NoError(t, err)
		txn, _, _ := waiting(t, l.rt.Journal())
		require.NoError(t, dbos.CancelWorkflow(l.root, j.Workflow))
		_, err = h.GetResult()
		require.ErrorIs(t, err, dbos.ErrWorkflowCancelled)
		l.reverted(t, txn)
		require.Equal(t, before, j.files(t))
	})
	// DBOS has not recorded the step when the call already waits, so it refuses the record.
	t.Run("before the step is on record", func(t *testing.T) {
		j := newJob(t, database, "cancelled-step", false)
		asked := make(chan string, 1)
		var l life
		var run dbos.Workflow[string, string]
		l, run = j.live(t, asking, deletes, agent.OnWaiting(func(r ctxperm.ApprovalRequest) {
			if err := dbos.CancelWorkflow(l.root, j.Workflow); err != nil {
				panic(err) // of a goroutine of the runtime
			}
			asked <- r.Txn
		}))
		require.NoError(t, dbos.Launch(l.root))
		h, err := dbos.RunWorkflow(l.root, run, "", dbos.WithWorkflowID(j.Workflow))
		require.NoError(t, err)
		_, err = h.GetResult()
		require.ErrorIs(t, err, dbos.ErrWorkflowCancelled)
		l.reverted(t, <-asked)
		require.Equal(t, before, j.files(t))
	})
	t.Run("without a process", func(t *testing.T) {
		j := newJob(t, database, "cancelled-dead", false)
		l, run := j.live(t, asking, deletes)
		require.NoError(t, dbos.Launch(l.root))
		_, err := dbos.RunWorkflow(l.root, run, "", dbos.WithWorkflowID(j.Workflow))
		require.NoError(t, err)
		txn, _, _ := waiting(t, l.rt.Journal())
		l.end()
		l, _ = j.live(t, asking, deletes)
		require.NoError(t, dbos.CancelWorkflow(l.root, j.Workflow))
		rec, err := l.engine.Recover(t.Context())
		require.NoError(t, err)
		require.Len(t, rec.Compensated, 1)
		require.Empty(t, rec.Unknown)
		require.Equal(t, before, j.files(t))
		loaded, err := l.rt.Load(t.Context(), txn)
		require.NoError(t, err)
		require.Equal(t, record.KindAborted, loaded.End)
		rec, err = l.engine.Recover(t.Context())
		require.NoError(t, err)
		require.Empty(t, rec.Compensated, "once")
	})
}

// TestDeadline: a workflow whose time is over is cancelled.
func TestDeadline(t *testing.T) {
	t.Parallel()
	database, _ := pgtest.Database(t)
	j := newJob(t, database, "deadline", false)
	l, run := j.live(t, asking, deletes)
	require.NoError(t, dbos.Launch(l.root))
	ctx, cancel := dbos.WithTimeout(l.root, 300*time.Millisecond)
	defer cancel()
	h, err := dbos.RunWorkflow(ctx, run, "", dbos.WithWorkflowID(j.Workflow))
	require.NoError(t, err)
	_, err = h.GetResult()
	require.ErrorIs(t, err, context.DeadlineExceeded)
	for e, err := range l.rt.Journal().Entries(t.Context(), journal.Query{Kinds: []record.Kind{record.KindPrompted}}) {
		require.NoError(t, err)
		l.reverted(t, e.Header.Txn)
	}
	require.Equal(t, before, j.files(t))
}

// TestFork: a fork works in no transaction of the original.
func TestFork(t *testing.T) {
	t.Parallel()
	database, _ := pgtest.Database(t)
	j := newJob(t, database, "forked", false)
	l, run := j.live(t, asking, deletes)
	require.NoError(t, dbos.Launch(l.root))
	h, err := dbos.RunWorkflow(l.root, run, "", dbos.WithWorkflowID(j.Workflow))
	require.NoError(t, err)
	_, call, _ := waiting(t, l.rt.Journal())
	fork, err := dbos.ForkWorkflow[string](l.root, dbos.ForkWorkflowInput{OriginalWorkflowID: j.Workflow, StartStep: 1})
	require.NoError(t, err)
	_, err = fork.GetResult()
	require.ErrorContains(t, err, "belongs to workflow forked: fork that at step 0 or before")
	require.NoError(t, l.rt.Answer(t.Context(), agent.Answer{Call: call, Approved: true, By: "boss"}))
	out, err := h.GetResult()
	require.NoError(t, err)
	require.Equal(t, "done", out)
}

// TestOfAStep: a step cannot make a transaction.
func TestOfAStep(t *testing.T) {
	t.Parallel()
	database, _ := pgtest.Database(t)
	j := newJob(t, database, "of-a-step", false)
	l, _ := j.live(t, rules, deletes)
	inside := func(ctx dbos.Context, _ string) (string, error) {
		return dbos.RunAsStep(ctx, func(ctx context.Context) (string, error) {
			step, ok := ctx.(dbos.Context)
			require.True(t, ok)
			return dbosagent.Run(step, l.engine, perm.Principal{ID: "worker"}, func(tx *dbosagent.Txn) (string, error) { return deletes(tx, "") })
		})
	}
	dbos.RegisterWorkflow(l.root, inside, dbos.WithWorkflowName("inside"))
	require.NoError(t, dbos.Launch(l.root))
	h, err := dbos.RunWorkflow(l.root, inside, "")
	require.NoError(t, err)
	_, err = h.GetResult()
	require.ErrorContains(t, err, "and not for a step of it")
	require.Equal(t, before, j.files(t))
}

// continued begins a workflow, ends its process while a call waits, and returns the result of the next one. The tool count and the
// content that is written can be others then.
func continued(t *testing.T, j job, about, content string) (string, error) {
	t.Helper()
	text := "first"
	work := func(tx *dbosagent.Txn, _ string) (string, error) {
		n, err := tx.Invoke("count", tool.Args{})
		if err == nil {
			_, err = tx.Invoke("file_write", tool.Args{"path": "new.txt", "content": text})
		}
		if err == nil {
			_, err = tx.Invoke("file_delete", tool.Args{"path": "c.txt"})
		}
		return string(n.Status) + " " + n.Text, err
	}
	l, run := j.live(t, asking, work)
	require.NoError(t, dbos.Launch(l.root))
	_, err := dbos.RunWorkflow(l.root, run, "", dbos.WithWorkflowID(j.Workflow))
	require.NoError(t, err)
	_, call, _ := waiting(t, l.rt.Journal())
	l.end()
	j.About, text = about, content
	l, _ = j.live(t, asking, work)
	require.NoError(t, l.rt.Answer(t.Context(), agent.Answer{Call: call, Approved: true, By: "boss"}))
	require.NoError(t, dbos.Launch(l.root))
	h, err := dbos.RetrieveWorkflow[string](l.root, j.Workflow)
	require.NoError(t, err)
	return h.GetResult()
}

// TestOtherDeclaration: what a call returned stays so if its tool is declared in other words.
func TestOtherDeclaration(t *testing.T) {
	t.Parallel()
	database, _ := pgtest.Database(t)
	j := newJob(t, database, "declared", false)
	out, err := continued(t, j, " It is a small one.", "first")
	require.NoError(t, err)
	require.Equal(t, "done 1", out)
	require.Equal(t, map[string]string{"a.txt": "alpha\n", "n.txt": "1", "new.txt": "first"}, j.files(t))
}

// TestOtherCall: a function that calls something else than before gets an error, and no outcome of another call.
func TestOtherCall(t *testing.T) {
	t.Parallel()
	database, _ := pgtest.Database(t)
	j := newJob(t, database, "other-call", false)
	_, err := continued(t, j, "", "second")
	require.ErrorContains(t, err, "is not deterministic")
	require.Equal(t, before, j.files(t))
}

// TestMissedError: a function that misses an error of the engine commits nothing.
func TestMissedError(t *testing.T) {
	t.Parallel()
	database, _ := pgtest.Database(t)
	j := newJob(t, database, "missed-error", false)
	content := "first"
	work := func(tx *dbosagent.Txn, _ string) (string, error) {
		_, _ = tx.Invoke("file_write", tool.Args{"path": "new.txt", "content": content})
		_, _ = tx.Invoke("file_delete", tool.Args{"path": "c.txt"})
		return "all went well", nil
	}
	l, run := j.live(t, asking, work)
	require.NoError(t, dbos.Launch(l.root))
	_, err := dbos.RunWorkflow(l.root, run, "", dbos.WithWorkflowID(j.Workflow))
	require.NoError(t, err)
	waiting(t, l.rt.Journal())
	l.end()
	content = "second"
	l, _ = j.live(t, asking, work)
	require.NoError(t, dbos.Launch(l.root))
	h, err := dbos.RetrieveWorkflow[string](l.root, j.Workflow)
	require.NoError(t, err)
	_, err = h.GetResult()
	require.ErrorContains(t, err, "is not deterministic")
	require.Equal(t, before, j.files(t))
}

// TestRecoverGoesOn: what a program without a tool cannot revert is in the result, and is no error.
func TestRecoverGoesOn(t *testing.T) {
	t.Parallel()
	database, _ := pgtest.Database(t)
	j := newJob(t, database, "partly", false)
	l, run := j.live(t, asking, func(tx *dbosagent.Txn, _ string) (string, error) {
		if _, err := tx.Invoke("ping", "x"); err != nil {
			return "", err
		}
		return deletes(tx, "")
	}, pings(func() error { return nil }))
	require.NoError(t, dbos.Launch(l.root))
	_, err := dbos.RunWorkflow(l.root, run, "", dbos.WithWorkflowID(j.Workflow))
	require.NoError(t, err)
	txn, _, _ := waiting(t, l.rt.Journal())
	l.end()
	rec := j.cancelled(t)
	require.Empty(t, rec.Failed)
	require.Len(t, rec.Compensated, 1)
	require.Equal(t, txn, rec.Compensated[0].Txn)
	require.False(t, rec.Compensated[0].Complete())

	j = newJob(t, database, "not-here", false)
	j.Ping = true
	_, killed := j.start(t)
	require.True(t, killed)
	rec = j.cancelled(t)
	require.Empty(t, rec.Compensated)
	require.Len(t, rec.Failed, 1)
	require.ErrorIs(t, rec.Failed[0].Err, revert.ErrToolNotFound)
}

// cancelled cancels a workflow that no process has, and is the Recover of a program without the tool ping.
func (j job) cancelled(t *testing.T) dbosagent.Recovery {
	l, _ := j.live(t, asking, deletes)
	defer l.end()
	require.NoError(t, dbos.CancelWorkflow(l.root, j.Workflow))
	rec, err := l.engine.Recover(t.Context())
	require.NoError(t, err)
	return rec
}

// TestEndedWithout: a transaction that a dead process began for a workflow that has ended without it is reverted.
func TestEndedWithout(t *testing.T) {
	t.Parallel()
	database, _ := pgtest.Database(t)
	j := newJob(t, database, "ended-without", false)
	l, run := j.live(t, rules, deletes)
	require.NoError(t, dbos.Launch(l.root))
	h, err := dbos.RunWorkflow(l.root, run, "", dbos.WithWorkflowID(j.Workflow))
	require.NoError(t, err)
	_, err = h.GetResult()
	require.NoError(t, err)
	s, err := l.rt.Session(t.Context(), perm.Principal{ID: "worker"})
	require.NoError(t, err)
	tx, err := s.Begin(t.Context(), agent.ForPrompt(agent.Prompt{Client: "dbos", ID: j.Workflow + "/0"}))
	require.NoError(t, err)
	_, err = tx.Invoke(t.Context(), "count", tool.Args{})
	require.NoError(t, err)
	require.Equal(t, "2", j.files(t)["n.txt"])
	l.end()
	l, _ = j.live(t, rules, deletes)
	rec, err := l.engine.Recover(t.Context())
	require.NoError(t, err)
	require.Len(t, rec.Compensated, 1)
	require.Equal(t, "1", j.files(t)["n.txt"])
}

// TestForgotten: a transaction of a workflow that the database does not have stays as it is.
func TestForgotten(t *testing.T) {
	t.Parallel()
	database, _ := pgtest.Database(t)
	j := newJob(t, database, "forgotten", false)
	l, run := j.live(t, asking, deletes)
	require.NoError(t, dbos.Launch(l.root))
	_, err := dbos.RunWorkflow(l.root, run, "", dbos.WithWorkflowID(j.Workflow))
	require.NoError(t, err)
	txn, _, _ := waiting(t, l.rt.Journal())
	l.end()
	j.Database, _ = pgtest.Database(t)
	l, _ = j.live(t, asking, deletes)
	rec, err := l.engine.Recover(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{txn}, rec.Unknown)
	require.Equal(t, "1", j.files(t)["n.txt"])
}

// TestCommitWaits: the commit waits like a call.
func TestCommitWaits(t *testing.T) {
	t.Parallel()
	database, _ := pgtest.Database(t)
	for _, approved := range []bool{true, false} {
		j := newJob(t, database, fmt.Sprint("commit-", approved), false)
		l, run := j.live(t, askingCommits, func(tx *dbosagent.Txn, _ string) (string, error) {
			out, err := tx.Invoke("count", tool.Args{})
			return out.Text, err
		})
		require.NoError(t, dbos.Launch(l.root))
		h, err := dbos.RunWorkflow(l.root, run, "", dbos.WithWorkflowID(j.Workflow))
		require.NoError(t, err)
		txn, _, digest := waiting(t, l.rt.Journal())
		require.NoError(t, l.rt.Answer(t.Context(), agent.Answer{Txn: txn, Approved: approved, By: "boss", RequestDigest: digest}))
		out, err := h.GetResult()
		if approved {
			require.NoError(t, err)
			require.Equal(t, "1", out)
			require.Equal(t, "1", j.files(t)["n.txt"])
		} else {
			require.ErrorContains(t, err, txn)
			require.Equal(t, before, j.files(t))
		}
	}
}

// TestPanic: a panic reverts, and the workflow ends with an error.
func TestPanic(t *testing.T) {
	t.Parallel()
	database, _ := pgtest.Database(t)
	j := newJob(t, database, "panics", false)
	l, run := j.live(t, rules, func(tx *dbosagent.Txn, _ string) (string, error) {
		if _, err := tx.Invoke("count", tool.Args{}); err != nil {
			return "", err
		}
		panic("not this time")
	})
	require.NoError(t, dbos.Launch(l.root))
	h, err := dbos.RunWorkflow(l.root, run, "")
	require.NoError(t, err)
	_, err = h.GetResult()
	require.ErrorContains(t, err, "not this time")
	require.Equal(t, before, j.files(t))
	rec, err := l.rt.Recover(t.Context())
	require.NoError(t, err)
	require.Empty(t, rec.Abandoned)
}

// TestSeveral: a workflow can make several transactions, each with its own failed, and remit reverts one after the fact.
func TestSeveral(t *testing.T) {
	t.Parallel()
	database, _ := pgtest.Database(t)
	j := newJob(t, database, "several", false)
	var l life
	l, _ = j.live(t, rules, deletes)
	var ids []string
	twice := func(ctx dbos.Context, _ string) (int, error) {
		for range 2 {
			if _, err := dbosagent.Run(ctx, l.engine, perm.Principal{ID: "worker"}, func(tx *dbosagent.Txn) (string, error) {
				ids = append(ids, tx.ID())
				out, err := tx.Invoke("count", tool.Args{})
				return out.Text, err
			}); err != nil {
				return 0, err
			}
		}
		return len(ids), nil
	}
	dbos.RegisterWorkflow(l.root, twice, dbos.WithWorkflowName("twice"))
	require.NoError(t, dbos.Launch(l.root))
	h, err := dbos.RunWorkflow(l.root, twice, "")
	require.NoError(t, err)
	n, err := h.GetResult()
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.NotEqual(t, ids[0], ids[1])
	require.Equal(t, "2", j.files(t)["n.txt"])
	_, err = l.rt.Revert(t.Context(), ids[1], revert.Options{})
	require.NoError(t, err)
	require.Equal(t, "1", j.files(t)["n.txt"])
}

// TestBadInput: what cannot work says what is wrong and runs nothing.
func TestBadInput(t *testing.T) {
	t.Parallel()
	database, _ := pgtest.Database(t)
	j := newJob(t, database, "bad-input", false)
	l, run := j.live(t, rules, deletes)
	_, err := dbosagent.New(nil, l.rt)
	require.ErrorContains(t, err, "needs a DBOS context")
	_, err = dbosagent.New(l.root, nil)
	require.ErrorContains(t, err, "and a runtime")
	_, err = dbosagent.New(l.root, l.rt, dbosagent.Poll(0))
	require.ErrorContains(t, err, "dbosagent.Poll: 0s")
	_, err = run(l.root, "")
	require.ErrorContains(t, err, "for the function of a workflow")
	_, err = dbosagent.Run[string](l.root, nil, perm.Principal{}, nil)
	require.ErrorContains(t, err, "needs an engine and a function")
	require.NoError(t, dbos.Launch(l.root))
	for _, id := range []string{strings.Repeat("w", 101), "two words", "ümlaut"} {
		h, err := dbos.RunWorkflow(l.root, run, "", dbos.WithWorkflowID(id))
		require.NoError(t, err)
		_, err = h.GetResult()
		require.ErrorContains(t, err, "the ID of the workflow", id)
	}
	require.Equal(t, before, j.files(t))
}
