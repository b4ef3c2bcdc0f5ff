package revert_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

func revertRequest(id string, how revert.Options) request {
	return func(ctx context.Context, l *testEnv) reply { return replyOf(l.reverter.Revert(ctx, l.ids[id], how)) }
}

func redo(id string) request {
	return func(ctx context.Context, l *testEnv) reply { return replyOf(l.reverter.Redo(ctx, l.ids[id], "kim")) }
}

func preview(id string, how revert.Options) request {
	return func(ctx context.Context, l *testEnv) reply { return replyOf(l.reverter.Preview(ctx, l.ids[id], how)) }
}

// adopt takes ownership of the transaction before the next request.
func adopt(then request) request {
	return func(ctx context.Context, l *testEnv) reply {
		if _, err := l.reverter.TakeOwnership(ctx, l.ids["t"]); err != nil {
			return reply{err: err}
		}
		return then(ctx, l)
	}
}

// each makes requests in sequence.
func each(all ...request) request {
	return func(ctx context.Context, l *testEnv) (a reply) {
		for _, one := range all {
			if a = one(ctx, l); a.err != nil {
				return a
			}
		}
		return a
	}
}

func recovered(ctx context.Context, l *testEnv) reply {
	found, err := l.reverter.Recover(ctx)
	var a reply
	for _, s := range found.Settled {
		if a.items = append(a.items, s.Items...); s.Outcome == revert.PhaseUnknown {
			a.items = append(a.items, effect.Result{Resource: s.Call, Outcome: effect.Unknown, Why: s.Why})
		}
	}
	if a.err = err; err != nil {
		return a
	}
	t, err := revert.Load(ctx, l.open(), l.ids["t"])
	require.NoError(l.t, err)
	require.Empty(l.t, t.InFlight(), "a recovery without an error leaves nothing")
	return a
}

func scenarios() []scenario {
	return slices.Concat(revertScenarios(), redoings(), endings(), ofTables())
}

func revertScenarios() []scenario {
	committed := func(l *testEnv) { l.ids["t"] = l.worked() }
	foreign := func(l *testEnv) {
		committed(l)
		l.values.values["a"] = "theirs"
	}
	all, forced := revert.Options{}, revert.Options{Force: true, By: "kim"}
	cascade := revert.Options{Cascade: true}
	one := revert.Options{Resources: []string{"a"}}
	others := each(revertRequest("top", all), revertRequest("middle", all))
	second := func(do func(revert.Options) request) request {
		return func(ctx context.Context, l *testEnv) reply {
			return do(revert.Options{Calls: []string{l.ids["second"]}})(ctx, l)
		}
	}
	return []scenario{
		{name: "undo", prepare: committed, do: revertRequest("t", all)},
		{name: "undo of a call", prepare: committed, do: revertRequest("second", all)},
		{name: "undo of a resource", prepare: committed, do: revertRequest("t", one)},
		{name: "undo of the rest", prepare: func(l *testEnv) {
			committed(l)
			require.NoError(l.t, revertRequest("t", one)(l.t.Context(), l).err)
		}, do: revertRequest("t", all)},
		{name: "undo of a resource that another process began", prepare: begun(revertRequest("t", one), 6), do: revertRequest("t", one)},
		{name: "undo by force", prepare: foreign, do: revertRequest("t", forced)},
		// A dependent call that was included is not requested again.
		{name: "undo of several", prepare: stacked, do: revertRequest("t", cascade), finish: others},
		{name: "undo of several, one of them begun", prepare: stackedAndBegun, do: revertRequest("t", cascade), finish: others},
		{name: "undo that another process began", prepare: begun(revertRequest("t", all), 9), do: revertRequest("t", all)},
		{name: "undo that went wrong half-way", prepare: halfway(revertRequest("t", all)), do: revertRequest("t", all)},
		{name: "undo after a redo that went wrong half-way", prepare: func(l *testEnv) {
			l.ids["t"] = l.worked()
			require.NoError(l.t, revertRequest("t", all)(l.t.Context(), l).err)
			l.goesWrong(redo("t"), 0)
		}, do: revertRequest("t", all)},
		{name: "undo after a redo that did not end", prepare: begunRedo, do: revertRequest("t", all)},
		{name: "undo of what a dead process left", prepare: left, do: revertRequest("t", all), finish: each(decided, revertRequest("t", all))},
		{name: "preview", prepare: stacked, do: preview("t", cascade)},
		{name: "preview of what is held", prepare: holding, do: preview("t", all)},
		{name: "preview by force", prepare: foreign, do: preview("t", forced)},
		{name: "abort", alive: true, prepare: opened, do: aborted(all), then: revertRequest("t", all)},
		{name: "abort of a call", alive: true, prepare: opened, do: second(aborted), then: adopt(second(aborted))},
		{name: "abort of a resource", alive: true, prepare: opened, do: aborted(one), then: adopt(aborted(one))},
		{name: "abort of what is held", alive: true, prepare: holding, do: aborted(all), then: revertRequest("t", all)},
		{name: "abort of a held call", alive: true, prepare: holding, do: second(aborted), then: adopt(second(aborted))},
		{name: "back to a savepoint before what is held", alive: true, prepare: holding, do: toSavepoint, then: adopt(toSavepoint)},
		{
			name: "out of a nested transaction that holds", alive: true, prepare: holding, do: outOfNest,
			again: outOfNestOr, then: adopt(outOfNestOr),
		},
		{name: "undo of a commit that did not end", prepare: committing, do: revertRequest("t", all), finish: each(decided, revertRequest("t", all))},
		{name: "back to a savepoint", alive: true, prepare: opened, do: toSavepoint, then: adopt(toSavepoint)},
		{
			name: "back out of a nested transaction", alive: true, prepare: opened, do: outOfNest,
			again: outOfNestOr, then: adopt(outOfNestOr),
		},
		{name: "one call", alive: true, prepare: opened, do: oneCall, then: adopt(oneCall)},
	}
}

func redoings() []scenario {
	undone := func(l *testEnv) {
		l.ids["t"] = l.worked()
		rep, err := l.reverter.Revert(l.t.Context(), l.ids["t"], revert.Options{})
		require.NoError(l.t, err)
		l.ids["undo"] = rep.RevertTxn
	}
	return []scenario{
		{name: "redo", prepare: undone, do: redo("t")},
		{name: "redo of a resource", prepare: func(l *testEnv) {
			l.ids["t"] = l.worked()
			_, err := l.reverter.Revert(l.t.Context(), l.ids["t"], revert.Options{Resources: []string{"a"}})
			require.NoError(l.t, err)
		}, do: redo("t")},
		{name: "redo of one undo", prepare: undone, do: redo("undo")},
		{name: "redo that went wrong half-way", prepare: func(l *testEnv) {
			undone(l)
			l.goesWrong(redo("t"), 0)
		}, do: redo("t")},
		{name: "redo of several", prepare: func(l *testEnv) {
			stacked(l)
			rep, err := l.reverter.Revert(l.t.Context(), l.ids["t"], revert.Options{Cascade: true})
			require.NoError(l.t, err)
			l.ids["undo"] = rep.RevertTxn
		}, do: redo("undo")},
		{name: "redo that another process began", prepare: begunRedo, do: redo("t")},
		{name: "redo after an undo that did not end", prepare: begun(revertRequest("t", revert.Options{}), 9), do: redo("t")},
	}
}

func endings() []scenario {
	return []scenario{
		{name: "recover", prepare: left, do: recovered, finish: each(decided, revertRequest("t", revert.Options{}))},
		{name: "recover an undo", prepare: begun(revertRequest("t", revert.Options{}), 9), do: recovered, finish: revertRequest("t", revert.Options{})},
		{name: "recover a redo", prepare: begunRedo, do: recovered, finish: redo("t")},
		{name: "say what became of a call", prepare: doubtful, do: decide("doubtful")},
		{name: "say what became of a call that was left", prepare: leaveInDoubt, do: decide("left")},
		{name: "erase", prepare: redone, do: erase, finish: erase},
		{name: "prune", prepare: redone, do: prune(revert.Retention{}), finish: prune(revert.Retention{})},
		{name: "prune all but the newest", prepare: redone, do: prune(revert.Retention{MaxAge: time.Second, KeepLast: 1})},
		{name: "see what can be pruned", prepare: redone, do: prune(revert.Retention{DryRun: true})},
		{name: "check", prepare: checked, do: check},
		{name: "list content", prepare: redone, do: func(ctx context.Context, l *testEnv) reply {
			return reply{err: journal.Blobs(ctx, l.journal, 0, func(int64, effect.BlobRef) error { return nil })}
		}},
		{name: "adopt", prepare: left, do: adopt(unknowns), finish: each(decided, aborted(revert.Options{}))},
	}
}

// opened leaves a transaction open, with a savepoint and a nested transaction.
func opened(l *testEnv) {
	rec := l.txn()
	l.ids["t"] = rec.Txn()
	l.put(rec, write{"a", 7})
	l.line(rec, "", &record.Savepoint{Name: "here"}, &record.Nested{ID: "n_1", Session: "s_1"}, &record.Nested{ID: "n_2", In: "n_1", Session: "s_1"})
	s := handled()
	s.Nest = "n_2"
	l.ids["nested"] = l.start(rec, s, write{"b", 8}, write{"c", 9})
	l.line(rec, l.ids["nested"], done())
	l.ids["second"] = l.ids["nested"]
}

// holding leaves a transaction open that holds two calls, one of them nested.
func holding(l *testEnv) {
	opened(l)
	rec := revert.NewRecorder(l.journal, l.host, "s_1").In(l.ids["t"])
	s := startedPayment()
	s.Nest = "n_2"
	l.ids["second"] = l.hold(rec, s, false)
	l.ids["third"] = l.hold(rec, startedPayment(), true)
}

// committing kills a process while it releases held calls: one call is done,
// one in flight, and the last one waits.
func committing(l *testEnv) {
	holding(l)
	last := l.hold(revert.NewRecorder(l.journal, l.host, "s_1").In(l.ids["t"]), startedPayment(), false)
	rec := revert.NewRecorder(l.journal, l.host, "s_1").In(l.ids["t"])
	l.line(rec, "", &record.Committing{})
	l.release(rec, l.ids["second"])
	l.till.booked["key-"+l.ids["second"]] = true
	l.line(rec, l.ids["second"], done())
	l.release(rec, l.ids["third"])
	l.till.booked["key-"+l.ids["third"]] = true
	require.Equal(l.t, last, l.load(l.ids["t"]).HeldCalls()[0].Ref.Call)
}

// stacked commits three transactions, each of which depends on the one before.
func stacked(l *testEnv) {
	for i, writes := range [][]write{{{"a", 7}, {"b", nil}}, {{"a", 8}, {"c", 9}}, {{"c", 10}}} {
		rec := l.txn()
		l.put(rec, writes...)
		l.end(rec)
		l.ids[[]string{"t", "middle", "top"}[i]] = rec.Txn()
	}
}

// begun kills a process at one of the operations of a request.
func begun(do request, at int) func(*testEnv) {
	return func(l *testEnv) {
		l.ids["t"] = l.worked()
		l.crashAtRequest(do, at)
	}
}

func (l *testEnv) crashAtRequest(do request, at int) {
	l.next()
	l.crashAt(at)
	require.ErrorIs(l.t, do(l.t.Context(), l).err, errProcessEnded)
	l.next()
}

// halfway makes one step on the store fail half-way, with an error.
func halfway(do request) func(*testEnv) {
	return func(l *testEnv) {
		l.ids["t"] = l.worked()
		l.goesWrong(do, 1)
	}
}

func (l *testEnv) goesWrong(do request, step int) {
	l.next()
	l.faults.left, l.faults.only = step, "put"
	require.True(l.t, do(l.t.Context(), l).reportsFailure())
	require.NotEmpty(l.t, l.values.lifted)
}

func stackedAndBegun(l *testEnv) {
	stacked(l)
	l.crashAtRequest(revertRequest("top", revert.Options{}), 2)
}

func begunRedo(l *testEnv) {
	l.ids["t"] = l.worked()
	_, err := l.reverter.Revert(l.t.Context(), l.ids["t"], revert.Options{})
	require.NoError(l.t, err)
	l.crashAtRequest(redo("t"), 4)
}

// left leaves calls in flight, of each sort that recovery distinguishes.
func left(l *testEnv) {
	rec := l.txn()
	l.ids["t"] = rec.Txn()
	l.put(rec, write{"a", 7})
	l.start(rec, handled())
	l.start(rec, handled(), write{"a", 8}, write{"b", nil})
	l.start(rec, &record.Started{Class: effect.Pure, Confinement: "trusted"})
	l.start(rec, startedPayment())
	paid := l.start(rec, startedPayment())
	l.till.booked["key-"+paid] = true
}

func aborted(how revert.Options) request {
	return func(ctx context.Context, l *testEnv) reply {
		rep, err := l.reverter.Abort(ctx, l.ids["t"], how)
		if errors.Is(err, journal.ErrNotOwner) { // it has ended
			return revertRequest("t", how)(ctx, l)
		}
		return replyOf(rep, err)
	}
}

func toSavepoint(ctx context.Context, l *testEnv) reply {
	return replyOf(l.reverter.RevertTo(ctx, l.ids["t"], "here", "kim"))
}

func outOfNest(ctx context.Context, l *testEnv) reply {
	return replyOf(l.reverter.RevertNested(ctx, l.ids["t"], "n_1"))
}

// unknowns lists the in-doubt calls.
func unknowns(ctx context.Context, l *testEnv) (a reply) {
	var t *revert.Txn
	if t, a.err = revert.Load(ctx, l.journal, l.ids["t"]); a.err != nil {
		return a
	}
	for _, c := range t.Calls {
		if c.Phase == revert.PhaseUnknown {
			a.items = append(a.items, effect.Result{Resource: c.Ref.Call, Outcome: effect.Unknown})
		}
	}
	return a
}

// decided resolves the in-doubt calls.
func decided(ctx context.Context, l *testEnv) reply {
	a := unknowns(ctx, l)
	for _, i := range a.items {
		there := l.till.booked["key-"+i.Resource] && !l.till.given["key-"+i.Resource]
		err := l.reverter.ResolveUnknown(ctx, i.Resource, record.Decided{Applied: there, By: "kim", Why: "looked"})
		if err != nil && !errors.Is(err, revert.ErrOutcomeKnown) { // the versions tell the outcome of those
			return reply{err: err}
		}
	}
	return reply{}
}

// redone leaves transactions that were reverted, redone, and reverted again.
func redone(l *testEnv) {
	begunRedo(l)
	for _, do := range []request{redo("t"), revertRequest("t", revert.Options{})} {
		require.NoError(l.t, do(l.t.Context(), l).err)
	}
	stacked(l)
}

// doubtful leaves a call with an unknown end.
func doubtful(l *testEnv) {
	rec := l.txn()
	l.ids["t"] = rec.Txn()
	l.ids["doubtful"] = l.start(rec, startedPayment())
	l.line(rec, l.ids["doubtful"], &record.Unknown{Status: "unknown", Why: "lost"})
}

// leaveInDoubt leaves an in-doubt call of a dead process.
func leaveInDoubt(l *testEnv) {
	rec := l.txn()
	l.ids["t"] = rec.Txn()
	l.ids["left"] = l.start(rec, startedPayment())
	l.till.booked["key-"+l.ids["left"]] = true
}

func decide(id string) request {
	return func(ctx context.Context, l *testEnv) reply {
		err := l.reverter.ResolveUnknown(ctx, l.ids[id], record.Decided{Applied: true, By: "kim", Why: "looked"})
		if errors.Is(err, revert.ErrOutcomeKnown) { // it was resolved, and only the response was lost
			err = nil
		}
		return reply{err: err}
	}
}

func erase(ctx context.Context, l *testEnv) reply {
	_, err := l.reverter.Erase(ctx, l.ids["second"], record.Erased{By: "kim", Why: "asked for"})
	return reply{err: err}
}

func prune(keep revert.Retention) request {
	return func(ctx context.Context, l *testEnv) reply {
		_, err := l.reverter.Prune(ctx, keep)
		return reply{err: err}
	}
}

// checked leaves a journal that has something for each check of fsck.
func checked(l *testEnv) {
	l.ids["t"] = l.worked()
	require.NoError(l.t, revertRequest("t", revert.Options{})(l.t.Context(), l).err)
	require.NoError(l.t, erase(l.t.Context(), l).err)
	var err error
	l.head, err = l.journal.Head(l.t.Context())
	require.NoError(l.t, err)
	opened(l)
}

func check(ctx context.Context, l *testEnv) reply {
	found := ""
	_, err := revert.Fsck(ctx, l.journal, revert.FsckOptions{Kept: l.head, Found: func(p revert.Problem) { found += p.What }})
	if err != nil {
		err = fmt.Errorf("%w: %s", err, found)
	}
	return reply{err: err}
}

// outOfNestOr requests a revert of the rest if the first attempt has ended.
func outOfNestOr(ctx context.Context, l *testEnv) reply {
	a := outOfNest(ctx, l)
	if errors.Is(a.err, journal.ErrNotFound) {
		return aborted(revert.Options{Calls: []string{l.ids["nested"]}})(ctx, l)
	}
	return a
}

func oneCall(ctx context.Context, l *testEnv) reply {
	rec := revert.NewRecorder(l.journal, l.host, "s_1").In(l.ids["t"])
	items, err := l.reverter.RevertCall(ctx, rec, l.ids["second"], "verify_failed")
	return reply{items: items, err: err}
}
