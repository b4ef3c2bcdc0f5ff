package postgres

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
	"github.com/remit-dev/remit/internal/proof/pgtest"
)

// TestNames checks that two tables never have one name, and that names
// round-trip.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, tt := range [][3]string{
		{"public", "users", `"public"."users"`},
		{"s", "users", `"s"."users"`},
		{"public", "s.users", `"public"."s.users"`},
		{"public", `a"b`, `"public"."a""b"`},
		{"a.b", `c".d`, `"a.b"."c"".d"`},
		{"public", `"s".users`, `"public"."""s"".users"`},
		{"Ü", "ä ö", `"Ü"."ä ö"`},
	} {
		name := nameOf(tt[0], tt[1])
		require.False(t, seen[name])
		seen[name] = true
		require.Equal(t, tt[2], split(name), name)
	}
}

// TestLocation checks that the recorded location leads to the database and
// holds no password.
func TestLocation(t *testing.T) {
	for at, want := range map[string]string{
		"postgres://agent:secret@db.example.com/app?sslmode=require":                      "postgres://agent@db.example.com:5432/app?sslmode=require",
		"postgresql://db.example.com:6000/app?user=agent&password=secret&sslmode=disable": "postgres://agent@db.example.com:6000/app?sslmode=disable",
		"postgres://agent@/app?host=/run/pg&port=77&passfile=/x":                          "postgres://agent@/app?host=%2Frun%2Fpg&port=77",
	} {
		_, public, err := kind{}.Open(at)
		require.NoError(t, err)
		require.Equal(t, want, public)
		_, again, err := kind{}.Open(public)
		require.NoError(t, err)
		require.Equal(t, public, again)
	}
	for _, at := range []string{"postgres:", "postgres://a:secret@b/c?sslmode=never", "postgres://%zz:secret@/"} {
		_, _, err := kind{}.Open(at)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "secret")
	}
}

func allow(context.Context, []engine.Access) error { return nil }

// TestTxnOutcome checks a committed transaction, a rolled back one, and a running
// one, whose connection is then closed.
func TestTxnOutcome(t *testing.T) {
	owner, agent := pgtest.Database(t)
	pgtest.Exec(t, owner, "CREATE TABLE a (n int PRIMARY KEY); GRANT ALL ON a TO agent")
	e, _, err := kind{}.Open(agent)
	require.NoError(t, err)
	change := func() (engine.Tx, engine.TxnMarker) {
		w, err := e.Begin(t.Context())
		require.NoError(t, err)
		_, err = w.Execute(t.Context(), engine.Statement{SQL: "INSERT INTO a SELECT count(*) FROM a"}, allow, engine.Page{Max: 1, Bytes: 100})
		require.NoError(t, err)
		_, m, err := w.Prepare(t.Context(), "op")
		require.NoError(t, err)
		return w, m
	}
	fate := func(m engine.TxnMarker) engine.TxnOutcome {
		f, err := e.TxnOutcomeOf(t.Context(), m)
		require.NoError(t, err)
		return f
	}
	w, m := change()
	require.NoError(t, w.Commit(t.Context()))
	require.Equal(t, engine.Committed, fate(m))
	w, m = change()
	w.Rollback()
	require.Equal(t, engine.Aborted, fate(m))
	w, m = change()
	require.Equal(t, engine.Aborted, fate(m), "it ran, and was ended")
	require.Error(t, w.Commit(t.Context()))
	require.Equal(t, "0\n", pgtest.Rows(t, owner, "SELECT n FROM a"))
	later := m
	later.Xid = "99999999999"
	require.Equal(t, engine.Lost, fate(later), "a number that was not given out")
	m.Identity = "another"
	_, err = e.TxnOutcomeOf(t.Context(), m)
	require.ErrorIs(t, err, errOther)
	require.Equal(t, "0\n", pgtest.Rows(t, owner, "SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal"))
}

// TestArguments checks that an invalid parameter value is refused.
func TestArguments(t *testing.T) {
	_, err := arguments(engine.Statement{Args: []any{struct{}{}}})
	require.ErrorIs(t, err, engine.ErrRefused)
	got, err := arguments(engine.Statement{Args: []any{nil, true, int64(1), 0.5, "x", []byte{255}}})
	require.NoError(t, err)
	require.Equal(t, [][]byte{nil, []byte("true"), []byte("1"), []byte("0.5"), []byte("x"), []byte(`\xff`)}, got)
}
