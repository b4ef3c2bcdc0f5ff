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

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// The statements of the writer, in the order of its stmts.
const (
	stmtInsert = iota
	stmtInsertFour
	stmtBody
	stmtBodyFour
	stmtLast
	stmtHash
	stmtHolder
	stmtExists
	stmtBegin
	stmtBeginEnded
	stmtAdopt
	stmtEnd
	stmtRelease
	stmtClaimant
	stmtClaim
	stmtBlobSize
	stmtBlob
	stmtDropBlob
	stmtErase
	stmtErased
	stmtEraseOne
	stmtBarrier
	stmtImmediate
	stmtCommit
	stmtFrames
	stmtCount
)

func statements() [stmtCount]string {
	const insert, values = "INSERT INTO entries (pos, kind, session, txn, call, head, leaf, tree) VALUES ", "(?, ?, ?, ?, ?, ?, ?, ?)"
	const body, bodyValues = "INSERT INTO bodies (pos, salt, body) VALUES ", "(?, ?, ?)"
	return [stmtCount]string{
		stmtInsert:     insert + values,
		stmtInsertFour: insert + values + strings.Repeat(", "+values, 3),
		stmtBody:       body + bodyValues,
		stmtBodyFour:   body + bodyValues + strings.Repeat(", "+bodyValues, 3),
		stmtLast:       lastPos,
		stmtHash:       findHash,
		stmtHolder:     "SELECT owner FROM txns WHERE txn = ? AND ended = 0",
		stmtExists:     "SELECT owner FROM txns WHERE txn = ?",
		stmtBegin:      "INSERT INTO txns (txn, owner) VALUES (?, ?)",
		// A transaction that begins and ends in one batch is never among the
		// open ones.
		stmtBeginEnded: "INSERT INTO txns (txn, owner, ended) VALUES (?, ?, 1) ON CONFLICT DO NOTHING",
		stmtAdopt:      "UPDATE txns SET owner = ?2 WHERE txn = ?1",
		stmtEnd:        "UPDATE txns SET ended = 1 WHERE txn = ?",
		stmtRelease:    "DELETE FROM claims WHERE txn = ?",
		stmtClaimant:   "SELECT txn FROM claims WHERE resource = ?",
		stmtClaim:      "INSERT INTO claims (resource, txn) VALUES (?, ?) ON CONFLICT DO NOTHING",
		stmtBlobSize:   "SELECT size FROM blobs WHERE digest = ?",
		stmtBlob:       "INSERT INTO blobs (digest, size, content) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
		stmtDropBlob:   "DELETE FROM blobs WHERE digest = ?",
		stmtErase:      "SELECT pos, kind, salt, body FROM entries JOIN bodies USING (pos) WHERE call = ? AND call <> '' AND pos > ? ORDER BY pos LIMIT 1",
		stmtErased:     "INSERT INTO erased (pos, digest) VALUES (?, ?)",
		stmtEraseOne:   "DELETE FROM bodies WHERE pos = ?",
		stmtBarrier:    "UPDATE barrier SET n = n + 1",
		stmtImmediate:  "BEGIN IMMEDIATE",
		stmtCommit:     "COMMIT",
		stmtFrames:     "PRAGMA wal_checkpoint(NOOP)",
	}
}

// writer is the only writing connection of an opening. Its statements never end
// early with a context: the driver could not tell whether they took effect.
type writer struct {
	dir     string
	wait    busyBackoff
	accepts bool // the first mark replaces any earlier one
	head    *headFile
	log     *os.File // the write-ahead log, for its salts
	reserve diskReserve
	db      *sql.DB
	conn    *sql.Conn
	stmts   [stmtCount]*sql.Stmt
	synced  bool         // commits are synced
	tree    journal.Tree // of a prefix; catchUp extends it to all entries
}

func newWriter(ctx context.Context, j *Journal) (*writer, error) {
	db, err := sql.Open("sqlite", j.dsn(writerPragmas()...))
	if err != nil {
		return nil, err
	}
	w := &writer{dir: j.dir, wait: j.wait, accepts: j.accepts, reserve: j.reserve(), db: db, synced: true}
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
	err = w.stmts[stmt].QueryRowContext(context.Background(), args...).Scan(dest)
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

func (w *writer) begin() error {
	_, err := w.run(stmtImmediate)
	return err
}

// store stores the batches of a begun transaction and commits it. It checks
// each batch before it writes any part of it, so a refused batch leaves nothing
// to remove from among the others.
func (w *writer) store(taken []*request) (refused []error, err error) {
	refused = make([]error, len(taken))
	written := false
	for i, r := range taken {
		refused[i], err = w.mayStore(r.batch)
		if err == nil && refused[i] == nil {
			refused[i], err = w.take(r.batch)
		}
		if err == nil && refused[i] == nil {
			err = w.write(r.batch)
			written = written || len(r.batch.Entries) > 0
		}
		if err != nil {
			return nil, err
		}
	}
	if w.synced && !written {
		if _, err := w.run(stmtBarrier); err != nil {
			return nil, err
		}
		if err := w.catchUp(); err != nil { // it promises the entries of others
			return nil, err
		}
	}
	_, err = w.run(stmtCommit)
	return refused, err
}

func (w *writer) write(b journal.Batch) error {
	steps := []func(journal.Batch) error{w.erase, w.writeBlobs, w.writeEntries, w.claim, w.end}
	for _, step := range steps {
		if err := step(b); err != nil {
			return err
		}
	}
	return nil
}

// take is the only step that can refuse a batch by a write, which then changes
// nothing. A query first, for a transaction that ends at once, would cost as
// much.
func (w *writer) take(b journal.Batch) (refused, err error) {
	switch to := b.Take.To; {
	case to.Txn == "":
	case passes(b):
		var res sql.Result
		if res, err = w.run(stmtBeginEnded, to.Txn, to.Owner); err != nil {
			return nil, err
		}
		n, err := res.RowsAffected()
		if n == 0 && err == nil {
			refused = errExists(to.Txn)
		}
		return refused, err
	case b.Take.From == "":
		_, err = w.run(stmtBegin, to.Txn, to.Owner)
	default:
		_, err = w.run(stmtAdopt, to.Txn, to.Owner)
	}
	return nil, err
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

// writeEntries stores four entries at a time, as many as a call that only reads
// has, and then the rest.
func (w *writer) writeEntries(b journal.Batch) error {
	for left := b.Entries; len(left) > 0; {
		n := 1
		if len(left) >= 4 {
			n = 4
		}
		err := w.insert(left[:n])
		if codeOf(err) == codeUnique { // nothing of it is stored
			if err = w.catchUp(); err == nil {
				err = w.insert(left[:n])
			}
		}
		if err != nil {
			return err
		}
		left = left[n:]
	}
	return nil
}

// insert stores one entry, or four.
func (w *writer) insert(entries []record.Entry) error {
	stmt, body, before := stmtInsert, stmtBody, w.tree
	if len(entries) == 4 {
		stmt, body = stmtInsertFour, stmtBodyFour
	}
	var rows, bodies []any
	for _, e := range entries {
		row, tree := w.row(e)
		rows, w.tree = append(rows, row...), tree
		bodies = append(bodies, tree.Size(), e.Salt, e.Body)
	}
	_, err := w.run(stmt, rows...)
	if err != nil {
		w.tree = before
		return err
	}
	_, err = w.run(body, bodies...)
	return err
}

func (w *writer) claim(b journal.Batch) error {
	for _, resource := range b.Claims {
		if _, err := w.run(stmtClaim, resource, b.Fence.Txn); err != nil {
			return err
		}
	}
	return nil
}

// passes reports whether a batch is a whole transaction without claims.
func passes(b journal.Batch) bool {
	//mutant:none only chooses fewer statements for the same rows
	return b.End && b.Take.From == "" && b.Take.To.Txn == b.Fence.Txn && len(b.Claims) == 0
}

func (w *writer) end(b journal.Batch) error {
	if !b.End || passes(b) {
		return nil
	}
	if _, err := w.run(stmtEnd, b.Fence.Txn); err != nil {
		return err
	}
	_, err := w.run(stmtRelease, b.Fence.Txn)
	return err
}
