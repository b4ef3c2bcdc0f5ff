package revert_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// table holds the rows of a database. They change in transactions: all rows of
// a call, or none. The table knows which transactions committed, until it
// forgets that.
type table struct {
	rows      map[string]string
	committed map[string]bool
	forgotten bool
}

func newTable() *table {
	return &table{rows: map[string]string{"row/a": "1", "row/b": "2"}, committed: map[string]bool{}}
}

func (t *table) token(row string) effect.Token {
	if v, ok := t.rows[row]; ok {
		return effect.Token("v:" + v)
	}
	return effect.Absent
}

func (t *table) set(row string, to effect.Token) {
	delete(t.rows, row)
	if v, there := strings.CutPrefix(string(to), "v:"); there {
		t.rows[row] = v
	}
}

// faultyTable is the view that one process has of it.
type faultyTable struct {
	*table
	*faults
	name string
}

var _ revert.AtomicScheme = faultyTable{}

func (t faultyTable) Name() string { return t.name }

func (t faultyTable) Settle(_ context.Context, c effect.Change) (now effect.Token, err error) {
	return now, t.try("look at a row", func() error { now = t.token(c.Resource); return nil })
}

func (t faultyTable) Versions(_ context.Context, changes []effect.Change) (now []effect.Token, err error) {
	return now, t.try("look at rows", func() error {
		for _, c := range changes {
			now = append(now, t.token(c.Resource))
		}
		return nil
	})
}

func (t faultyTable) Plan(ctx context.Context, changes []effect.Change, _ journal.ContentStore) (steps []effect.Step, blobs []journal.Blob, err error) {
	now, err := t.Versions(ctx, changes)
	for i := len(changes) - 1; i >= 0 && err == nil; i-- {
		c := changes[i]
		if slices.ContainsFunc(steps, func(s effect.Step) bool { return s.Change.Resource == c.Resource }) {
			continue
		}
		first := changes[slices.IndexFunc(changes, func(o effect.Change) bool { return o.Resource == c.Resource })]
		step := effect.Step{Of: []int{c.N}, Plan: effect.Conflict, Why: "changed by somebody else", Change: effect.Change{Scheme: t.name, Resource: c.Resource, Pre: now[i]}}
		switch {
		case now[i].Same(first.Pre):
			step.Plan, step.Why = effect.Already, ""
		case now[i].Same(c.Post):
			step.Plan, step.Why, step.Change.Kind, step.Change.Post = effect.Restored, "", "restore", first.Pre
		}
		steps = append(steps, step)
	}
	return steps, nil, err
}

func (t faultyTable) Apply(ctx context.Context, s effect.Step, keep journal.ContentStore) effect.Result {
	return t.ApplyAll(ctx, []effect.Step{s}, keep)[0]
}

func (t faultyTable) ApplyAll(_ context.Context, steps []effect.Step, _ journal.ContentStore) (results []effect.Result) {
	err := t.try("put", func() error {
		for _, s := range steps {
			t.set(s.Change.Resource, s.Change.Post)
		}
		return nil
	})
	for _, s := range steps {
		res := effect.Result{Resource: s.Change.Resource, Outcome: effect.Restored, Now: s.Change.Post}
		if err != nil {
			res.Outcome, res.Now, res.Why = effect.Unknown, "", err.Error()
		}
		results = append(results, res)
	}
	return results
}

func (t faultyTable) TookEffect(_ context.Context, changes []effect.Change) (took, known bool, err error) {
	return took, known, t.try("ask for a commit", func() error {
		var id string
		if err := json.Unmarshal(changes[0].Inverse, &id); err != nil {
			return err
		}
		took, known = t.committed[id], !t.forgotten
		return nil
	})
}

// change starts a call that changes rows in one transaction, and optionally
// values. committed says whether that transaction commits.
func (l *testEnv) change(rec revert.Recorder, committed bool, rows []write, values ...write) string {
	id := l.start(rec, handled(), values...)
	inverse, err := json.Marshal(id)
	require.NoError(l.t, err)
	var w revert.Write
	for i, x := range rows {
		post := effect.Absent
		if x.value != nil {
			post = effect.Token(fmt.Sprint("v:", x.value))
		}
		ch := effect.Change{N: len(values) + i + 1, Scheme: "rows", Resource: x.key, Kind: "update", Pre: l.table.token(x.key), Post: post, Inverse: inverse}
		w.Records, w.Claims = append(w.Records, revert.CallRecord{Call: id, Body: &record.Changed{Change: ch}}), append(w.Claims, x.key)
		if committed {
			l.table.set(x.key, post)
		}
	}
	l.table.committed[id] = committed
	l.must(rec, w)
	return id
}

// tabled commits a transaction of calls that change rows and values.
func tabled(l *testEnv) {
	rec := l.txn()
	l.ids["t"] = rec.Txn()
	l.line(rec, l.change(rec, true, []write{{"row/a", "7"}, {"row/c", "8"}}, write{"a", 7}), done())
	l.line(rec, l.change(rec, true, []write{{"row/a", "9"}, {"row/b", nil}}), done())
	l.end(rec)
}

// unreportedCall leaves calls in flight whose transactions committed, did not commit,
// or committed beside other changes.
func unreportedCall(l *testEnv) {
	rec := l.txn()
	l.ids["t"] = rec.Txn()
	l.change(rec, true, []write{{"row/a", "7"}})
	l.change(rec, false, []write{{"row/b", "8"}})
	l.change(rec, true, []write{{"row/c", "9"}}, write{"a", 7})
}

func ofTables() []scenario {
	all := revert.Options{}
	return []scenario{
		{name: "undo of rows", prepare: tabled, do: revertRequest("t", all)},
		{name: "redo of rows", prepare: func(l *testEnv) {
			tabled(l)
			require.NoError(l.t, revertRequest("t", all)(l.t.Context(), l).err)
		}, do: redo("t")},
		{name: "recover rows", prepare: unreportedCall, do: recovered, finish: revertRequest("t", all)},
		{name: "recover rows of which it is forgotten whether they committed", prepare: func(l *testEnv) {
			unreportedCall(l)
			l.table.forgotten = true
		}, do: recovered, finish: revertRequest("t", all)},
	}
}

// TestRecoveryOfRows checks that the commit of its database transaction tells
// the outcome of a call, also if another actor changed the rows since.
func TestRecoveryOfRows(t *testing.T) {
	for _, forgotten := range []bool{false, true} {
		l := newTestEnv(t)
		unreportedCall(l)
		l.table.forgotten = forgotten
		l.table.rows["row/a"], l.table.rows["row/b"] = "theirs", "theirs"
		l.next()
		require.NoError(t, recovered(t.Context(), l).err)
		var phases []revert.Phase
		for _, c := range l.load(l.ids["t"]).Calls {
			phases = append(phases, c.Phase)
		}
		want := []revert.Phase{revert.PhaseDone, revert.PhaseFailed, revert.PhaseFailed}
		if forgotten { // and the rows have neither their pre-image nor their post-image
			want[0], want[1] = revert.PhaseUnknown, revert.PhaseUnknown
		}
		require.Equal(t, want, phases, "the last one also changed a value, so it was withdrawn")
		require.Equal(t, map[string]string{"row/a": "theirs", "row/b": "theirs"}, l.table.rows)
		require.Equal(t, before(), l.values.values)
	}
}

// TestRecoveryOfTwoTables checks a call that changes two databases, and died
// after one of them committed. It does not count as done.
func TestRecoveryOfTwoTables(t *testing.T) {
	l := newTestEnv(t)
	rec := l.txn()
	id := l.change(rec, true, []write{{"row/a", "7"}})
	other := newTable()
	l.line(rec, id, &record.Changed{Change: effect.Change{N: 2, Scheme: "others", Resource: "row/b", Kind: "update", Pre: "v:2", Post: "v:8", Inverse: json.RawMessage(`"never"`)}})
	l.next()
	l.with(faultyTable{l.table, l.faults, "rows"}, faultyTable{other, l.faults, "others"})
	found, err := l.reverter.Recover(t.Context())
	require.NoError(t, err)
	require.Len(t, found.Settled, 1)
	require.Equal(t, revert.PhaseFailed, found.Settled[0].Outcome, "%+v", found.Settled)
	require.Equal(t, newTable().rows, l.table.rows)
	require.Equal(t, newTable().rows, other.rows)
}

// TestUndoOfRowsDiesAtEveryPoint kills a revert of rows at each scheduling
// point. The next request completes it.
func TestUndoOfRowsDiesAtEveryPoint(t *testing.T) {
	run := func(at int) int {
		l := newTestEnv(t)
		tabled(l)
		l.next()
		if at < 0 {
			return l.points(func() { require.NoError(t, revertRequest("t", revert.Options{})(t.Context(), l).err) })
		}
		l.crashAt(at)
		_ = revertRequest("t", revert.Options{})(t.Context(), l)
		l.next()
		require.NoError(t, recovered(t.Context(), l).err)
		require.NoError(t, revertRequest("t", revert.Options{})(t.Context(), l).err)
		require.Equal(t, newTable().rows, l.table.rows, "killed at point %d", at)
		require.Equal(t, before(), l.values.values, "killed at point %d", at)
		require.Equal(t, revert.TxnReverted, l.load(l.ids["t"]).State())
		return 0
	}
	for at := range run(-1) {
		run(at)
	}
}
