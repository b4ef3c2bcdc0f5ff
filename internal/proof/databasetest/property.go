package databasetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// Draw draws a text. A failure reports the drawn texts and the seed.
type Draw func(t *rapid.T) string

// Property checks random statements on random tables. A revert of the
// transaction restores the database as before, a redo restores it as after.
// Each call can be reverted alone with its dependent calls. checks is the
// number of seeds unless a flag sets it, and long the number with REMIT_LONG
// set.
func Property(t *testing.T, checks, long int, open func(t T, schema string) *Setup, schema, statement Draw) {
	statcheck.Checks(t, checks, long)
	rapid.Check(t, func(rt *rapid.T) {
		w := open(rt, schema(rt))
		for range rapid.IntRange(0, 12).Draw(rt, "rows") {
			w.Try(statement(rt)) // a failed statement leaves the tables unchanged
		}
		w.trip(rt, statement)
	})
}

// sound skips a seed by which the database itself has rows with dangling
// references, as SQLite has if a key's type differs from that of its reference.
// Such a row is not restored, since its reference would dangle again.
func (w *Setup) sound(rt *rapid.T) {
	if !w.Sound() {
		rt.Skip("the database does not hold to its own foreign keys")
	}
}

func (w *Setup) trip(rt *rapid.T, statement Draw) {
	w.sound(rt)
	states, tx := []string{w.Dump()}, w.Begin()
	var ran []string
	for range rapid.IntRange(1, 8).Draw(rt, "statements") {
		text := statement(rt)
		out := w.Execute(tx, text)
		rt.Logf("%s: %s", out.Status, text)
		if out.Status != tool.StatusDone {
			require.Equal(rt, tool.StatusFailed, out.Status, "%s: %s", text, out.Text)
			require.Equal(rt, states[len(states)-1], w.Dump(), text)
			continue
		}
		w.sound(rt)
		ran, states = append(ran, out.Call), append(states, w.Dump())
	}
	require.NoError(rt, tx.Commit(context.Background()))
	last := states[len(states)-1]
	if len(ran) > 1 {
		n := rapid.IntRange(0, len(ran)-1).Draw(rt, "one")
		rep, err := w.Session.Revert(context.Background(), tx.ID(), revert.Options{Calls: ran[n : n+1]})
		switch {
		case err != nil:
			require.ErrorIs(rt, err, agent.ErrPartialRevert, "%v", rep)
		case n == len(ran)-1:
			require.Equal(rt, states[n], w.Dump(), "the last call alone")
		}
		if rep.RevertTxn != "" {
			w.Redone(rep.RevertTxn)
		}
		require.Equal(rt, last, w.Dump(), "a call reverted and redone")
	}
	w.Reverted(tx.ID())
	require.Equal(rt, states[0], w.Dump(), "reverted")
	w.Redone(tx.ID())
	require.Equal(rt, last, w.Dump(), "redone")
}
