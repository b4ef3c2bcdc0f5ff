package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine/enginetest"
	"github.com/remit-dev/remit/internal/proof/pgtest"
	"github.com/remit-dev/remit/internal/proof/statcheck"
)

// TestEachStep checks that a caller that is cancelled leaves everything or
// nothing.
func TestEachStep(t *testing.T) {
	owner, agent := pgtest.Database(t)
	pgtest.Exec(t, owner, `CREATE TABLE p (id int PRIMARY KEY, v text); INSERT INTO p VALUES (1, 'a'), (2, 'b');
		CREATE TABLE k (x text PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE); INSERT INTO k VALUES ('x', 1), ('y', 2);
		CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; CREATE TRIGGER t BEFORE UPDATE ON p FOR EACH ROW EXECUTE FUNCTION f();
		ALTER TABLE p OWNER TO agent; ALTER TABLE k OWNER TO agent`)
	e, _, err := kind{}.Open(agent)
	require.NoError(t, err)
	dump := func() string {
		return pgtest.Rows(t, owner, "SELECT 'p', id::text, v FROM p UNION ALL SELECT 'k', x, p::text FROM k UNION ALL SELECT 't', tgname, tgenabled::text FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1, 2")
	}
	enginetest.EachStep(t, e, dump, statcheck.Stride(41), "DELETE FROM p WHERE id = 1", "UPDATE p SET v = 'c'", "INSERT INTO p VALUES (9, 'new') RETURNING id")
}
