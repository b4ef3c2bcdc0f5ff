package revert_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/simjournal"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// fixedFinder is a ChangeFinder with fixed results.
type fixedFinder struct {
	revert.Scheme

	lab      *testEnv
	found    map[string]any // pre-image content by changed resource
	lost     string
	err      error
	released int
	pending  func() int // number of records that are not durable
}

func (*fixedFinder) Name() string { return "sought" }

func (s *fixedFinder) Find(ctx context.Context, c revert.Call, keep journal.ContentStore) (f revert.DiscoveredChanges, err error) {
	if c.Notes["kept"] == nil || s.err != nil {
		return f, s.err
	}
	shelf := valueStoreView{s.lab.values, s.lab.faults}
	for _, key := range []string{"a", "b", "z"} {
		was, ok := s.found[key]
		if !ok {
			continue
		}
		now := s.lab.values.token(key)
		s.lab.values.set(key, token(was))
		will, blobs, err := shelf.keepNow(ctx, key, keep)
		require.NoError(s.lab.t, err)
		s.lab.values.set(key, now)
		f.Changes, f.Blobs = append(f.Changes, shelf.change(0, key, "write", token(was), now, will, nil)), append(f.Blobs, blobs...)
	}
	f.Lost, f.Release = s.lost, func() {
		s.released++
		require.False(s.lab.t, len(s.found) > 0 && s.pending() > 0, "what was kept is dropped before what was found is durable")
	}
	return f, nil
}

func token(value any) effect.Token {
	if value == nil {
		return effect.Absent
	}
	return effect.Token(fmt.Sprint("v:", value))
}

// seeking adds the seeker's kind of resource to the lab.
func (l *testEnv) seeking(s *fixedFinder) {
	s.lab = l
	ways := l.reverter.EnvironmentFor
	l.reverter.EnvironmentFor = func(ctx context.Context, session string) (revert.Environment, error) {
		w, err := ways(ctx, session)
		w.Schemes = append(w.Schemes, s)
		return w, err
	}
}

// TestFind checks the recovery of a call whose process died while another
// program acted for it. One step writes the discovered changes and the unknown
// outcome. Recovery reverts nothing by itself; a person can revert all of it.
func TestFind(t *testing.T) {
	begin := func(s *fixedFinder) (*testEnv, string, string) {
		store := simjournal.NewStore()
		l := newTestEnvOn(t, func() journal.Journal { return store.Open() })
		l.values.set("a", "v:acted")
		l.values.set("z", "v:acted")
		rec := l.txn()
		started := handled()
		id := l.prepared(started)
		l.line(rec, id, started, &record.RevertNote{Key: "kept", Value: json.RawMessage(`[]`)})
		l.next()
		l.seeking(s)
		s.pending = store.Pending
		return l, rec.Txn(), id
	}
	recover1 := func(l *testEnv) revert.RecoveredCall {
		rec, err := l.reverter.Recover(t.Context())
		require.NoError(t, err)
		require.Len(t, rec.Settled, 1)
		return rec.Settled[0]
	}

	s := &fixedFinder{found: map[string]any{"a": "old", "z": nil}}
	l, txn, id := begin(s)
	other := l.txn()
	l.must(other, revert.Write{Claims: []string{"z"}})
	got := recover1(l)
	require.Equal(t, revert.PhaseUnknown, got.Outcome)
	require.Contains(t, got.Why, "2 files differ from before")
	require.Equal(t, 1, s.released)
	require.EqualValues(t, "v:acted", l.values.token("a"))
	require.Len(t, l.call(id).Changes, 2)
	claim := func(key string) error {
		return other.Write(t.Context(), revert.Write{Claims: []string{key}})
	}
	require.ErrorIs(t, claim("a"), journal.ErrClaimed)
	require.NoError(t, claim("z"), "it is the other's as before")
	require.NoError(t, l.commit(t.Context(), other))
	rep, err := l.reverter.Revert(t.Context(), txn, revert.Options{})
	require.NoError(t, err)
	require.True(t, rep.Complete(), "%v", rep.NotReverted())
	require.EqualValues(t, "v:old", l.values.token("a"))
	require.Equal(t, effect.Absent, l.values.token("z"))

	s = &fixedFinder{lost: "the copy is gone"}
	l, _, _ = begin(s)
	got = recover1(l)
	require.Equal(t, revert.PhaseUnknown, got.Outcome)
	require.Contains(t, got.Why, "the copy is gone")

	s = &fixedFinder{}
	l, _, _ = begin(s)
	require.Equal(t, revert.PhaseFailed, recover1(l).Outcome)
	require.Equal(t, 1, s.released)

	s = &fixedFinder{found: map[string]any{"a": "old"}, err: errors.New("not now")}
	l, _, id = begin(s)
	_, err = l.reverter.Recover(t.Context())
	require.ErrorContains(t, err, "not now")
	require.Equal(t, revert.PhaseStarted, l.call(id).Phase)
	require.Zero(t, s.released)
	s.err = nil
	require.Equal(t, revert.PhaseUnknown, recover1(l).Outcome)
}
