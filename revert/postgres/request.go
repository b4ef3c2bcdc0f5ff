package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/remit-dev/remit/revert/journal"
)

var _ journal.Requests = (*Node)(nil)

// maxEnded is how many requests stay that have ended.
const maxEnded = 1000

// requestColumns are the columns of a request, in the order of scanRequest. Each
// row can be read, whoever wrote it: texts are cut just above their limits, and
// a time that Go has no JSON for is left out.
var requestColumns = fmt.Sprintf(`id, left(node, 200), left(origin, 200), substr(txn, 1, 200), substr(body, 1, %d), left(state, 200),
	substr(answer, 1, %d), read, string_to_array(array_to_string(takers, ' '), ' '), size, %s, %s, %s`, journal.MaxRequestBody+1, journal.MaxRequestAnswer+1,
	yearOf("asked"), yearOf("taken"), yearOf("ended"))

// yearOf returns an expression: a time of the years that JSON can have, or null.
func yearOf(column string) string {
	return "CASE WHEN " + column + " BETWEEN '0001-01-02' AND '9999-12-30' THEN " + column + " END"
}

func scanRequest(row pgx.Row) (r journal.Request, err error) {
	var txn []byte
	var asked, taken, ended *time.Time
	err = row.Scan(&r.ID, &r.Node, &r.From, &txn, &r.Body, &r.State, &r.Answer, &r.Read, &r.Takers, &r.Size, &asked, &taken, &ended)
	r.Txn, r.Asked, r.Taken, r.Ended = string(txn), utc(asked), utc(taken), utc(ended)
	return r, err
}

func utc(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// atWork has the requests that this opening works on. It can take one again
// that it could not give back.
type atWork struct {
	mu  sync.Mutex // never held across a wait
	ids map[int64]bool
}

// begin reports whether no other goroutine works on a request, and notes that
// one does now.
func (w *atWork) begin(id int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ids[id] {
		return false
	}
	if w.ids == nil {
		w.ids = map[int64]bool{}
	}
	w.ids[id] = true
	return true
}

func (w *atWork) end(id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ids, id)
}

func (w *atWork) list() []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.AppendSeq([]int64{}, maps.Keys(w.ids))
}

// Ask stores a request for another node; see journal.Requests.
func (n *Node) Ask(ctx context.Context, r journal.Request) (out journal.Request, err error) {
	if err := n.writable(ctx); err != nil {
		return out, err
	}
	if len(r.Body) > journal.MaxRequestBody {
		return out, fmt.Errorf("request: it has %d bytes; must be at most %d", len(r.Body), journal.MaxRequestBody)
	}
	err = n.again(ctx, func() error {
		return pgx.BeginFunc(ctx, n.pool, func(tx pgx.Tx) error {
			out, err = n.ask(ctx, tx, r)
			return err
		})
	})
	return out, err
}

func (n *Node) ask(ctx context.Context, tx pgx.Tx, r journal.Request) (out journal.Request, err error) {
	var known bool
	if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM nodes WHERE id = $1)", r.Node).Scan(&known); err != nil {
		return out, err
	}
	if !known {
		return out, fmt.Errorf("node %s: %w", r.Node, journal.ErrNotFound)
	}
	same := func() (journal.Request, error) {
		return scanRequest(tx.QueryRow(ctx, "SELECT "+requestColumns+` FROM requests
			WHERE node = $1 AND origin = $2 AND NOT read AND state <> 'withdrawn' AND sha256(body) = sha256($3) ORDER BY id DESC LIMIT 1`, r.Node, n.NodeID(), r.Body))
	}
	if out, err = same(); !noRows(err) {
		return out, err
	}
	out, err = scanRequest(tx.QueryRow(ctx, `INSERT INTO requests (node, origin, txn, body) VALUES ($1, $2, $3, $4)
		ON CONFLICT DO NOTHING RETURNING `+requestColumns, r.Node, n.NodeID(), []byte(r.Txn), r.Body))
	if noRows(err) { // another process asked for the same at this moment
		return same()
	}
	if err != nil {
		return out, err
	}
	_, err = tx.Exec(ctx, `DELETE FROM requests WHERE ended IS NOT NULL AND id <=
		(SELECT id FROM requests WHERE ended IS NOT NULL ORDER BY id DESC OFFSET $1 LIMIT 1)`, maxEnded)
	return out, err
}

// Request returns one request; see journal.Requests.
func (n *Node) Request(ctx context.Context, id int64) (r journal.Request, err error) {
	err = n.again(ctx, func() error {
		r, err = scanRequest(n.pool.QueryRow(ctx, "SELECT "+requestColumns+" FROM requests WHERE id = $1", id))
		if noRows(err) {
			err = fmt.Errorf("request %d: %w", id, journal.ErrNotFound)
		}
		return err
	})
	return r, err
}

// Requests lists the requests for this node and from it; see journal.Requests.
func (n *Node) Requests(ctx context.Context) (all []journal.Request, err error) {
	err = n.again(ctx, func() error {
		all = nil
		return eachRow(ctx, n.pool, func(rows pgx.Rows) error {
			r, err := scanRequest(rows)
			all = append(all, r)
			return err
		}, "SELECT "+requestColumns+` FROM requests WHERE node = $1 AND ended IS NULL
			OR origin = $1 AND NOT read AND state <> 'withdrawn' ORDER BY id`, n.NodeID())
	})
	return all, err
}

// free is a condition: no living opening works on a request, and neither does
// this one, whose id is $2 and whose requests at work are $3.
func (n *Node) free() string {
	return "r.node = $1 AND r.ended IS NULL AND (r.taker IS NULL OR r.taker = $2 OR NOT " + alive("r.taker", "$4") + ") AND r.id <> ALL ($3::bigint[])"
}

// CanTake reports whether there is a request to take; see journal.Requests.
func (n *Node) CanTake(ctx context.Context) (can bool, err error) {
	if err := n.writable(ctx); err != nil {
		return false, err
	}
	err = n.again(ctx, func() error {
		return n.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM requests r WHERE "+n.free()+")", n.NodeID(), n.id, n.works.list(), n.class).Scan(&can)
	})
	return can, err
}

// Take takes the oldest free request; see journal.Requests. A dead taker is
// ended first, as Alive does: it appends nothing more.
func (n *Node) Take(ctx context.Context) (r journal.Request, err error) {
	if err := n.writable(ctx); err != nil {
		return r, err
	}
	head, err := n.Head(ctx)
	if err != nil {
		return r, err
	}
	err = n.again(ctx, func() error {
		err := pgx.BeginFunc(ctx, n.pool, func(tx pgx.Tx) error {
			r, err = n.take(ctx, tx, head.Size)
			return err
		})
		if err != nil && r.ID != 0 { // the commit failed
			n.works.end(r.ID)
		}
		return err
	})
	return r, err
}

var errNoRequest = fmt.Errorf("a request to take: %w", journal.ErrNotFound)

func (n *Node) take(ctx context.Context, tx pgx.Tx, size int64) (r journal.Request, err error) {
	var id int64
	var owner *string
	err = tx.QueryRow(ctx, "SELECT r.id, (SELECT owner FROM owners o WHERE o.id = r.taker) FROM requests r WHERE "+n.free()+" ORDER BY r.id LIMIT 1 FOR UPDATE OF r SKIP LOCKED",
		n.NodeID(), n.id, n.works.list(), n.class).Scan(&id, &owner)
	if noRows(err) || err == nil && !n.works.begin(id) {
		return r, errNoRequest
	}
	if err != nil {
		return r, err
	}
	defer func() {
		if err != nil {
			n.works.end(id)
		}
	}()
	if owner != nil && *owner != n.Owner() {
		lives, err := n.probe(ctx, tx, *owner)
		if err != nil {
			return r, err
		}
		if lives { // after all
			return r, errNoRequest
		}
	}
	return scanRequest(tx.QueryRow(ctx, `UPDATE requests SET state = 'taken', taken = now(), taker = $2, takers = takers || $3::text,
		size = CASE WHEN takers = '{}' THEN $4 ELSE size END WHERE id = $1 RETURNING `+requestColumns, id, n.id, n.Owner(), size))
}

// Answer ends a request, or gives it back; see journal.Requests.
func (n *Node) Answer(ctx context.Context, r journal.Request) error {
	defer n.works.end(r.ID)
	if err := n.writable(ctx); err != nil {
		return err
	}
	if len(r.Answer) > journal.MaxRequestAnswer {
		return fmt.Errorf("request %d: its answer has %d bytes; must be at most %d", r.ID, len(r.Answer), journal.MaxRequestAnswer)
	}
	return n.again(ctx, func() error {
		tag, err := n.pool.Exec(ctx, `UPDATE requests SET state = $3, answer = $4, taker = CASE WHEN $5 THEN taker END, ended = CASE WHEN $5 THEN now() END
			WHERE id = $1 AND taker = $2 AND (ended IS NULL OR state = $3) AND EXISTS (SELECT FROM owners WHERE id = $2 AND ended IS NULL)`,
			r.ID, n.id, string(r.State), r.Answer, r.State.Ended())
		if err == nil && tag.RowsAffected() == 0 {
			err = fmt.Errorf("request %d: another process works on it, or it has ended: %w", r.ID, journal.ErrNotOwner)
		}
		return err
	})
}

// Withdraw ends a request that no process has taken; see journal.Requests.
func (n *Node) Withdraw(ctx context.Context, id int64) error {
	if err := n.writable(ctx); err != nil {
		return err
	}
	return n.again(ctx, func() error {
		tag, err := n.pool.Exec(ctx, "UPDATE requests SET state = 'withdrawn', ended = now() WHERE id = $1 AND takers = '{}' AND (ended IS NULL OR state = 'withdrawn')", id)
		if err == nil && tag.RowsAffected() == 0 {
			err = fmt.Errorf("request %d: its node has begun it, or it has ended: %w", id, journal.ErrNotOwner)
		}
		return err
	})
}

// Discard deletes a request; see journal.Requests.
func (n *Node) Discard(ctx context.Context, id int64) error {
	if err := n.writable(ctx); err != nil {
		return err
	}
	return n.again(ctx, func() error {
		tag, err := n.pool.Exec(ctx, "DELETE FROM requests WHERE id = $1", id)
		if err == nil && tag.RowsAffected() == 0 {
			err = fmt.Errorf("request %d: %w", id, journal.ErrNotFound)
		}
		return err
	})
}

// MarkRead says that a person has read the answer; see journal.Requests.
func (n *Node) MarkRead(ctx context.Context, id int64) error {
	return n.again(ctx, func() error {
		_, err := n.pool.Exec(ctx, "UPDATE requests SET read = true, answer = NULL WHERE id = $1 AND ended IS NOT NULL", id)
		return err
	})
}
