package revert_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/toolstate"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// unreadableKind is a journal that fails queries for one kind of entry alone: for the
// entry, or for its content.
type unreadableKind struct {
	journal.Journal
	kind record.Kind
	body bool
}

var errUnreadable = errors.New("it cannot be read")

func (s unreadableKind) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		for e, err := range s.Journal.Entries(ctx, q) {
			if slices.Equal(q.Kinds, []record.Kind{s.kind}) && e.Erased == "" {
				if e.Body = []byte("{"); !s.body {
					e, err = record.Entry{}, errUnreadable
				}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// through returns a process's reverter on another journal.
func (p *process) through(j journal.Journal, ways func(context.Context, string) (revert.Environment, error)) *revert.Reverter {
	return &revert.Reverter{Journal: j, Host: p.host, EnvironmentFor: ways}
}

// TestRedoReadsOtherReverts checks that a revert of another call does
// not block a redo if its records were erased, and blocks it if they are
// unreadable.
func TestRedoReadsOtherReverts(t *testing.T) {
	ctx := t.Context()
	p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	first, second := p.one(t, "a", 1), p.one(t, "b", 2)
	for _, id := range []string{second, first} {
		_, err := p.reverter.Revert(ctx, id, revert.Options{})
		require.NoError(t, err)
	}
	for _, body := range []bool{false, true} {
		_, err := p.through(unreadableKind{p.journal, record.KindReverting, body}, p.reverter.EnvironmentFor).Redo(ctx, first, "kim")
		require.Error(t, err)
	}
	txn, err := revert.Load(ctx, p.journal, second)
	require.NoError(t, err)
	_, err = p.reverter.Erase(ctx, txn.Calls[0].Ref.Call, record.Erased{By: "kim", Why: "asked"})
	require.NoError(t, err)
	rep, err := p.reverter.Redo(ctx, first, "kim")
	require.NoError(t, err)
	require.True(t, rep.Complete(), "%+v", rep)
	require.Equal(t, "1", p.store.values["a"])
}

// stateless is a scheme that cannot tell the result of its steps.
type stateless struct{ revert.Scheme }

func (stateless) State(effect.Step) (record.State, error) { return record.State{}, errUnreadable }

// holding commits a call that leaves a state.
func (p *process) holding(t *testing.T, content string) string {
	ctx := t.Context()
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	was, err := toolstate.Newest(ctx, p.journal, rec.Session(), "count")
	require.NoError(t, err)
	is, blob, err := toolstate.Keep(ctx, p.journal, rec.Session(), "count", json.RawMessage(content))
	require.NoError(t, err)
	is.Of = record.CallRef{Txn: rec.Txn(), Call: "c_" + rec.Txn()}
	change, err := toolstate.Change(was, is)
	require.NoError(t, err)
	change.N = 1
	started := handled()
	started.Key, started.Input, started.Decision = "k", json.RawMessage(`{}`), json.RawMessage(`{}`)
	var lines []revert.CallRecord
	for _, b := range []record.Body{started, &record.Changed{Change: change}} {
		lines = append(lines, revert.CallRecord{Call: is.Of.Call, Body: b})
	}
	lines = append(lines, revert.CallRecord{Call: is.ID(p.host), Body: &is}, revert.CallRecord{Call: is.Of.Call, Body: &record.Done{Output: json.RawMessage("null")}})
	require.NoError(t, rec.Write(ctx, revert.Write{Records: lines, Blobs: []journal.Blob{blob}, Durable: true}))
	require.NoError(t, p.commit(ctx, rec))
	return rec.Txn()
}

func (p *process) held(t *testing.T) string {
	_, content, err := toolstate.Read(t.Context(), p.journal, "s_1", "count")
	require.NoError(t, err)
	return string(content)
}

// TestStatesOfCalls checks that a state is reverted with its call. If the
// earlier state is unknown, the revert does not report success. Prune keeps the
// newest state, and fails if it cannot tell which one that is.
func TestStatesOfCalls(t *testing.T) {
	ctx := t.Context()
	p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	ways := func(s revert.Scheme) func(context.Context, string) (revert.Environment, error) {
		return func(context.Context, string) (revert.Environment, error) {
			return revert.Environment{Schemes: []revert.Scheme{s}}, nil
		}
	}
	p.reverter = p.through(p.journal, ways(toolstate.Scheme(p.journal)))
	p.holding(t, "1")
	last := p.holding(t, "2")
	p.holding(t, "3")
	third := p.holding(t, "4")

	rep, err := p.through(p.journal, ways(stateless{toolstate.Scheme(p.journal)})).Revert(ctx, third, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, effect.Failed, rep.Items[0].Outcome, "%+v", rep)
	require.Contains(t, rep.Items[0].Why, errUnreadable.Error())
	require.Equal(t, "4", p.held(t))
	rep, err = p.reverter.Revert(ctx, last, revert.Options{Cascade: true})
	require.NoError(t, err)
	require.True(t, rep.Complete(), "%+v", rep)
	require.Equal(t, "1", p.held(t))
	_, err = p.reverter.Redo(ctx, rep.RevertTxn, "kim")
	require.NoError(t, err)
	require.Equal(t, "4", p.held(t))

	for _, body := range []bool{false, true} {
		_, err = p.through(unreadableKind{p.journal, record.KindState, body}, p.reverter.EnvironmentFor).Prune(ctx, revert.Retention{})
		require.Error(t, err)
	}
	for range 2 {
		p.prune(t, revert.Retention{})
		require.Equal(t, "4", p.held(t))
	}
	p.holding(t, "5")
	p.prune(t, revert.Retention{})
	require.Equal(t, "5", p.held(t))
	txn, err := revert.Load(ctx, p.journal, p.holding(t, "6"))
	require.NoError(t, err)
	_, err = p.reverter.Erase(ctx, txn.Calls[0].Ref.Call, record.Erased{By: "kim", Why: "asked"})
	require.NoError(t, err)
	require.Empty(t, p.held(t))
}

// TestInconsistentState checks that a state counts only with its own
// ID, session and version.
func TestInconsistentState(t *testing.T) {
	p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	rec, err := p.begin(t.Context())
	require.NoError(t, err)
	s := record.State{Session: "s_1", Tool: "count", Version: effect.Absent}
	id := s.ID(p.host)
	s.Tool = "other"
	require.NoError(t, rec.Write(t.Context(), revert.Write{Records: []revert.CallRecord{{Call: id, Body: &s}}, Durable: true}))
	_, err = revert.Load(t.Context(), p.journal, rec.Txn())
	require.ErrorIs(t, err, record.ErrDamaged)
}
