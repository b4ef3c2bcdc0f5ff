package revert_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// testEnv is a journal, a store, and the process that works on them now.
type testEnv struct {
	t      *testing.T
	open   func() journal.Journal
	values *valueStore
	till   *till
	table  *table
	lives  uint64
	*process
	faults *faults
	ids    map[string]string // names that a scenario has set
	head   journal.Head      // of the journal, at some time
}

func newTestEnv(t *testing.T) *testEnv { return newTestEnvOn(t, journal.SharedMemory()) }

func newTestEnvOn(t *testing.T, open func() journal.Journal) *testEnv {
	l := &testEnv{t: t, open: open, values: newValueStore(), till: newTill(), table: newTable(), ids: map[string]string{}}
	l.next()
	return l
}

// next continues in another process, after the end of the current one.
func (l *testEnv) next() {
	if l.process != nil {
		l.endProcess(l.t)
	}
	l.lives++
	f := &faults{left: -1, skipsBarrier: l.faults != nil && l.faults.skipsBarrier}
	l.faults = f
	l.process = newProcess(func() journal.Journal { return &faulty{l.open(), f} }, &l.values.kvStore, l.lives)
	tools, schemes := faultyTools{f, l.till}, []revert.Scheme{valueStoreView{l.values, f}, faultyTable{l.table, f, "rows"}}
	l.reverter.EnvironmentFor = func(_ context.Context, session string) (w revert.Environment, err error) {
		return w, f.try("find the ways", func() error {
			w = revert.Environment{Namespace: session, Schemes: schemes, ToolReverter: tools, Prober: tools}
			return nil
		})
	}
}

func (l *testEnv) txn() revert.Recorder {
	rec, err := l.begin(l.t.Context())
	require.NoError(l.t, err)
	return rec
}

func (l *testEnv) must(rec revert.Recorder, w revert.Write) {
	w.Durable = true
	require.NoError(l.t, rec.Write(l.t.Context(), w))
}

func (l *testEnv) line(rec revert.Recorder, call string, bodies ...record.Body) {
	var w revert.Write
	for _, b := range bodies {
		w.Records = append(w.Records, revert.CallRecord{Call: call, Body: b})
	}
	l.must(rec, w)
}

// prepared sets the ID and the common fields of a call.
func (l *testEnv) prepared(s *record.Started) (id string) {
	l.calls++
	id = fmt.Sprintf("c_%d_%d", l.lives, l.calls)
	s.Sequence, s.Key, s.Declared, s.Input, s.Decision = l.calls, "key-"+id, true, json.RawMessage(`{}`), json.RawMessage(`{}`)
	s.Tool.Name = "put"
	return id
}

// hold queues a call until its transaction commits.
func (l *testEnv) hold(rec revert.Recorder, s *record.Started, idempotent bool) string {
	id := l.prepared(s)
	l.line(rec, id, &record.Held{Started: *s, Idempotent: idempotent})
	return id
}

// release starts a held call.
func (l *testEnv) release(rec revert.Recorder, id string) {
	started := l.call(id).Held.Started
	l.line(rec, id, &started)
}

// start begins a call that claims and changes what writes say. It does not end
// it.
func (l *testEnv) start(rec revert.Recorder, s *record.Started, writes ...write) string {
	id := l.prepared(s)
	l.line(rec, id, s)
	shelf := valueStoreView{l.values, l.faults}
	for i, x := range writes {
		will, blobs, err := shelf.keepNow(l.t.Context(), x.key, l.journal)
		require.NoError(l.t, err)
		post := effect.Absent
		if x.value != nil {
			post = effect.Token(fmt.Sprint("v:", x.value))
		}
		ch := shelf.change(i+1, x.key, "write", l.values.token(x.key), post, will, nil)
		var w valueInverse
		require.NoError(l.t, json.Unmarshal(ch.Inverse, &w))
		l.must(rec, revert.Write{Records: []revert.CallRecord{{Call: id, Body: &record.Changed{Change: ch}}}, Blobs: blobs, Claims: []string{x.key}})
		l.values.set(x.key, post)
	}
	return id
}

func handled() *record.Started {
	return &record.Started{Class: effect.Reversible, Confinement: "handles"}
}

func startedPayment() *record.Started {
	return &record.Started{Class: effect.Compensable, Confinement: "trusted", Reverts: true}
}

func done() *record.Done { return &record.Done{Output: json.RawMessage("null")} }

// put runs a whole call that changes values.
func (l *testEnv) put(rec revert.Recorder, writes ...write) string {
	id := l.start(rec, handled(), writes...)
	l.line(rec, id, done())
	return id
}

// pay runs a whole call of a tool with its own Revert.
func (l *testEnv) pay(rec revert.Recorder) string {
	id := l.start(rec, startedPayment())
	l.till.booked["key-"+id] = true
	l.line(rec, id, done(), &record.Verified{Phase: "call", Presence: effect.PresenceApplied, OK: true})
	return id
}

func (l *testEnv) end(rec revert.Recorder) { require.NoError(l.t, l.commit(l.t.Context(), rec)) }

// worked makes a committed transaction that turns before into after, and pays.
func (l *testEnv) worked() (txn string) {
	rec := l.txn()
	l.put(rec, write{"a", 7}, write{"c", 8})
	l.pay(rec)
	l.ids["second"] = l.put(rec, write{"a", 9}, write{"b", nil})
	l.end(rec)
	return rec.Txn()
}

// finalState is the final state: the values of the store, and the state of each
// transaction on the journal.
type finalState struct {
	Values     map[string]string
	Lifted     map[string]string
	Rows       map[string]string
	Paid       int
	Txns       map[string]string
	Unfinished int
}

func (l *testEnv) situation() finalState {
	ctx := l.t.Context()
	s := finalState{Values: maps.Clone(l.values.values), Lifted: maps.Clone(l.values.lifted), Rows: maps.Clone(l.table.rows), Paid: len(l.till.given), Txns: map[string]string{}}
	for e, err := range l.journal.Entries(ctx, journal.Query{Kinds: []record.Kind{record.KindBegun}}) {
		require.NoError(l.t, err)
		txn, err := revert.Load(ctx, l.journal, e.Header.Txn)
		require.NoError(l.t, err)
		if txn.Reverts+txn.Redoes != "" {
			continue // the number of links does not matter
		}
		says := string(txn.State())
		for _, c := range txn.Calls {
			if c.HasEffects() { // the end of a call without effects does not matter
				says += fmt.Sprintf(" %s:%s", c.Ref.Call, c.Phase)
			}
		}
		s.Txns[txn.ID] = says
	}
	open, err := l.journal.Unfinished(ctx)
	require.NoError(l.t, err)
	s.Unfinished = len(open)
	var found []revert.Problem
	_, err = revert.Fsck(ctx, l.journal, revert.FsckOptions{Found: func(p revert.Problem) { found = append(found, p) }})
	require.NoError(l.t, err, "%v", found)
	return s
}
