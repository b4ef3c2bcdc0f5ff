package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/remit-dev/remit/revert/journal"
)

// The statements of the writer, in the order of its stmts.
const (
	stmtBatch = iota
	stmtVersion
	stmtState
	stmtLast
	stmtBatchOf
	stmtBatchAt
	stmtUnindexed
	stmtTxn
	stmtHolder
	stmtBlobSize
	stmtBlob
	stmtDropBlob
	stmtRewrite
	stmtDropBatch
	stmtHole
	stmtHoles
	stmtNoHole
	stmtRowsBefore
	stmtRowsAfter
	stmtErasure
	stmtBarrier
	stmtNewClaim
	stmtNewClaims
	stmtDropNew
	stmtPlaces
	stmtPlace
	stmtPlacesAtOnce
	stmtTxnRow
	stmtClaim
	stmtRelease
	stmtClaims
	stmtDropClaims
	stmtIndexed
	stmtImmediate
	stmtCommit
	stmtRollback
	stmtFrames
	stmtCount
)

func statements() [stmtCount]string {
	const places = "INSERT INTO places (name, key, kinds) VALUES (?, ?, ?)"
	return [stmtCount]string{
		stmtBatch:        "INSERT INTO batches (key, n, data) VALUES (?, ?, ?)",
		stmtVersion:      "PRAGMA data_version",
		stmtState:        "SELECT indexed, claimed, coalesce((SELECT max(key) FROM batches), 0), coalesce((SELECT max(id) FROM new_claims), claimed) FROM state",
		stmtLast:         lastBatch,
		stmtBatchOf:      batchBefore,
		stmtBatchAt:      "SELECT n, data FROM batches WHERE key = ?",
		stmtUnindexed:    batchesAfter,
		stmtTxn:          "SELECT owner, ended FROM txns WHERE txn = ?",
		stmtHolder:       "SELECT txn FROM claims WHERE resource = ?",
		stmtBlobSize:     "SELECT size FROM blobs WHERE digest = ?",
		stmtBlob:         "INSERT INTO blobs (digest, size, content) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
		stmtDropBlob:     "DELETE FROM blobs WHERE digest = ?",
		stmtRewrite:      "UPDATE batches SET data = ?2 WHERE key = ?1",
		stmtDropBatch:    "DELETE FROM batches WHERE key = ?",
		stmtHole:         places + " ON CONFLICT DO NOTHING",
		stmtHoles:        "SELECT key FROM places WHERE name = ? ORDER BY key LIMIT ?+0",
		stmtNoHole:       "DELETE FROM places WHERE name = ? AND key = ?",
		stmtRowsBefore:   "SELECT key, n, data FROM batches WHERE key < ? ORDER BY key DESC",
		stmtRowsAfter:    "SELECT key, n, data FROM batches WHERE key > ? ORDER BY key",
		stmtErasure:      "UPDATE state SET erasures = erasures + 1",
		stmtBarrier:      "UPDATE state SET barriers = barriers + 1",
		stmtNewClaim:     "INSERT INTO new_claims (id, resource, txn, checksum) VALUES (?, ?, ?, ?)",
		stmtNewClaims:    "SELECT id, resource, txn, checksum FROM new_claims WHERE id > ? ORDER BY id",
		stmtDropNew:      "DELETE FROM new_claims",
		stmtPlaces:       "SELECT key FROM places WHERE name = ? ORDER BY key",
		stmtPlace:        places,
		stmtPlacesAtOnce: places + strings.Repeat(", (?, ?, ?)", placesAtOnce-1),
		stmtTxnRow: "INSERT INTO txns (txn, owner, ended) VALUES (?1, ?2, ?3)" +
			" ON CONFLICT (txn) DO UPDATE SET owner = coalesce(nullif(?2, ''), owner), ended = ?3",
		stmtClaim:      "INSERT INTO claims (resource, txn) VALUES (?, ?) ON CONFLICT DO NOTHING",
		stmtRelease:    "DELETE FROM claims WHERE txn = ?",
		stmtClaims:     "SELECT resource, txn FROM claims ORDER BY resource",
		stmtDropClaims: "DELETE FROM claims",
		stmtIndexed:    "UPDATE state SET indexed = ?, claimed = ?",
		stmtImmediate:  "BEGIN IMMEDIATE",
		stmtCommit:     "COMMIT",
		stmtRollback:   "ROLLBACK",
		stmtFrames:     "PRAGMA wal_checkpoint(NOOP)",
	}
}

// writer is the only writing connection of an opening. Its statements never end
// early with a context: the driver could not tell whether they took effect.
type writer struct {
	dir     string
	foreign *foreign
	wait    busyBackoff
	accepts bool // the first mark replaces any earlier one
	head    *headFile
	log     *os.File // the write-ahead log, for its salts
	reserve diskReserve
	db      *sql.DB
	conn    *sql.Conn
	stmts   [stmtCount]*sql.Stmt
	synced  bool // commits are synced

	// What is stored, as of the batch last; see catchUp.
	current bool  // it was read
	version int64 // SQLite's number of the commits of others, when it was read
	last    batchKey
	count   int64 // entries of that batch
	tree    journal.Tree
	claimed int64             // the last claim
	indexed batchKey          // the derived tables have the batches up to here,
	tabled  int64             // the claims up to here,
	later   unindexed         // and these do not
	open    map[string]string // owners of open transactions that the derived tables have, as far as they were read
}

func newWriter(ctx context.Context, j *Journal) (*writer, error) {
	db, err := sql.Open("sqlite", j.dsn(writerPragmas()...))
	if err != nil {
		return nil, err
	}
	w := &writer{dir: j.dir, foreign: &j.foreign, wait: j.wait, accepts: j.accepts, reserve: j.reserve(), db: db, synced: true}
	if err := w.prepare(ctx); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *writer) prepare(ctx context.Context) (err error) {
	flags := os.O_RDWR
	if w.accepts { // a head file without a mark is refused like a missing one
		flags |= os.O_CREATE
	}
	if w.head, err = openHead(w.dir, flags); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	w.head.anew = w.accepts
	if w.conn, err = w.db.Conn(ctx); err != nil {
		return explain(err)
	}
	var mode string
	if err := w.conn.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return explain(err)
	}
	if mode != "wal" {
		return fmt.Errorf("%s was switched from journal mode wal to %s: what is durable when depends on it", databaseName, mode)
	}
	for i, query := range statements() {
		if w.stmts[i], err = w.conn.PrepareContext(ctx, query); err != nil {
			return explain(err)
		}
	}
	return nil
}

// close drops uncommitted changes.
func (w *writer) close() error {
	var errs []error
	for _, s := range w.stmts {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	if w.conn != nil {
		errs = append(errs, w.conn.Close())
	}
	if w.head != nil {
		errs = append(errs, w.head.close())
	}
	if w.log != nil {
		errs = append(errs, w.log.Close())
	}
	return errors.Join(append(errs, w.db.Close())...)
}

func (w *writer) run(stmt int, args ...any) (sql.Result, error) {
	return w.stmts[stmt].ExecContext(context.Background(), args...)
}

// find scans the only column of the row that a statement finds, if any.
func (w *writer) find(stmt int, dest any, args ...any) (found bool, err error) {
	return w.findAll(stmt, args, dest)
}

// findAll scans all columns of the row that a statement finds, if any.
func (w *writer) findAll(stmt int, args []any, dest ...any) (found bool, err error) {
	err = w.stmts[stmt].QueryRowContext(context.Background(), args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// errHead says that a batch is stored, but the head file could not be written.
var errHead = errors.New("the batch was stored, and " + headName + " could not be written")

// promise writes into the head file that everything up to here is synced.
// Callers continue only after that.
func (w *writer) promise() error {
	if !w.synced {
		return nil
	}
	to := mark{head: w.tree.Head(), at: time.Now(), log: w.place()}
	if err := w.head.advance(to, w.wait); err != nil {
		return fmt.Errorf("%w: %w", errHead, err)
	}
	return nil
}

// place returns the length of the log. If it is unknown, the next opening
// checks the whole database.
func (w *writer) place() (p logPlace) {
	if w.log == nil {
		var err error
		if w.log, err = os.Open(filepath.Join(w.dir, databaseName+"-wal")); err != nil {
			w.log = nil
			return p
		}
	}
	var busy, moved int64
	head := make([]byte, logHeader)
	if err := w.stmts[stmtFrames].QueryRowContext(context.Background()).Scan(&busy, &p.frames, &moved); err != nil {
		return logPlace{}
	}
	if _, err := w.log.ReadAt(head, 0); err != nil {
		return logPlace{}
	}
	p.salts = saltsOf(head)
	return p
}

// setSync sets whether the next commit is synced. It is not a prepared
// statement: SQLite applies this setting when it prepares it, not when it runs
// it.
func (w *writer) setSync(synced bool) error {
	if w.synced == synced {
		return nil
	}
	level := "NORMAL"
	//mutant:check
	if synced {
		level = "FULL"
	}
	_, err := w.conn.ExecContext(context.Background(), "PRAGMA synchronous = "+level)
	w.synced = synced && err == nil
	return err
}

// begin begins a transaction and reads what others stored since the last one.
func (w *writer) begin() error {
	if _, err := w.run(stmtImmediate); err != nil {
		return err
	}
	return w.catchUp()
}

// store stores the batches of a begun transaction and commits it. It checks
// each batch before it writes any part of it, so a refused batch leaves nothing
// to remove from among the others.
func (w *writer) store(taken []*request) (refused []error, err error) {
	refused = make([]error, len(taken))
	written := false
	for i, r := range taken {
		if refused[i], err = w.mayStore(r.batch); err == nil && refused[i] == nil {
			err = w.write(r)
			written = written || len(r.batch.Entries) > 0
		}
		if err != nil {
			return nil, err
		}
	}
	if w.synced && !written { // a sync needs a write before it
		if _, err := w.run(stmtBarrier); err != nil {
			return nil, err
		}
	}
	if _, err = w.run(stmtCommit); err == nil {
		w.foreign.known.Store(int64(w.last))
	}
	return refused, err
}

func (w *writer) write(r *request) error {
	if err := w.erase(r.batch.Erase); err != nil {
		return err
	}
	if err := w.writeBlobs(r.batch); err != nil {
		return err
	}
	if err := w.writeBatch(r); err != nil || r.batch.End { // the end releases the claims of its own batch
		return err
	}
	return w.claim(r.batch)
}

func (w *writer) writeBlobs(b journal.Batch) error {
	for _, blob := range b.Blobs {
		data, inline := blob.Inline().Get()
		if !inline {
			continue
		}
		if _, err := w.run(stmtBlob, blob.Ref().Digest, len(data), data); err != nil {
			return err
		}
	}
	return nil
}

// writeBatch stores the row of a batch. One that has no entries and changes no
// transaction needs none.
func (w *writer) writeBatch(r *request) error {
	ops, entries := opsOf(r.batch), r.batch.Entries
	if len(entries) == 0 && ops.none() {
		return nil
	}
	key, err := w.nextKey()
	if err != nil {
		return err
	}
	data, tree := r.packed, w.tree
	for _, e := range entries {
		var whole []tlog.Hash
		tree, whole = tree.Add(e.Leaf)
		for _, h := range whole[1:] { // the first one is that of the leaf
			data = append(data, h[:]...)
		}
	}
	if _, err := w.run(stmtBatch, int64(key), len(entries), data); err != nil {
		return err
	}
	w.last, w.count, w.tree = key, int64(len(entries)), tree
	w.later.add(key, ops, placesOf(entries), len(data))
	return nil
}
