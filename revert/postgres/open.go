package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Option changes how Open opens a journal.
type Option func(*Journal)

// Schema sets the schema of the database that holds the journal. Default:
// remit. A database can hold several journals.
func Schema(name string) Option { return func(j *Journal) { j.schema = name } }

// Existing makes Open fail with ErrNoJournal if the schema has no journal,
// instead of creating one.
func Existing() Option { return func(j *Journal) { j.existing = true } }

// Lease sets after which silence the server ends the session of an opening, so
// that others find a paused process dead. Default: 30 s. An opening that lives
// is never silent for more than a third of it.
func Lease(d time.Duration) Option { return func(j *Journal) { j.lease = d } }

// ReconnectTimeout sets how long an append tries to reach a server that went
// away. Default: 30 s. After that time its outcome is unknown.
func ReconnectTimeout(d time.Duration) Option { return func(j *Journal) { j.reconnect = d } }

const (
	minVersion    = 150000
	lockTimeout   = time.Minute
	poolerTimeout = 5 * time.Second
	readers       = 8 // maximum number of connections of the reading pool of an opening
)

// Open opens the journal in a database. It creates the schema if there is none,
// and applies the migrations that the schema lacks. Each opening has its own
// owner. Any number can be open at once, on any number of nodes.
func Open(ctx context.Context, url string, opts ...Option) (*Journal, error) {
	j, err := newJournal(opts)
	if err != nil {
		return nil, err
	}
	if err := j.start(ctx, url); err != nil {
		return nil, err
	}
	return j, nil
}

func newJournal(opts []Option) (*Journal, error) {
	j := &Journal{schema: "remit", lease: 30 * time.Second, reconnect: 30 * time.Second, owner: "p_" + rand.Text()}
	j.queue.wake = make(chan struct{}, 1)
	for _, opt := range opts {
		opt(j)
	}
	if j.schema == "" || j.lease < 100*time.Millisecond || j.reconnect < 0 {
		return nil, errors.New("open journal: Schema must not be empty, Lease must be at least 100ms, and ReconnectTimeout must not be negative")
	}
	return j, nil
}

// start opens the journal, and starts its writer and its sequencer.
func (j *Journal) start(ctx context.Context, url string) error {
	if err := j.open(ctx, url); err != nil {
		j.abandon()
		if codeOf(err) == codeNoRights {
			err = errors.Join(ErrRights, err)
		}
		return fmt.Errorf("open journal in PostgreSQL: %w", err)
	}
	j.stop, j.written, j.sequenced = make(chan struct{}), make(chan struct{}), make(chan struct{})
	go j.write()
	go j.sequence()
	return nil
}

func (j *Journal) open(ctx context.Context, url string) (err error) {
	pool, err := pgxpool.ParseConfig(url)
	if err != nil {
		return err
	}
	j.config = pool.ConnConfig.Copy()
	pool.MaxConns = readers
	pool.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error { return j.prepare(ctx, conn, 0) }
	if j.session, err = j.connect(ctx); err != nil {
		return err
	}
	if err := j.migrate(ctx, j.session.conn); err != nil {
		return err
	}
	if err := j.checkRights(ctx, j.session.conn); err != nil {
		return err
	}
	if j.locate != nil { // after the server answered: a wrong location creates no folder
		at, err := j.locate()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnsafeFolder, err)
		}
		j.node = &at
	}
	if j.pool, err = pgxpool.NewWithConfig(ctx, pool); err != nil {
		return err
	}
	return j.register(ctx)
}

// connect returns a session that holds locks. The server ends it if the client
// is silent for the lease.
func (j *Journal) connect(ctx context.Context) (*session, error) {
	conn, err := pgx.ConnectConfig(ctx, j.config.Copy())
	if err != nil {
		if strings.Contains(err.Error(), "unsupported startup parameter") {
			err = errors.Join(ErrPooler, err)
		}
		return nil, err
	}
	s := &session{conn: conn}
	if err = j.checkServer(ctx, s); err == nil {
		err = j.prepare(ctx, conn, j.lease)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return s, nil
}

// prepare sets what a session needs. A session that waits inside a transaction
// for a paused client ends too, or it would stop the others.
func (j *Journal) prepare(ctx context.Context, conn *pgx.Conn, idle time.Duration) error {
	ms := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	_, err := conn.Exec(ctx, `SELECT set_config('search_path', $1, false), set_config('idle_session_timeout', $2, false),
		set_config('idle_in_transaction_session_timeout', $3, false), set_config('tcp_user_timeout', $3, false),
		set_config('lock_timeout', $4, false), set_config('application_name', 'remit', false),
		set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)`,
		pgx.Identifier{j.schema}.Sanitize(), ms(idle), ms(j.lease), ms(lockTimeout))
	return err
}

// checkServer refuses old servers, and poolers that move a client between
// sessions. It uses the simple protocol: prepared statements belong to a
// session.
func (j *Journal) checkServer(ctx context.Context, s *session) error {
	var version int
	err := s.conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int, pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&version, &s.pid)
	switch {
	case err != nil:
		return err
	case version < minVersion:
		return fmt.Errorf("the server has version %d; PostgreSQL 15 or newer is needed", version/10000)
	case s.pid == s.conn.PgConn().PID():
		return nil // no pooler: the server named this session itself
	}
	return j.checkPooler(ctx, s)
}

// checkPooler tells the mode of a pooler. In transaction mode it gives the
// session of an idle client to another one. If several sessions are idle, it may
// take them in turn: then this client alone meets another one. If one is, the
// other client gets it.
func (j *Journal) checkPooler(ctx context.Context, s *session) error {
	ctx, cancel := context.WithTimeout(ctx, poolerTimeout)
	defer cancel()
	for range 2 {
		if err := s.checkSame(ctx, s.conn); err != nil {
			return err
		}
	}
	other, err := pgx.ConnectConfig(ctx, j.config.Copy())
	if err != nil {
		return err
	}
	defer func() { _ = other.Close(context.WithoutCancel(ctx)) }()
	if _, err := other.Exec(ctx, "BEGIN", pgx.QueryExecModeSimpleProtocol); err != nil {
		return errors.Join(ErrPooler, err)
	}
	return errors.Join(s.checkSame(ctx, other), s.checkSame(ctx, s.conn))
}

// checkSame returns ErrPooler if the connection of the session is in another
// session of the server, or another connection in this one.
func (s *session) checkSame(ctx context.Context, conn *pgx.Conn) error {
	var pid uint32
	err := conn.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&pid)
	if err != nil || (pid == s.pid) != (conn == s.conn) {
		return errors.Join(ErrPooler, err)
	}
	return nil
}

// register makes this opening known. It holds its lock before any process can
// learn its name.
func (j *Journal) register(ctx context.Context) error {
	conn := j.session.conn
	if err := conn.QueryRow(ctx, "SELECT lock_class FROM journal").Scan(&j.class); err != nil {
		return err
	}
	host, _ := os.Hostname() // only shown
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var node *string
		if j.node != nil {
			node = &j.node.id
			if err := j.registerNode(ctx, tx, host); err != nil {
				return err
			}
		}
		err := tx.QueryRow(ctx, "INSERT INTO owners (owner, host, pid, node) VALUES ($1, $2, $3, $4) RETURNING id, token", j.owner, host, os.Getpid(), node).Scan(&j.id, &j.session.token)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "SELECT pg_advisory_lock($1, $2)", j.class, j.id)
		return err
	})
}

// abandon closes what a failed Open left.
func (j *Journal) abandon() {
	if j.pool != nil {
		j.pool.Close()
	}
	if j.session != nil {
		_ = j.session.conn.Close(context.Background())
	}
}
