package database

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// TestRowNames checks that rows have different names, and that no key makes a
// name long.
func TestRowNames(t *testing.T) {
	seen := map[string]bool{}
	for _, key := range [][]string{
		{"i1"}, {"t1"}, {"r1"}, {"b1"}, {"x1"}, {""}, {"ta", "tb"}, {"ta','b"}, {"ta,b"}, {"ta%27"}, {"ta'"}, {"t" + strings.Repeat("x", 300)}, {"t" + strings.Repeat("x", 301)}, {"ta/b"}, {"té"},
	} {
		name := rowResource("main", engine.Ref{Table: engine.Table{Name: "t"}, Key: key})
		require.False(t, seen[name], "%q: %s", key, name)
		require.Less(t, len(name), 300)
		require.True(t, strings.HasPrefix(name, "db://main/t/"))
		require.Equal(t, "main", nameIn(name))
		seen[name] = true
	}
	require.Equal(t, "db://main/a%2Fb/1", rowResource("main", engine.Ref{Table: engine.Table{Name: "a/b"}, Key: []string{"i1"}}))
}

// TestBadRecords checks that an unreadable record, or one without its stored
// rows, is reported and changes nothing.
func TestBadRecords(t *testing.T) {
	d, err := New(nil, nil)
	require.NoError(t, err)
	s, keep := scheme{d}, journal.Memory()
	for _, inverse := range []string{"", "[]", `{"at":"sqlite:x","kept":{"digest":"sha256:00","size":1}}`} {
		c := []effect.Change{{N: 1, Scheme: schemeName, Resource: "db://main/t/1", Inverse: []byte(inverse)}}
		_, _, err := s.Plan(t.Context(), c, keep)
		require.Error(t, err, inverse)
		res := s.Apply(t.Context(), effect.Step{Change: c[0]}, keep)
		require.Equal(t, effect.Failed, res.Outcome)
		require.NotEmpty(t, res.Why)
		_, _, err = s.TookEffect(t.Context(), c)
		require.Error(t, err, inverse)
	}
	_, err = s.Settle(t.Context(), effect.Change{Inverse: []byte("x")})
	require.Error(t, err)
	_, _, err = s.View(effect.Change{Inverse: []byte("x")})
	require.Error(t, err)
	_, err = s.Now(t.Context(), "")
	require.Error(t, err)
	_, err = s.Open(t.Context(), "")
	require.Error(t, err)
}

// TestNotAtHand checks that the report names a missing database, and what to
// do.
func TestNotAtHand(t *testing.T) {
	d, err := New([]Kind{{}}, nil)
	require.NoError(t, err)
	s := scheme{d}
	c := []effect.Change{{N: 1, Scheme: schemeName, Resource: "db://main/t/1", Inverse: []byte(`{"at":"sqlite:/nowhere","mark":{"id":"d_1","op":"x"},"of":{"table":"t","cols":["a"],"key":[0]},"was":["i1"],"will":null}`)}}
	steps, _, err := s.Plan(t.Context(), c, journal.Memory())
	require.NoError(t, err)
	require.Equal(t, effect.Failed, steps[0].Plan)
	require.Contains(t, steps[0].Why, "--database main=LOCATION")
	token, err := s.Settle(t.Context(), c[0])
	require.NoError(t, err)
	require.False(t, token.Known())
	_, known, err := s.TookEffect(t.Context(), c)
	require.Error(t, err)
	require.False(t, known)
	for _, named := range []map[string]string{{"a b": "sqlite:x"}, {"a": "sqlite:x"}, {"a": "x"}} {
		_, err := New([]Kind{{}}, named)
		require.Error(t, err)
	}
}

// TestJudge checks that a row that can still appear does not count as absent. A
// row of a change that never happened does not belong to the call.
func TestJudge(t *testing.T) {
	table := engine.Table{Name: "t", Cols: []string{"a"}, Key: []int{0}}
	one := func(fate engine.TxnOutcome, now engine.Outcome) effect.Outcome {
		r := &row{inverse: inverse{Table: table, Was: engine.Image{"i1"}, Will: engine.Image{"i2"}}, outcome: fate, now: now}
		r.Pre, r.Post = token(table, r.Was), token(table, r.Will)
		return judge([]*row{r}, nil).Plan
	}
	require.Equal(t, effect.Unknown, one(engine.Running, engine.Outcome{Now: engine.Image{"i1"}}))
	require.Equal(t, effect.Already, one(engine.Aborted, engine.Outcome{Now: engine.Image{"i9"}}))
	require.Equal(t, effect.Already, one(engine.Lost, engine.Outcome{Now: engine.Image{"i1"}}))
	require.Equal(t, effect.Restored, one(engine.Committed, engine.Outcome{Now: engine.Image{"i2"}}))
	require.Equal(t, effect.Conflict, one(engine.Committed, engine.Outcome{Now: engine.Image{"i9"}}))
	require.Equal(t, effect.Conflict, one(engine.Committed, engine.Outcome{Why: "other columns"}))
}
