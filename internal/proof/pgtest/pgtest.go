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
	shared *Server
	err    error
	number int
}

// Server is a server with a folder of its own.
type Server struct {
	dir, data, bin string
	options        []string
	cmd            *exec.Cmd
}

// Run runs tests and stops the server if they started it: for TestMain.
func Run(m *testing.M) int {
	code := m.Run()
	if server.shared != nil {
		if err := server.shared.remove(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			return 1
		}
	}
	return code
}

// Database creates an empty database. It returns the location for its owner,
// who is a superuser, and for the role agent, which may use it and create its
// own tables. It skips the test if PostgreSQL is not installed.
func Database(t T) (owner, agent string) {
	t.Helper()
	server.once.Do(func() {
		if server.shared, server.err = create("fsync=off"); server.err == nil {
			server.err = server.shared.makeRole()
		}
	})
	skipIfMissing(t, server.err)
	require.NoError(t, server.err)
	server.number++
	name := fmt.Sprint("d", server.number)
	admin := location("postgres", "postgres")
	Exec(t, admin, "CREATE DATABASE "+name)
	Exec(t, location("postgres", name), "GRANT ALL ON SCHEMA public TO agent; GRANT CREATE, TEMPORARY ON DATABASE "+name+" TO agent")
	return location("postgres", name), location("agent", name)
}

// NewServer starts a server of its own until the test ends, with settings as
// NAME=VALUE. It skips the test if PostgreSQL is not installed.
func NewServer(t *testing.T, settings ...string) *Server {
	t.Helper()
	s, err := create(settings...)
	if s != nil {
		t.Cleanup(func() { require.NoError(t, s.remove()) })
	}
	skipIfMissing(t, err)
	require.NoError(t, err)
	return s
}

func skipIfMissing(t T, err error) {
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("PostgreSQL is not installed (apt-get install postgresql): ", err)
	}
}

// URL is the location of the database postgres for its owner.
func (s *Server) URL() string { return s.location("postgres", "postgres") }

// Socket is the path of the socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, ".s.PGSQL.5432") }

func location(user, database string) string { return server.shared.location(user, database) }

func (s *Server) location(user, database string) string {
	q := url.Values{"host": {s.dir}, "port": {"5432"}}
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

// create makes the folder of a server and starts it.
func create(settings ...string) (s *Server, err error) {
	s = &Server{}
	if s.bin, err = programs(); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "pg"); err != nil {
		return nil, err
	}
	as, err := unprivileged(s.dir)
	if err != nil {
		return s, err
	}
	s.data = filepath.Join(s.dir, "data")
	initdb := exec.Command(filepath.Join(s.bin, "initdb"), "-D", s.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.SysProcAttr, initdb.Dir = as, s.dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return s, fmt.Errorf("initdb: %w: %s", err, out)
	}
	for _, setting := range append([]string{"listen_addresses=", "max_wal_size=256MB"}, settings...) {
		s.options = append(s.options, "-c", setting)
	}
	return s, s.Start()
}

// Start starts the server, also again, and waits until it accepts connections.
func (s *Server) Start() error {
	as, err := unprivileged(s.dir)
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(s.bin, "postgres"), append([]string{"-D", s.data, "-k", s.dir}, s.options...)...)
	cmd.SysProcAttr, cmd.Dir = as, s.dir
	log, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd = cmd
	ready := bufio.NewScanner(log)
	for ready.Scan() {
		if strings.Contains(ready.Text(), "ready to accept connections") {
			go drain(ready) // or the server would wait for its log to be read
			return nil
		}
	}
	return errors.New("the server did not start")
}

func drain(s *bufio.Scanner) {
	for s.Scan() {
		continue
	}
}

func (s *Server) makeRole() error {
	c, err := pgx.Connect(context.Background(), s.URL())
	if err != nil {
		return err
	}
	_, err = c.PgConn().Exec(context.Background(), "CREATE ROLE agent LOGIN").ReadAll()
	return errors.Join(err, c.Close(context.Background()))
}

// Kill stops the server at once, as pg_ctl stop -m immediate does: the next
// start recovers from its log.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(syscall.SIGQUIT)
		_ = s.cmd.Wait() // it reports that it was told to stop
		s.cmd = nil
	}
}

func (s *Server) remove() error {
	s.Kill()
	return os.RemoveAll(s.dir)
}
