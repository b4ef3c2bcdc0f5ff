package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/proof/databasetest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// TestConflicts checks that changes by another client after the call stay, row
// by row, and are reported.
func TestConflicts(t *testing.T) { databasetest.Conflicts(t, anew(newPlace(t))) }

const family = `CREATE TABLE p (id int PRIMARY KEY, u text UNIQUE, g text GENERATED ALWAYS AS (u || '!') STORED);
	CREATE TABLE k (a int, b text, p int REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE, n int GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (b, a));
	CREATE TABLE log (n serial PRIMARY KEY, what text, at timestamptz DEFAULT now(), more jsonb, bits bytea);
	INSERT INTO p VALUES (1, 'x'), (2, 'y'); INSERT INTO k VALUES (1, 'é', 1), (2, 'b', 1), (3, 'c', 2);
	ALTER TABLE k OWNER TO agent; ALTER TABLE p OWNER TO agent; ALTER TABLE log OWNER TO agent;
	CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log(what, more, bits) VALUES (TG_OP, to_jsonb(OLD), '\x00ff'); RETURN COALESCE(NEW, OLD); END $$;
	CREATE TRIGGER note BEFORE UPDATE OR DELETE ON k FOR EACH ROW EXECUTE FUNCTION note();
	CREATE CONSTRAINT TRIGGER late AFTER INSERT ON p DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note();`

// TestFamily reverts and redoes cascades, triggers, deferred triggers,
// identities and generated columns with the rows. The tables' triggers stay
// unchanged.
func TestFamily(t *testing.T) {
	w := newTestEnv(t, family)
	before, tx := w.Dump(), w.Begin()
	states := []string{before}
	for _, text := range []string{
		"UPDATE p SET id = id + 10", "DELETE FROM p WHERE u = 'y'", "INSERT INTO p VALUES (5, 'z'), (6, NULL)", "INSERT INTO k VALUES (9, 'i', 5)",
		"UPDATE k SET b = b || 'x', a = a + 1", "DELETE FROM log WHERE what = 'DELETE'", "UPDATE p SET u = 'y' WHERE id = 6",
	} {
		out := w.Done(tx, text)
		require.NotEmpty(t, out.Changes, text)
		states = append(states, w.Dump())
	}
	require.NoError(t, tx.Commit(t.Context()))
	rep, err := w.Session.Revert(t.Context(), tx.ID(), revert.Options{})
	require.NoError(t, err, "%+v", rep.NotReverted())
	require.Equal(t, before, w.Dump())
	_, err = w.Runtime.Redo(t.Context(), tx.ID(), "ann")
	require.NoError(t, err)
	require.Equal(t, states[len(states)-1], w.Dump())
}

// TestNeeded checks that a row on which another client's row now depends stays,
// and the others are removed.
func TestNeeded(t *testing.T) {
	for _, more := range []string{"", "ALTER TABLE k DROP CONSTRAINT k_p_fkey; ALTER TABLE k ADD FOREIGN KEY (p) REFERENCES p DEFERRABLE INITIALLY DEFERRED"} {
		w := newTestEnv(t, family+more)
		tx := w.Begin()
		w.Done(tx, "INSERT INTO p VALUES (7, 'q'), (8, 'r')")
		require.NoError(t, tx.Commit(t.Context()))
		w.Exec("INSERT INTO k VALUES (1, 'theirs', 7)")
		rep, err := w.Session.Revert(t.Context(), tx.ID(), revert.Options{})
		require.ErrorIs(t, err, agent.ErrPartialRevert)
		require.Equal(t, "db://main/p/'7'", rep.NotReverted()[0].Resource)
		require.Contains(t, w.Dump(), "(1,theirs,7,")
	}
}

// TestGrants checks that every access of the server is authorized: behind
// views, in functions and by triggers. A denied one changes nothing and shows
// nothing.
func TestGrants(t *testing.T) {
	w := newTestEnv(t, family+`CREATE VIEW v AS SELECT id, u FROM p; GRANT ALL ON v TO agent; CREATE TABLE "odd.name" (a int PRIMARY KEY); GRANT ALL ON "odd.name" TO agent;
		CREATE FUNCTION peek() RETURNS bigint LANGUAGE plpgsql STABLE AS 'BEGIN RETURN (SELECT count(*) FROM log); END';
		CREATE SCHEMA s; CREATE TABLE s.users (a int PRIMARY KEY); GRANT ALL ON SCHEMA s TO agent; GRANT ALL ON s.users TO agent;`)
	for _, tt := range []struct{ text, denied, statement string }{
		{"SELECT * FROM v", "p", "select"},
		{"SELECT * FROM v", "v", "select"},
		{"SELECT peek()", "log", "select"},
		{"SELECT * FROM s.users", "s.users", "select"},
		{`SELECT * FROM "odd.name"`, `"odd.name"`, "select"},
		{"UPDATE p SET id = 99 WHERE id = 1", "k", "update"},
		{"UPDATE p SET id = 99 WHERE id = 1", "log", "insert"},
		{"INSERT INTO p VALUES (1) ON CONFLICT (id) DO UPDATE SET u = 'n'", "p", "update"},
		{"MERGE INTO p USING (VALUES (1)) x(i) ON p.id = x.i WHEN MATCHED THEN DELETE", "p", "delete"},
		{"DELETE FROM k WHERE a = 1", "k", "delete"},
	} {
		before, tx := w.Dump(), w.Begin()
		asked := false
		w.Policy = func(r perm.Request) bool {
			is := r.Access.Resource.Table == tt.denied && r.Access.Resource.Statement == tt.statement
			asked = asked || is
			return !is
		}
		name := "sql_execute"
		if tt.statement == "select" {
			name = "sql_query"
		}
		out := w.Call(tx, name, tt.text)
		require.Equal(t, tool.StatusDenied, out.Status, "%s without %s: %s", tt.text, tt.denied, out.Text)
		require.True(t, asked)
		require.Equal(t, "null", string(out.Output))
		require.Equal(t, before, w.Dump(), tt.text)
		w.Policy = nil
		require.Equal(t, tool.StatusDone, w.Call(tx, name, tt.text).Status, "control: %s", tt.text)
		_, err := tx.Revert(t.Context(), revert.Options{})
		require.NoError(t, err)
		require.Equal(t, before, w.Dump(), tt.text)
	}
}

// TestSuperuser checks that a superuser role is refused.
func TestSuperuser(t *testing.T) {
	w := newTestEnv(t, users)
	w.StartAt(w.owner)
	out := w.Call(w.Begin(), "sql_query", "SELECT 1")
	require.Contains(t, out.Error.Why, "make one of its own")
}
