//go:build unix

package main

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/proof/pgtest"
)

const databaseScript = `{"tool":"sql_execute","args":{"database":"main","sql":"UPDATE a SET v = v || 'x', n = n + 1"}}
{"tool":"sql_execute","args":{"database":"main","sql":"INSERT INTO a(id, v) VALUES (2, 'new'), (9, 'newer') ON CONFLICT (id) DO UPDATE SET v = excluded.v"}}
`

const databasePolicy = "package remit\nallow contains \"all\" if true\n"

// databaseSite is a database, a journal and a script that changes it.
type databaseSite struct {
	t            *testing.T
	dir, script  string
	flags, where []string
	exec         func(text string) // somebody else's statement
	query        func(text string) string
}

func newDatabaseSite(t *testing.T) *databaseSite {
	s := &databaseSite{t: t, dir: t.TempDir()}
	file := filepath.Join(s.dir, "app.db")
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(5000)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	s.exec = func(text string) {
		_, err := db.Exec(text)
		require.NoError(t, err)
	}
	s.query = func(text string) string {
		var out strings.Builder
		rows, err := db.Query(text)
		require.NoError(t, err)
		defer func() { require.NoError(t, rows.Close()) }()
		for rows.Next() {
			var line string
			require.NoError(t, rows.Scan(&line))
			fmt.Fprintln(&out, line)
		}
		return out.String()
	}
	s.exec(`CREATE TABLE a (id INTEGER PRIMARY KEY, v TEXT, n INT); INSERT INTO a VALUES (1, 'one', 1), (2, 'two', 2), (3, zeroblob(30000), 3);
		CREATE TABLE b (id INTEGER PRIMARY KEY, why); CREATE TRIGGER t AFTER UPDATE ON a BEGIN INSERT INTO b(why) VALUES ('changed'); END;`)
	s.place("sqlite:" + file)
	return s
}

// newServerSite is the same in PostgreSQL.
func newServerSite(t *testing.T) *databaseSite {
	s := &databaseSite{t: t, dir: t.TempDir()}
	owner, agent := pgtest.Database(t)
	s.exec = func(text string) { pgtest.Exec(t, owner, text) }
	s.query = func(text string) string { return pgtest.Rows(t, owner, text) }
	s.exec(`CREATE TABLE a (id INT PRIMARY KEY, v TEXT, n INT); INSERT INTO a VALUES (1, 'one', 1), (2, 'two', 2), (3, repeat('x', 30000), 3);
		CREATE TABLE b (id SERIAL PRIMARY KEY, why text); ALTER TABLE a OWNER TO agent; ALTER TABLE b OWNER TO agent;
		CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO b(why) VALUES ('changed'); RETURN NULL; END $$;
		CREATE TRIGGER t AFTER UPDATE ON a FOR EACH ROW EXECUTE FUNCTION f();`)
	s.place(agent)
	return s
}

func (s *databaseSite) place(at string) {
	s.script = s.file("script.jsonl", databaseScript)
	require.NoError(s.t, os.Mkdir(filepath.Join(s.dir, "ws"), 0o700))
	s.where = []string{"--workspace", filepath.Join(s.dir, "ws"), "--state", filepath.Join(s.dir, "state")}
	s.flags = append([]string{"run", "--at-end", "leave-open", "--policy", s.file("policy.rego", databasePolicy), "--database", "main=" + at}, s.where...)
}

func (s *databaseSite) file(name, content string) string {
	path := filepath.Join(s.dir, name)
	require.NoError(s.t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func (s *databaseSite) rows() string {
	return s.query("SELECT 'a ' || id || ' ' || length(v) || ' ' || substr(v, 1, 20) || ' ' || coalesce(n, -1) FROM a UNION ALL SELECT 'b ' || why FROM b ORDER BY 1")
}

// run runs the script, killed at a point, and returns the points it passed.
func (s *databaseSite) run(at int, argv ...string) (points []string, killed bool) {
	trace := filepath.Join(s.dir, "trace")
	err := child(s.t, at, trace, argv...)
	raw, readErr := os.ReadFile(trace)
	require.NoError(s.t, readErr)
	return strings.Fields(string(raw)), err != nil
}

func (s *databaseSite) recoverAndRevert(about string) {
	code, out := command(s.t, append([]string{"recover"}, s.where...)...)
	require.Zero(s.t, code, "%s: recover: %s", about, out)
	for _, txn := range unfinished(s.t, filepath.Join(s.dir, "state")) {
		code, out = command(s.t, append([]string{"revert", txn}, s.where...)...)
		require.Zero(s.t, code, "%s: revert: %s", about, out)
	}
}

// TestKilledDatabase kills a run that changes rows, and its undo, at each step:
// afterwards the rows are what they were.
func TestKilledDatabase(t *testing.T) {
	t.Parallel()
	s := newDatabaseSite(t)
	before := s.rows()
	points, killed := s.run(0, append(s.flags, s.script)...)
	require.False(t, killed)
	require.NotEqual(t, before, s.rows())
	for at, p := range points {
		if !strings.HasPrefix(p, "database.") && !strings.HasPrefix(p, "journal.append") {
			continue
		}
		s := newDatabaseSite(t)
		_, killed := s.run(at+1, append(s.flags, s.script)...)
		require.True(t, killed)
		s.recoverAndRevert(fmt.Sprint("killed at ", at+1, " ", p))
		require.Equal(t, before, s.rows(), "killed at %d, %s", at+1, p)
	}
	// The undo.
	points, killed = s.run(0, append([]string{"revert", "--last"}, s.where...)...)
	require.False(t, killed)
	require.Equal(t, before, s.rows())
	for at, p := range points {
		if p != "revert.apply" && !strings.HasPrefix(p, "journal.append") {
			continue
		}
		s := newDatabaseSite(t)
		_, killed := s.run(0, append(s.flags, s.script)...)
		require.False(t, killed)
		_, killed = s.run(at+1, append([]string{"revert", "--last"}, s.where...)...)
		require.True(t, killed)
		s.recoverAndRevert(fmt.Sprint("undo killed at ", at+1, " ", p))
		code, out := command(t, append([]string{"revert", "--last"}, s.where...)...)
		require.Zero(t, code, out)
		require.Equal(t, before, s.rows(), "undo killed at %d, %s", at+1, p)
	}
}

// TestKilledAroundCommit: whether the call had an effect is known, although somebody
// changed the rows before anybody looked. What did not commit is no conflict, and
// what did is done.
func TestKilledAroundCommit(t *testing.T) {
	t.Parallel()
	for name, site := range map[string]func(*testing.T) *databaseSite{"sqlite": newDatabaseSite, "postgres": newServerSite} {
		t.Run(name, func(t *testing.T) { killAroundCommit(t, site) })
	}
}

func killAroundCommit(t *testing.T, site func(*testing.T) *databaseSite) {
	s := site(t)
	before := s.rows()
	points, killed := s.run(0, append(s.flags, s.script)...)
	require.False(t, killed)
	commit := slices.Index(points, "database.commit") + 1
	require.Positive(t, commit)
	after := commit + slices.IndexFunc(points[commit:], func(p string) bool { return strings.HasPrefix(p, "journal.append") }) + 1
	for at, want := range map[int]string{commit: "failed", after: "done"} {
		s := site(t)
		_, killed := s.run(at, append(s.flags, s.script)...)
		require.True(t, killed)
		s.exec("UPDATE a SET v = 'theirs' WHERE id = 1")
		code, out := command(t, append([]string{"recover", "--json"}, s.where...)...)
		require.Zero(t, code, out)
		require.Contains(t, out, `"as":"`+want+`"`, points[at-1])
		theirs := s.rows()
		code, out = command(t, append([]string{"revert", "--last"}, s.where...)...)
		if want == "failed" {
			require.Equal(t, theirs, s.rows(), out)
			continue
		}
		require.Equal(t, int(cli.ExitPartial), code, out)
		require.Contains(t, out, "db://main/a/")
		require.Contains(t, s.rows(), "theirs")
		require.Equal(t, 1, strings.Count(s.rows(), "changed"), "what the trigger did is reverted, but not what it did for somebody else")
	}
	_, killed = s.run(0, append([]string{"revert", "--last"}, s.where...)...)
	require.False(t, killed)
	require.Equal(t, before, s.rows())
}
