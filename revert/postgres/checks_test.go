package postgres_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	neturl "net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/pgtest"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/postgres"
	"github.com/remit-dev/remit/revert/record"
)

// Many openings of a new schema create it once.
func TestOpenAtOnce(t *testing.T) {
	url, schema := storage(t)
	const openings = 6
	errs := make([]error, openings)
	var all sync.WaitGroup
	for i := range openings {
		all.Go(func() {
			j, err := postgres.Open(context.Background(), url, schema)
			if err == nil {
				err = j.Append(context.Background(), journal.Batch{Entries: pair(fmt.Sprint("t", i), 0), Durable: true})
			}
			if err == nil {
				err = j.Close()
			}
			errs[i] = err
		})
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	h, err := until(t, url, schema).Head(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(2*openings), h.Size)
}

func TestNewerSchemaIsRefused(t *testing.T) {
	url, schema := schemaName(t)
	until(t, url, postgres.Schema(schema))
	pgtest.Exec(t, url, "INSERT INTO "+schema+".schema_version (version) VALUES (99)")
	_, err := postgres.Open(t.Context(), url, postgres.Schema(schema))
	require.ErrorContains(t, err, "has version 99")
}

// A role without more rights than those that the documentation names can use
// the journal.
func TestLeastRights(t *testing.T) {
	url, schema := schemaName(t)
	require.NoError(t, open(t, url, postgres.Schema(schema)).Close())
	pgtest.Exec(t, url, fmt.Sprintf("GRANT USAGE ON SCHEMA %[1]s TO agent; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %[1]s TO agent", schema))
	j := open(t, bytesReplace(url, "postgres@", "agent@"), postgres.Schema(schema))
	require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: pair("t", 0), Durable: true}))
	require.Equal(t, 2, requireSequence(t, j, "t"))
	require.NoError(t, j.Append(t.Context(), journal.Batch{Erase: []string{"t.0"}, Durable: true}))
	report, err := j.CollectGarbage(t.Context(), nil)
	require.NoError(t, err)
	require.Contains(t, report.Waiting, "as their owner", "the bytes are there")
	require.NoError(t, j.Close())
	report, err = until(t, url, postgres.Schema(schema)).CollectGarbage(t.Context(), []effect.BlobRef{})
	require.NoError(t, err)
	require.Empty(t, report.Waiting, "their owner still has to do it, and did")
	require.Equal(t, "t\n", pgtest.Rows(t, url, "SELECT deleted = scrubbed AND deleted > 0 FROM "+schema+".scrub"))
}

func bytesReplace(s, from, to string) string {
	return string(bytes.Replace([]byte(s), []byte(from), []byte(to), 1))
}

// After a collection, the files of the tables have no byte of what was erased.
func TestErasedBytesAreDestroyed(t *testing.T) {
	url, schema := schemaName(t)
	j := until(t, url, postgres.Schema(schema))
	secret := []byte("the-secret-of-this-test")
	entry := numbered("t", 0)
	other := numbered("t", 1)
	sealed, err := record.Seal(record.Record{
		Header: record.Header{Kind: record.KindInvalid, Txn: "t", Call: "t.0", At: entry.Header.At},
		Body:   &record.Invalid{Tool: record.ToolRef{Name: string(secret)}, Why: "for a test"},
	}, []byte("salt for testing"))
	require.NoError(t, err)
	require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: []record.Entry{sealed, other}, Durable: true}))
	pgtest.Exec(t, url, "CHECKPOINT")
	require.Positive(t, countInTables(t, url, schema, secret))
	require.NoError(t, j.Append(t.Context(), journal.Batch{Erase: []string{"t.0"}, Durable: true}))
	report, err := j.CollectGarbage(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, report.Waiting)
	pgtest.Exec(t, url, "CHECKPOINT")
	require.Zero(t, countInTables(t, url, schema, secret))
	require.Equal(t, "for a test", readWhy(t, j, "t.1"))

	require.NoError(t, until(t, url, postgres.Schema(schema)).Append(t.Context(), journal.Batch{Erase: []string{"t.1"}, Durable: true}))
	report, err = j.CollectGarbage(t.Context(), nil)
	require.NoError(t, err)
	require.Contains(t, report.Waiting, "other openings")
}

func readWhy(t *testing.T, j journal.Journal, call string) string {
	t.Helper()
	for e, err := range j.Entries(t.Context(), journal.Query{Call: call}) {
		require.NoError(t, err)
		r, err := record.Unseal(e)
		require.NoError(t, err)
		invalid, ok := r.Body.(*record.Invalid)
		require.True(t, ok)
		return invalid.Why
	}
	return ""
}

// countInTables counts the files of tables that contain some bytes.
func countInTables(t *testing.T, url, schema string, text []byte) (n int) {
	t.Helper()
	found := pgtest.Rows(t, url, fmt.Sprintf(`SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = '%s' AND c.relkind IN ('r', 'i') AND pg_relation_filepath(c.oid) IS NOT NULL
		AND position('%s'::bytea IN pg_read_binary_file(pg_relation_filepath(c.oid))) > 0`, schema, text))
	n, err := strconv.Atoi(string(bytes.TrimSpace([]byte(found))))
	require.NoError(t, err)
	return n
}

// Fsck finds what is changed in the tables.
func TestFsckFindsChangedTables(t *testing.T) {
	for name, change := range map[string]struct{ sql, words string }{
		"an entry is gone":        {"DELETE FROM entries WHERE n = 1 AND flush = (SELECT min(flush) FROM entries)", "entry 1 is missing"},
		"a body is changed":       {"UPDATE entries SET body = 'x' WHERE n = 2 AND flush = (SELECT min(flush) FROM entries)", "entry 2 does not fit its leaf"},
		"a name is changed":       {"UPDATE entries SET txn = 'x' WHERE n = 2 AND flush = (SELECT min(flush) FROM entries)", "other names"},
		"a leaf is changed":       {"UPDATE entries SET leaf = sha256('x') WHERE n = 2", "entry 2 does not fit its leaf"},
		"the head is changed":     {"UPDATE journal SET root = 'sha256:" + fmt.Sprintf("%064d", 0) + "'", "head"},
		"a hash is changed":       {"UPDATE flushes SET hashes = overlay(hashes placing sha256('x') from 1) WHERE pos = 2", "tree"},
		"a flush is gone":         {"DELETE FROM flushes WHERE pos = 2", "missing"},
		"a claim of nobody":       {"INSERT INTO claims VALUES (sha256('r'), 'r', 'nobody')", "r is held by transaction nobody"},
		"a claim under other key": {"INSERT INTO claims VALUES ('k', 'r', 'nobody')", "under the key of another resource"},
		"chunks of nothing":       {"INSERT INTO chunks VALUES (77, 0, 1, 'x')", "content 77"},
	} {
		t.Run(name, func(t *testing.T) {
			url, schema := schemaName(t)
			j := until(t, url, postgres.Schema(schema))
			for n := range 3 {
				e := []record.Entry{sessionEntry(t, 2*n), sessionEntry(t, 2*n+1)}
				require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: e, Durable: true}))
				_, err := j.Head(t.Context())
				require.NoError(t, err)
			}
			report, err := postgres.Fsck(t.Context(), j, revert.FsckOptions{})
			require.NoError(t, err)
			require.Equal(t, int64(6), report.Entries)
			pgtest.Exec(t, url, "SET search_path = "+schema+"; "+change.sql)
			var found []string
			_, err = postgres.Fsck(t.Context(), j, revert.FsckOptions{Found: func(p revert.Problem) { found = append(found, p.What) }})
			require.ErrorIs(t, err, record.ErrDamaged)
			require.Contains(t, fmt.Sprint(found), change.words)
		})
	}
}

// sessionEntry is an entry outside any transaction.
func sessionEntry(t *testing.T, n int) record.Entry {
	e := numbered("", n)
	require.Empty(t, e.Header.Txn)
	return e
}

// A pooler in transaction mode is refused with the reason. One in session mode
// is not.
func TestPooler(t *testing.T) {
	if _, err := exec.LookPath("pgbouncer"); err != nil {
		t.Skip("pgbouncer is not installed (apt-get install pgbouncer)")
	}
	url, schema := storage(t)
	for mode, size := range map[string]int{"session": 20, "transaction": 20, "statement": 20, "transaction of one": 1, "transaction in turn": 20} {
		t.Run(mode, func(t *testing.T) {
			at := startPooler(t, url, mode, size)
			if strings.HasSuffix(mode, "in turn") {
				warmPooler(t, at)
			}
			j, err := postgres.Open(t.Context(), at, schema)
			if mode == "session" {
				require.NoError(t, err)
				require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: pair("t", 0), Durable: true}))
				require.NoError(t, j.Close())
				return
			}
			require.ErrorIs(t, err, postgres.ErrPooler)
		})
	}
}

// warmPooler leaves two sessions of the server that wait for clients.
func warmPooler(t *testing.T, at string) {
	t.Helper()
	var conns []*pgx.Conn
	for range 2 {
		conn, err := pgx.Connect(t.Context(), at)
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), "BEGIN", pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		_, err := conn.Exec(t.Context(), "ROLLBACK", pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
		require.NoError(t, conn.Close(t.Context()))
	}
}

// startPooler starts pgbouncer before the server of a URL until the test ends,
// and returns its URL.
func startPooler(t *testing.T, at, mode string, size int) string {
	t.Helper()
	u, err := neturl.Parse(at)
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "pooler")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	mode, how, _ := strings.Cut(mode, " ")
	config := fmt.Sprintf("[databases]\n* = host=%s port=5432 user=postgres\n[pgbouncer]\nlisten_port = 6432\nlisten_addr =\nunix_socket_dir = %s\n"+
		"auth_type = any\npool_mode = %s\ndefault_pool_size = %d\n", u.Query().Get("host"), dir, mode, size)
	if how == "in turn" {
		config += "server_round_robin = 1\n"
	}
	file := filepath.Join(dir, "pooler.ini")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o644))
	cmd := exec.Command("pgbouncer", file)
	if os.Geteuid() == 0 { // it refuses to be root
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if p, err := user.Lookup("postgres"); err == nil {
			uid, err := strconv.Atoi(p.Uid)
			require.NoError(t, err)
			cmd.SysProcAttr.Credential.Uid = uint32(uid)
		}
		require.NoError(t, os.Chown(dir, int(cmd.SysProcAttr.Credential.Uid), -1))
	}
	log, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(log); lines.Scan() && !strings.Contains(lines.Text(), "process up"); {
		continue
	}
	u.RawQuery = neturl.Values{"host": {dir}, "port": {"6432"}}.Encode()
	return u.String()
}
