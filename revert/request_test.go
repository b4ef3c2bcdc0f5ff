package revert_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// requestTable holds the requests of one node that asks itself.
type requestTable struct{ rows []journal.Request }

// requestJournal is a journal with requests, opened by one process.
type requestJournal struct {
	journal.Journal
	*requestTable
	fail error // of every method
}

func (j *requestJournal) NodeID() string { return "n_here" }

func (j *requestJournal) row(id int64) (*journal.Request, error) {
	if j.fail != nil {
		return &journal.Request{}, j.fail
	}
	if id < 1 || id > int64(len(j.rows)) {
		return &journal.Request{}, journal.ErrNotFound
	}
	return &j.rows[id-1], nil
}

func (j *requestJournal) Ask(_ context.Context, r journal.Request) (journal.Request, error) {
	r.ID, r.State, r.From = int64(len(j.rows)+1), journal.RequestAsked, j.NodeID()
	j.rows = append(j.rows, r)
	return r, j.fail
}

func (j *requestJournal) Request(_ context.Context, id int64) (journal.Request, error) {
	r, err := j.row(id)
	return *r, err
}

func (j *requestJournal) Requests(context.Context) ([]journal.Request, error) { return j.rows, j.fail }

func (j *requestJournal) CanTake(context.Context) (bool, error) { return len(j.rows) > 0, j.fail }

func (j *requestJournal) Take(ctx context.Context) (journal.Request, error) {
	for i := range j.rows {
		r := &j.rows[i]
		if r.State.Ended() {
			continue
		}
		if len(r.Takers) == 0 {
			head, err := j.Head(ctx)
			if err != nil {
				return *r, err
			}
			r.Size = head.Size
		}
		r.State, r.Takers = journal.RequestTaken, append(r.Takers, j.Owner())
		return *r, j.fail
	}
	return journal.Request{}, journal.ErrNotFound
}

func (j *requestJournal) Answer(_ context.Context, r journal.Request) error {
	row, err := j.row(r.ID)
	row.State, row.Answer = r.State, r.Answer
	return err
}

func (j *requestJournal) Withdraw(_ context.Context, id int64) error {
	row, err := j.row(id)
	row.State = journal.RequestWithdrawn
	return err
}

func (j *requestJournal) Discard(_ context.Context, id int64) error {
	row, err := j.row(id)
	row.State, row.Read = journal.RequestWithdrawn, true
	return err
}

func (j *requestJournal) MarkRead(_ context.Context, id int64) error {
	row, err := j.row(id)
	row.Read = true
	return err
}

// asked is a store and a journal with requests, and the process that works on
// them now.
type asked struct {
	t     *testing.T
	open  func() journal.Journal
	table *requestTable
	store *kvStore
	lives uint64
	*process
	journal *requestJournal
}

func newAsked(t *testing.T) *asked {
	k := &asked{t: t, open: journal.SharedMemory(), table: &requestTable{}, store: &kvStore{map[string]string{"a": "1", "b": "1"}}}
	k.next()
	return k
}

func (k *asked) next() {
	if k.process != nil {
		k.endProcess(k.t)
	}
	k.lives++
	k.process = newProcess(func() journal.Journal {
		k.journal = &requestJournal{k.open(), k.table, nil}
		return k.journal
	}, k.store, k.lives)
}

// txn commits a transaction of one call, or leaves it open.
func (k *asked) txn(commits bool, writes ...write) string {
	rec, err := k.begin(k.t.Context())
	require.NoError(k.t, err)
	_, err = k.call(k.t.Context(), rec, put(writes...))
	require.NoError(k.t, err)
	if commits {
		require.NoError(k.t, k.commit(k.t.Context(), rec))
	}
	return rec.Txn()
}

func (k *asked) ask(q revert.Request) revert.Request {
	if q.Txn == "" {
		q.Txn = q.Target
	}
	q, err := k.reverter.Ask(k.t.Context(), q)
	require.NoError(k.t, err)
	return q
}

// takes takes a request and returns it, with its report without texts that the
// journal does not have.
func (k *asked) takes() revert.Request {
	q, err := k.reverter.TakeAsked(k.t.Context())
	require.NoError(k.t, err)
	return q
}

// stored is a report as another process reads it.
func (k *asked) stored(rep revert.Report) (out revert.Report) {
	text, err := json.Marshal(rep.PerResource())
	require.NoError(k.t, err)
	require.NoError(k.t, json.Unmarshal(text, &out))
	return out
}

func (k *asked) answer(q revert.Request) revert.Request {
	_, err := k.reverter.AnswerAsked(k.t.Context(), q)
	require.NoError(k.t, err)
	q, err = k.reverter.Asked(k.t.Context(), q.Number)
	require.NoError(k.t, err)
	return q
}

func TestRequestHasItsOptions(t *testing.T) {
	k := newAsked(t)
	want := revert.Options{Resources: []string{"a"}, Cascade: true, Force: true, NoMerge: true, Overlaps: true, By: "ann"}
	txn := k.txn(true, write{"a", 2})
	q := k.ask(revert.Request{Target: txn, Node: "n_here", Resources: []string{"a"}, Cascade: true, Force: true, NoMerge: true, Overlaps: true, By: "ann"})
	require.Equal(t, want, q.Options())
	require.Equal(t, "revert", q.Verb())
	require.Equal(t, "redo", revert.Request{Redo: true}.Verb())
	all, err := k.reverter.AllAsked(t.Context())
	require.NoError(t, err)
	require.Equal(t, []revert.Request{q}, all)
	_, err = k.reverter.Ask(t.Context(), revert.Request{Target: "t_1", Force: true})
	require.ErrorContains(t, err, "needs By")
	require.NoError(t, k.reverter.WithdrawAsked(t.Context(), q.Number))
	require.NoError(t, k.reverter.MarkRead(t.Context(), q.Number))
	require.True(t, k.table.rows[0].Read)
	_, err = k.reverter.TakeAsked(t.Context())
	require.ErrorIs(t, err, journal.ErrNotFound)
}

// TestRequestDoneByDeadTaker: whoever takes a request after a process that
// carried it out and died returns the report of that process, and does nothing.
func TestRequestDoneByDeadTaker(t *testing.T) {
	for name, redo := range map[string]bool{"revert": false, "redo": true} {
		t.Run(name, func(t *testing.T) {
			k := newAsked(t)
			txn := k.txn(true, write{"a", 2}, write{"b", nil})
			work := func() (revert.Report, error) { return k.revert(t.Context(), txn) }
			if redo {
				_, err := work()
				require.NoError(t, err)
				work = func() (revert.Report, error) { return k.reverter.Redo(t.Context(), txn, "ann") }
			}
			k.ask(revert.Request{Target: txn, Redo: redo})
			k.next()
			require.Equal(t, journal.RequestTaken, k.takes().State)
			want, err := work()
			require.NoError(t, err)
			require.Len(t, want.Items, 2)
			k.next()
			_, err = k.reverter.Load(t.Context(), txn) // a reader changes nothing
			require.NoError(t, err)
			q := k.takes()
			require.Equal(t, journal.RequestDone, q.State)
			require.Equal(t, k.stored(want), k.stored(*q.Report))
			require.Equal(t, k.stored(want), *k.answer(q).Report)
		})
	}
}

// TestRequestDoneOnce: a person took back what the dead process did, and it
// stays so.
func TestRequestDoneOnce(t *testing.T) {
	k := newAsked(t)
	txn := k.txn(true, write{"a", 2})
	k.ask(revert.Request{Target: txn})
	k.takes()
	_, err := k.revert(t.Context(), txn)
	require.NoError(t, err)
	k.next()
	_, err = k.reverter.Redo(t.Context(), txn, "ann")
	require.NoError(t, err)
	q := k.takes()
	require.Equal(t, journal.RequestDone, q.State)
	require.Equal(t, revert.TxnCommitted, q.Report.State)
	require.Equal(t, "2", k.store.values["a"])
}

// TestRequestNotDoneByOthers: work before the request, of other processes, for
// another request or without an end is not that of the request.
func TestRequestNotDoneByOthers(t *testing.T) {
	k := newAsked(t)
	txn := k.txn(true, write{"a", 2})
	_, err := k.revert(t.Context(), txn)
	require.NoError(t, err)
	_, err = k.reverter.Redo(t.Context(), txn, "ann")
	require.NoError(t, err)
	k.ask(revert.Request{Target: txn})
	k.takes()
	k.next()
	_, err = k.revert(t.Context(), txn)
	require.NoError(t, err)
	_, err = k.reverter.Redo(t.Context(), txn, "ann")
	require.NoError(t, err)
	require.Equal(t, journal.RequestTaken, k.takes().State, "the process before this one did nothing")
	k.crashAt(3)
	_, err = k.revert(t.Context(), txn)
	require.ErrorIs(t, err, errProcessEnded)
	k.next()
	require.Equal(t, journal.RequestTaken, k.takes().State, "it has no end")
	_, err = k.revert(t.Context(), txn)
	require.NoError(t, err)
	require.Equal(t, "1", k.store.values["a"])
}

// TestRequestOfOpenTxn: a revert of an open transaction has no transaction of
// its own, and is found too. A call that had reverted itself is not part of it.
func TestRequestOfOpenTxn(t *testing.T) {
	k := newAsked(t)
	k.ask(revert.Request{Target: "t_unknown"})
	rec, err := k.begin(t.Context())
	require.NoError(t, err)
	k.table.rows[0].Body = []byte(fmt.Sprintf(`{"target":%q}`, rec.Txn()))
	k.table.rows[0].Txn = rec.Txn()
	k.takes()
	failed, err := k.call(t.Context(), rec, put(write{"b", 7}))
	require.NoError(t, err)
	_, err = k.reverter.RevertCall(t.Context(), rec, failed, "savepoint")
	require.NoError(t, err)
	_, err = k.call(t.Context(), rec, put(write{"a", 2}))
	require.NoError(t, err)
	k.next()
	want, err := k.revert(t.Context(), rec.Txn())
	require.NoError(t, err)
	k.next()
	q := k.takes()
	require.Equal(t, journal.RequestDone, q.State)
	require.Empty(t, q.Report.RevertTxn)
	require.Equal(t, k.stored(want), k.stored(*q.Report))
}

// TestRequestWithCascade: the report has the calls of other transactions.
func TestRequestWithCascade(t *testing.T) {
	k := newAsked(t)
	txn := k.txn(true, write{"a", 2})
	k.txn(true, write{"a", 3})
	k.ask(revert.Request{Target: txn, Cascade: true})
	k.takes()
	want, err := k.reverter.Revert(t.Context(), txn, revert.Options{Cascade: true})
	require.NoError(t, err)
	k.next()
	q := k.takes()
	require.Equal(t, k.stored(want), k.stored(*q.Report))
	require.Equal(t, "1", k.store.values["a"])
}

// TestRequestOfCall: the target is a call, and its records are erased then.
func TestRequestOfCall(t *testing.T) {
	k := newAsked(t)
	txn := k.txn(true, write{"a", 2})
	loaded, err := k.reverter.Load(t.Context(), txn)
	require.NoError(t, err)
	call := loaded.Calls[0].Ref.Call
	k.ask(revert.Request{Target: call, Txn: txn})
	k.takes()
	want, err := k.reverter.Revert(t.Context(), call, revert.Options{})
	require.NoError(t, err)
	k.next()
	require.Equal(t, k.stored(want), k.stored(*k.takes().Report))
	_, err = k.reverter.Erase(t.Context(), call, record.Erased{Cause: "asked", By: "ann", Why: "a secret"})
	require.NoError(t, err)
	k.next()
	q := k.takes()
	require.Equal(t, journal.RequestDone, q.State)
	require.Empty(t, q.Report.Items)
}

func TestRequestIsCut(t *testing.T) {
	k := newAsked(t)
	rep := revert.Report{Txn: "t_1", State: revert.TxnRevertedPartial}
	for i := range 4000 {
		item := revert.ResourceResult{Call: "c_1", Result: effect.Result{Resource: fmt.Sprintf("file://workspace/%d-%s", i, strings.Repeat("x", 300)), Outcome: effect.Restored}}
		if i%100 == 99 {
			item.Outcome, item.Overlaps = effect.Conflict, []effect.Overlap{{Line: 1, Now: strings.Repeat("y", 1000)}}
		}
		rep.Items = append(rep.Items, item)
	}
	k.ask(revert.Request{Target: "t_1"})
	q := k.takes()
	q.State, q.Report = journal.RequestDone, &rep
	got := k.answer(q)
	require.LessOrEqual(t, len(k.table.rows[0].Answer), journal.MaxRequestAnswer)
	require.Equal(t, len(rep.Items), len(got.Report.Items)+got.Omitted)
	require.Len(t, got.Report.NotReverted(), 40, "what is left is not cut")
	require.Empty(t, got.Report.NotReverted()[0].Overlaps)
	require.Len(t, rep.Items[99].Overlaps, 1, "the report itself is not changed")

	k.ask(revert.Request{Target: "t_2"})
	q = k.takes()
	q.State, q.Why = journal.RequestFailed, strings.Repeat("ü", journal.MaxRequestAnswer)
	require.True(t, strings.HasSuffix(k.answer(q).Why, "ü…"))
}

func TestRequestFaults(t *testing.T) {
	k := newAsked(t)
	broken := errors.New("broken")
	k.ask(revert.Request{Target: "t_1"})
	k.journal.fail = broken
	r := k.reverter
	_, asks := r.Ask(t.Context(), revert.Request{Target: "t_2"})
	_, reads := r.Asked(t.Context(), 1)
	_, lists := r.AllAsked(t.Context())
	_, takes := r.TakeAsked(t.Context())
	for _, err := range []error{asks, reads, lists, takes} {
		require.ErrorIs(t, err, broken)
	}
	k.journal.fail = nil
	k.table.rows = k.table.rows[:1]

	k.host.OnPoint = func(id string) error {
		if strings.HasPrefix(id, "request.") && id != "request.take" {
			return broken
		}
		return nil
	}
	_, err := r.Ask(t.Context(), revert.Request{Target: "t_2"})
	require.ErrorIs(t, err, broken)
	_, err = r.TakeAsked(t.Context())
	require.ErrorIs(t, err, broken)
	require.Equal(t, journal.RequestAsked, k.table.rows[0].State, "given back")
	_, err = r.AnswerAsked(t.Context(), revert.Request{Number: 1, State: journal.RequestDone})
	require.ErrorIs(t, err, broken)
	k.host.OnPoint = nil

	// What cannot be read fails for good, and does not stop the next request.
	k.table.rows[0].Body = []byte("{")
	q := k.takes()
	require.Equal(t, journal.RequestFailed, q.State)
	require.ErrorContains(t, errors.New(q.Why), "damaged")
	k.table.rows[0].Body, k.table.rows[0].Answer = []byte(`{"target":"t_1"}`), []byte("{")
	_, err = r.Asked(t.Context(), 1)
	require.ErrorIs(t, err, record.ErrDamaged)
}

// TestRequestOnDamage: at each read that fails, the request fails with the
// reason, and at each damaged entry.
func TestRequestOnDamage(t *testing.T) {
	k := newAsked(t)
	txn := k.txn(true, write{"a", 2})
	k.txn(true, write{"a", 3})
	k.ask(revert.Request{Target: txn, Cascade: true})
	k.takes()
	_, err := k.reverter.Revert(t.Context(), txn, revert.Options{Cascade: true})
	require.NoError(t, err)
	for _, damage := range []bool{false, true} {
		failed := 0
		for at := 1; ; at++ {
			k.next()
			r := &failingEntries{requestJournal: k.journal, at: at, damage: damage}
			k.reverter.Journal = r
			q, err := k.reverter.TakeAsked(t.Context())
			if failed++; !damage { // a disk that cannot be read says nothing about the request
				if err == nil {
					require.Equal(t, journal.RequestDone, q.State)
					require.Less(t, r.reads, at, "a read that fails is no success")
					break
				}
				require.ErrorContains(t, err, "the disk is gone")
				require.Equal(t, journal.RequestAsked, k.table.rows[0].State)
				continue
			}
			require.NoError(t, err)
			if q.State == journal.RequestDone {
				require.Less(t, r.reads, at, "a read that fails is no success")
				break
			}
			require.NotEmpty(t, q.Why)
		}
		require.Greater(t, failed, 5)
	}
}

func TestRequestWithoutItsPast(t *testing.T) {
	k := newAsked(t)
	txn := k.txn(true, write{"a", 2})
	k.ask(revert.Request{Target: txn})
	k.takes()
	k.next()
	q := k.takes()
	rep, err := k.revert(t.Context(), txn)
	require.NoError(t, err)
	q.State, q.Report = journal.RequestDone, &rep
	k.reverter.Journal = &failingEntries{requestJournal: k.journal, at: 1}
	_, err = k.reverter.AnswerAsked(t.Context(), q)
	require.ErrorContains(t, err, "the disk is gone")
	require.Equal(t, journal.RequestAsked, k.table.rows[0].State)
	k.next()
	q = k.takes()
	q.State = journal.RequestAsked
	require.Equal(t, journal.RequestAsked, k.answer(q).State)
	require.Empty(t, k.table.rows[0].Answer)
}

// failingEntries fails at its n-th entry or yields it damaged.
type failingEntries struct {
	*requestJournal
	reads, at int
	damage    bool
}

func (f *failingEntries) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		for e, err := range f.requestJournal.Entries(ctx, q) {
			if f.reads++; f.reads == f.at {
				if f.damage {
					e.Body = []byte("{")
				} else {
					err = errors.New("the disk is gone")
				}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestRequestsThatAreNone: what no node asks is listed as damaged, is refused
// when it is taken, and alone can be discarded.
func TestRequestsThatAreNone(t *testing.T) {
	k := newAsked(t)
	txn, other := k.txn(true, write{"a", 2}), k.txn(true, write{"b", 2})
	rep, err := k.revert(t.Context(), txn)
	require.NoError(t, err)
	call := ""
	for _, i := range rep.Items {
		call = i.Call
	}
	_, err = k.reverter.Redo(t.Context(), txn, "ann")
	require.NoError(t, err)
	asks := func(target, txn string) journal.Request {
		return journal.Request{ID: 1, Txn: txn, Body: []byte(fmt.Sprintf(`{"target":%q}`, target)), State: journal.RequestAsked}
	}
	for name, r := range map[string]struct {
		target, txn, why string
	}{
		"a call":                     {call, txn, ""},
		"a transaction":              {txn, txn, ""},
		"the revert":                 {rep.RevertTxn, txn, ""},
		"the revert, of itself":      {rep.RevertTxn, rep.RevertTxn, ""},
		"a call of another":          {call, other, "does not belong"},
		"another transaction":        {txn, other, "does not belong"},
		"the revert of another":      {rep.RevertTxn, other, "does not belong"},
		"the transaction of another": {txn, rep.RevertTxn, "does not belong"},
		"nothing":                    {"t_none", "t_none", "has no t_none"},
		"a text":                     {"t 1", "t 1", "no ids"},
		"an empty text":              {"", "", "no ids"},
	} {
		k.table.rows = []journal.Request{asks(r.target, r.txn)}
		all, err := k.reverter.AllAsked(t.Context())
		require.NoError(t, err, name)
		require.Equal(t, r.why != "", all[0].Damage != "", name)
		require.Contains(t, all[0].Damage, r.why, name)
		err = k.reverter.DiscardAsked(t.Context(), 1)
		if r.why == "" {
			require.ErrorIs(t, err, journal.ErrNotOwner, name)
			require.Equal(t, journal.RequestTaken, k.takes().State, name)
			continue
		}
		require.NoError(t, err, name)
		k.table.rows[0] = asks(r.target, r.txn)
		q := k.takes()
		require.Equal(t, journal.RequestFailed, q.State, name)
		require.Contains(t, q.Why, r.why, name)
	}
	require.ErrorIs(t, k.reverter.DiscardAsked(t.Context(), 99), journal.ErrNotFound)
}

func TestRequestsNeedNodes(t *testing.T) {
	p := newProcess(journal.SharedMemory(), &kvStore{}, 1)
	r, ctx := p.reverter, t.Context()
	all, err := r.AllAsked(ctx)
	require.NoError(t, err)
	require.Empty(t, all)
	_, asks := r.Ask(ctx, revert.Request{})
	_, reads := r.Asked(ctx, 1)
	_, takes := r.TakeAsked(ctx)
	_, answers := r.AnswerAsked(ctx, revert.Request{})
	for _, err := range []error{asks, reads, takes, answers, r.WithdrawAsked(ctx, 1), r.MarkRead(ctx, 1)} {
		require.ErrorContains(t, err, "no other nodes")
	}
}
