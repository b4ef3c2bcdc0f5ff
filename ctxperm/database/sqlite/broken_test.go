package sqlite

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
)

var all = engine.Page{Max: 100, Bytes: 1 << 20}

func allow(context.Context, []engine.Access) error { return nil }

// opened creates a file with a table, and the engine for it.
func opened(t *testing.T, schema string) (*file, *sql.DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	_, err = db.Exec(schema)
	require.NoError(t, err)
	e, _, err := kind{}.Open("sqlite:" + path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	f, ok := e.(*file)
	require.True(t, ok)
	return f, db
}

// TestNotADatabase checks that every operation reports a file that is no
// database, and does not change it.
func TestNotADatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	text := []byte("this is a text and no database, and long enough for nobody to take it for an empty one, as it has more than a hundred bytes")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	e, _, err := kind{}.Open("sqlite:" + path)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	_, err = e.Identity(t.Context())
	require.ErrorContains(t, err, "a.db")
	_, err = e.TxnOutcomeOf(t.Context(), engine.TxnMarker{})
	require.Error(t, err)
	_, err = e.Query(t.Context(), engine.Statement{SQL: "SELECT 1 FROM sqlite_schema"}, allow, all)
	require.Error(t, err)
	ref := engine.Ref{Table: engine.Table{Name: "t", Cols: []string{"a"}, Key: []int{0}}, Key: []string{"i1"}}
	_, err = e.Read(t.Context(), []engine.Ref{ref})
	require.Error(t, err)
	_, err = e.Restore(t.Context(), []engine.RowRestore{{Ref: ref}})
	require.Error(t, err)
	if w, err := e.Begin(t.Context()); err == nil {
		_, err = w.Execute(t.Context(), engine.Statement{SQL: "INSERT INTO t VALUES (1)"}, allow, all)
		require.Error(t, err)
		w.Rollback()
		w.Rollback()
		_, err = w.Query(t.Context(), engine.Statement{SQL: "SELECT 1"}, allow, all)
		require.ErrorContains(t, err, "has ended")
		_, err = w.Execute(t.Context(), engine.Statement{SQL: "SELECT 1"}, allow, all)
		require.ErrorContains(t, err, "has ended")
		_, _, err = w.Prepare(t.Context(), "op")
		require.ErrorContains(t, err, "has ended")
	}
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, text, now)
}

// TestTxnOutcomes checks the outcomes that the table records, and those that it no
// longer has.
func TestTxnOutcomes(t *testing.T) {
	f, db := opened(t, "CREATE TABLE t (a INTEGER PRIMARY KEY)")
	change := func(text string) engine.TxnMarker {
		w, err := f.Begin(t.Context())
		require.NoError(t, err)
		defer w.Rollback()
		_, err = w.Execute(t.Context(), engine.Statement{SQL: text}, allow, all)
		require.NoError(t, err)
		_, m, err := w.Prepare(t.Context(), text)
		require.NoError(t, err)
		require.NoError(t, w.Commit(t.Context()))
		return m
	}
	fate := func(m engine.TxnMarker) engine.TxnOutcome {
		is, err := f.TxnOutcomeOf(t.Context(), m)
		require.NoError(t, err)
		return is
	}
	first := change("INSERT INTO t VALUES (1)")
	require.Equal(t, engine.Committed, fate(first))
	other := first
	other.Op = "another"
	require.Equal(t, engine.Aborted, fate(other), "its number went to another one")
	other.Seq = first.Seq + 1
	require.Equal(t, engine.Aborted, fate(other), "its number comes next")
	other.Seq = first.Seq + 9
	require.Equal(t, engine.Lost, fate(other), "a number that was not given out: an older state was redone")
	last := change("INSERT INTO t VALUES (2)")
	_, err := db.Exec("DELETE FROM remit_ops WHERE seq = ?", first.Seq)
	require.NoError(t, err)
	require.Equal(t, engine.Lost, fate(first), "pruned")
	require.Equal(t, engine.Committed, fate(last))
	last.Identity = "d_another"
	_, err = f.TxnOutcomeOf(t.Context(), last)
	require.ErrorIs(t, err, errOther)
}

// TestBadCells checks that a record with unreadable values changes nothing.
func TestBadCells(t *testing.T) {
	f, db := opened(t, "CREATE TABLE t (a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, 2)")
	table := engine.Table{Name: "t", Cols: []string{"a", "b"}, Key: []int{0}}
	now := engine.Image{"i1", "i2"}
	for _, r := range []engine.RowRestore{
		{Ref: engine.Ref{Table: table, Key: []string{"z"}}, From: now},
		{Ref: table.Ref(now), From: now, Want: engine.Image{"i1", "z"}},
		{Ref: table.Ref(now), From: now, Want: engine.Image{"i1", "iX"}},
	} {
		_, err := f.Restore(t.Context(), []engine.RowRestore{r})
		require.Error(t, err)
		var b int
		require.NoError(t, db.QueryRow("SELECT b FROM t").Scan(&b))
		require.Equal(t, 2, b)
	}
	_, err := f.Read(t.Context(), []engine.Ref{{Table: table, Key: []string{"z"}}})
	require.Error(t, err)
	out, err := f.Read(t.Context(), []engine.Ref{{Table: engine.Table{Name: "sqlite_schema", Cols: []string{"a"}, Key: []int{0}}, Key: []string{"i1"}}})
	require.NoError(t, err)
	require.NotEmpty(t, out[0].Why)
}

// TestChangedSince checks that a row with another version than planned stays.
func TestChangedSince(t *testing.T) {
	f, db := opened(t, "CREATE TABLE t (a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, 2), (2, 2)")
	table := engine.Table{Name: "t", Cols: []string{"a", "b"}, Key: []int{0}}
	out, err := f.Restore(t.Context(), []engine.RowRestore{
		{Ref: table.Ref(engine.Image{"i1", "i3"}), From: engine.Image{"i1", "i3"}, Want: engine.Image{"i1", "i9"}},
		{Ref: table.Ref(engine.Image{"i2", "i2"}), From: engine.Image{"i2", "i2"}, Want: engine.Image{"i2", "i9"}},
	})
	require.NoError(t, err)
	require.Contains(t, out[0].Why, "changed after the revert was planned")
	require.Empty(t, out[1].Why)
	var sum int
	require.NoError(t, db.QueryRow("SELECT sum(b) FROM t").Scan(&sum))
	require.Equal(t, 11, sum)
}

// TestParameters checks parameters by name and by position, and that booleans
// are numbers.
func TestParameters(t *testing.T) {
	f, _ := opened(t, "CREATE TABLE t (a)")
	_, err := f.Query(t.Context(), engine.Statement{SQL: "SELECT ?, :a", Args: []any{int64(1)}, Named: map[string]any{"a": int64(1)}}, allow, all)
	require.ErrorIs(t, err, engine.ErrRefused)
	r, err := f.Query(t.Context(), engine.Statement{SQL: "SELECT ?, ? -- and no more", Args: []any{true, false}}, allow, all)
	require.NoError(t, err)
	require.Equal(t, [][]any{{int64(1), int64(0)}}, r.Rows)
	r, err = f.Query(t.Context(), engine.Statement{SQL: "VALUES (1), (2), (3) /* open"}, allow, engine.Page{Skip: 1, Max: 1, Bytes: 1000})
	require.NoError(t, err)
	require.Equal(t, [][]any{{int64(2)}}, r.Rows)
	require.True(t, r.More)
	r, err = f.Query(t.Context(), engine.Statement{SQL: "SELECT printf('%50s', '') UNION ALL SELECT printf('%50s', '')"}, allow, engine.Page{Max: 9, Bytes: 80})
	require.NoError(t, err)
	require.Len(t, r.Rows, 1)
	require.True(t, r.More)
	_, err = f.Query(t.Context(), engine.Statement{SQL: "SELECT 'open"}, allow, all)
	require.Error(t, err)
}

// TestChangingWindow checks that a statement that changes rows runs to its end,
// for any page of its result.
func TestChangingWindow(t *testing.T) {
	f, db := opened(t, "CREATE TABLE t (a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, 'x'), (2, 'x'), (3, 'x')")
	for _, win := range []engine.Page{{Max: 1, Bytes: 1000}, {Max: 9, Bytes: 80}, {Skip: 1, Max: 9, Bytes: 1000}} {
		w, err := f.Begin(t.Context())
		require.NoError(t, err)
		r, err := w.Execute(t.Context(), engine.Statement{SQL: "UPDATE t SET b = printf('%50s', b) RETURNING a, b"}, allow, win)
		require.NoError(t, err)
		require.Equal(t, int64(3), r.Affected)
		changes, _, err := w.Prepare(t.Context(), "op")
		require.NoError(t, err)
		require.Len(t, changes, 3)
		w.Rollback()
		var n int
		require.NoError(t, db.QueryRow("SELECT count(*) FROM t WHERE b = 'x'").Scan(&n))
		require.Equal(t, 3, n)
	}
}
