package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSameRow: triggers that change the rows for which they were called, and others
// of the same statement, before that statement's own changes are noted.
func TestSameRow(t *testing.T) {
	for _, when := range []string{"TRIGGER a AFTER", "CONSTRAINT TRIGGER a AFTER"} {
		w := newWorld(t, `CREATE TABLE t (id int PRIMARY KEY, u int); INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 300); ALTER TABLE t OWNER TO agent;
			CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF NEW.u < 100 THEN UPDATE t SET u = u + 100 WHERE id IN (NEW.id, 2); DELETE FROM t WHERE id = 3; INSERT INTO t VALUES (3, 103); UPDATE t SET id = id + 10 WHERE id = 4; END IF;
				RETURN NULL; END $$;
			CREATE `+when+` UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f()`)
		before, tx := w.Dump(), w.Begin()
		out := w.Done(tx, "UPDATE t SET u = u + 1 WHERE id < 3")
		require.Len(t, out.Changes, 5)
		after := w.Dump()
		require.Contains(t, after, "(1,102)\n(14,300)\n(2,203)\n(3,103)")
		w.Done(tx, "UPDATE t SET u = u + 7")
		last := w.Dump()
		require.NoError(t, tx.Commit(t.Context()))
		rep, err := w.Session.Revert(t.Context(), tx.ID())
		require.NoError(t, err, "%+v", rep.NotUndone())
		require.Equal(t, before, w.Dump())
		_, err = w.Runtime.Redo(t.Context(), tx.ID(), "ann")
		require.NoError(t, err)
		require.Equal(t, last, w.Dump())
	}
}
