// Package pgtest starts a PostgreSQL server of the distribution for tests, on a
// socket in a temporary folder, and stops it.
package pgtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// T is a test, also one of rapid.
type T interface {
	require.TestingT
	Helper()
	Skip(args ...any)
}

// server is the server of this process.
var server struct {
	once   sync.Once
	dir    string
	cmd    *exec.Cmd
	err    error
	number int
}

// Run runs tests and stops the server if they started it: for TestMain.
func Run(m *testing.M) int {
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	return code
}

// Database creates an empty database. It returns the location for its owner,
// who is a superuser, and for the role agent, which may use it and create its
// own tables. It skips the test if PostgreSQL is not installed.
func Database(t T) (owner, agent string) {
	t.Helper()
	server.once.Do(func() { server.err = start() })
	if errors.Is(server.err, exec.ErrNotFound) {
		t.Skip("PostgreSQL is not installed (apt-get install postgresql): ", server.err)
	}
	require.NoError(t, server.err)
	server.number++
	name := fmt.Sprint("d", server.number)
	admin := location("postgres", "postgres")
	Exec(t, admin, "CREATE DATABASE "+name)
	Exec(t, location("postgres", name), "GRANT ALL ON SCHEMA public TO agent; GRANT CREATE, TEMPORARY ON DATABASE "+name+" TO agent")
	return location("postgres", name), location("agent", name)
}

func location(user, database string) string {
	q := url.Values{"host": {server.dir}, "port": {"5432"}}
	return (&url.URL{Scheme: "postgres", User: url.User(user), Path: "/" + database, RawQuery: q.Encode()}).String()
}

// Exec runs statements.
func Exec(t T, at, text string) {
	t.Helper()
	c, err := pgx.Connect(context.Background(), at)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(context.Background())) }()
	_, err = c.PgConn().Exec(context.Background(), text).ReadAll()
	require.NoError(t, err, text)
}

// Rows returns the rows of a query as text, a line each.
func Rows(t T, at, text string) string {
	t.Helper()
	c, err := pgx.Connect(context.Background(), at)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(context.Background())) }()
	r := c.PgConn().ExecParams(context.Background(), text, nil, nil, nil, nil).Read()
	require.NoError(t, r.Err, text)
	var out strings.Builder
	for _, row := range r.Rows {
		out.Write(bytes.Join(row, []byte("|")))
		out.WriteByte('\n')
	}
	return out.String()
}

// programs returns the folder with the programs of the newest PostgreSQL.
func programs() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) > 0 {
		slices.Sort(found)
		return filepath.Dir(found[len(found)-1]), nil
	}
	at, err := exec.LookPath("initdb")
	return filepath.Dir(at), err
}

func start() error {
	bin, err := programs()
	if err != nil {
		return err
	}
	if server.dir, err = os.MkdirTemp("", "pg"); err != nil {
		return err
	}
	as, err := unprivileged(server.dir)
	if err != nil {
		return err
	}
	data := filepath.Join(server.dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.SysProcAttr, initdb.Dir = as, server.dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	cmd := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", server.dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_wal_size=256MB")
	cmd.SysProcAttr, cmd.Dir = as, server.dir
	log, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	server.cmd = cmd
	ready := bufio.NewScanner(log)
	for ready.Scan() {
		if strings.Contains(ready.Text(), "ready to accept connections") {
			go drain(ready) // or the server would wait for its log to be read
			return makeRole()
		}
	}
	return errors.New("the server did not start")
}

func drain(s *bufio.Scanner) {
	for s.Scan() {
		continue
	}
}

func makeRole() error {
	c, err := pgx.Connect(context.Background(), location("postgres", "postgres"))
	if err != nil {
		return err
	}
	_, err = c.PgConn().Exec(context.Background(), "CREATE ROLE agent LOGIN").ReadAll()
	return errors.Join(err, c.Close(context.Background()))
}

func stop() error {
	if server.cmd != nil {
		_ = server.cmd.Process.Signal(syscall.SIGQUIT) // its data needs no checkpoint
		_ = server.cmd.Wait()                          // it reports that it was told to stop
	}
	if server.dir == "" {
		return nil
	}
	return os.RemoveAll(server.dir)
}
